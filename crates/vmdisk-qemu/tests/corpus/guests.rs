//! From the XML of a whole guest our libvirt style writes libvirt's nodes, devices and objects, to the byte.

use vmdisk_model::Domain;
use vmdisk_qemu::write;

use crate::support::*;

const NBDKIT: &str = "libvirt has nbdkit speak to the server, where it is installed";
const POOL: &str = "where a volume is, only its pool knows";

/// Guests that come out differently, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "disk-cdrom-bus-other",
        "libvirt made a USB CD drive a disk until 11.5",
    ),
    ("disk-cdrom-network-nbdkit", NBDKIT),
    ("disk-network-http-nbdkit", NBDKIT),
    ("disk-network-source-curl-nbdkit", NBDKIT),
    ("disk-network-source-curl-nbdkit-backing", NBDKIT),
    ("disk-network-ssh-key", NBDKIT),
    ("disk-network-ssh-nbdkit", NBDKIT),
    ("disk-network-ssh-password", NBDKIT),
    (
        "hostdev-scsi-autogen-address",
        "a controller that only a host device needs",
    ),
    ("disk-source-pool", POOL),
    ("disk-source-pool-mode", POOL),
    ("luks-disks-source", POOL),
    ("luks-disks-source-qcow2", POOL),
    (
        "disk-source-fd",
        "which descriptors libvirt passes is its own affair",
    ),
    (
        "qemu-ns",
        "properties are overridden with words of libvirt's own",
    ),
];

/// The guests of the corpus with their command lines: of each the name, what libvirt was given or wrote, and
/// the words of the command line.
fn guests(end: &str) -> Option<Vec<(String, Domain, Vec<String>)>> {
    let directory = corpus("qemuxmlconf")?;
    let guests = files(&directory, ".x86_64-latest.args");
    let read = |name: &str| {
        let text = std::fs::read_to_string(directory.join(format!("{name}{end}"))).unwrap();
        let document = vmdisk_libvirt::read(&text).unwrap();
        vmdisk_libvirt::resolve(&document.domain, &document.kept).domain
    };
    let words = |path| shell_words(&std::fs::read_to_string(path).unwrap());
    let guests = guests.iter();
    Some(
        guests
            .map(|(name, path)| (name.clone(), read(name), words(path)))
            .collect(),
    )
}

/// True if the command line gives a place in the boot order to another device than a disk, and none by the
/// order of the machine: whether disks have one depends on it, and it is not in the model.
fn boots_from_others(domain: &Domain, words: &[String]) -> bool {
    let is_disk = |word: &str| {
        DRIVERS
            .iter()
            .any(|driver| word.contains(&format!("\"{driver}\"")))
    };
    domain.boot_devices.is_empty()
        && words
            .iter()
            .any(|word| word.contains("\"bootindex\"") && !is_disk(word))
}

/// Compares what is written of each guest with what libvirt writes; hands back the guests that differ.
fn compare(end: &str, ignored: &[&str]) -> Option<()> {
    let (mut same, mut options_compared, mut total) = (0, 0, 0);
    let (mut different, mut wrong) = (Vec::new(), Vec::new());
    for (name, domain, words) in guests(end)? {
        total += 1;
        let mut ignored = ignored.to_vec();
        if boots_from_others(&domain, &words) {
            ignored.push("\"bootindex");
        }
        let expected = options_of(&words, &ignored);
        let written = write(&domain, &options("qemu=10.0,libvirt=11.3"));
        let ours = written.map(|line| options_of(&line.argv(), &ignored));
        if ours.as_ref().is_ok_and(|ours| *ours == expected) {
            same += 1;
            options_compared += expected.len();
            if let Some((_, reason)) = DIFFERENT.iter().find(|(case, _)| *case == name) {
                different.push(format!("not here, although elsewhere {reason}: {name}"));
            }
            continue;
        }
        if let Some((_, reason)) = DIFFERENT.iter().find(|(case, _)| *case == name) {
            different.push(format!("because {reason}: {name}"));
            continue;
        }
        match ours {
            Ok(ours) => {
                let lacks = expected.iter().filter(|option| !ours.contains(option));
                let more = ours.iter().filter(|option| !expected.contains(option));
                let differences: Vec<String> = lacks
                    .map(|option| format!("  libvirt's {option}"))
                    .chain(more.map(|option| format!("  ours      {option}")))
                    .collect();
                wrong.push(format!("{name}:\n{}", differences.join("\n")));
            }
            Err(problems) => wrong.push(format!("{name}: {problems}")),
        }
    }
    for line in &different {
        eprintln!("different, {line}");
    }
    eprintln!("{same} of {total} guests are the same, with {options_compared} options");
    assert!(total > 340, "only {total} guests were compared");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Some(())
}

#[test]
fn a_guest_as_it_was_written_has_libvirts_nodes_and_devices() {
    // PCI slots and USB ports are libvirt's to choose, and left to QEMU here.
    compare(".xml", PLACES);
}

#[test]
fn a_guest_as_libvirt_defines_it_has_libvirts_command_line_slots_and_all() {
    // A USB disk gets its port when the guest starts.
    compare(".x86_64-latest.xml", &["\"port\":"]);
}
