//! From the XML of a whole guest we write libvirt's graphs of nodes, devices and objects.

use vmdisk_model::{
    BackendSource, DevicePath, Disk, Domain, Format, NetworkHost, NetworkProtocol, NetworkSource,
    Protocol, VolumeMode, VolumeSource,
};
use vmdisk_qemu::write;

use super::support::*;

/// Guests that come out differently, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "hostdev-scsi-autogen-address",
        "a controller that only a host device needs",
    ),
    (
        "disk-source-fd",
        "which descriptors libvirt passes is its own affair",
    ),
    (
        "qemu-ns",
        "properties are overridden with words of libvirt's own",
    ),
    ("disk-serial", "SD cards are not written on command lines"),
    (
        "disk-cdrom-bus-other",
        "libvirt 11.3 makes a disk of a CD drive on USB",
    ),
];

/// Puts what libvirt's tests have on their made-up pools in the place of a volume.
fn find_volume(disk: &mut Disk) {
    let BackendSource::Image(image) = &mut disk.backend.source else {
        return;
    };
    let Protocol::Volume(VolumeSource { pool, volume, mode }) = &image.protocol else {
        return;
    };
    let (protocol, format) = if let Some(name) = volume.strip_prefix("dir+") {
        let path = format!("/some/dir/device/{name}");
        (Protocol::Directory { path }, Format::Fat)
    } else if *mode == Some(VolumeMode::Direct) {
        let lun = volume.rsplit(':').next().unwrap();
        let name = format!("demo-target/{lun}");
        let host = NetworkHost::tcp("iscsi.example.com", Some(3260));
        assert_eq!(pool, "pool-iscsi");
        let source = NetworkSource::new(NetworkProtocol::Iscsi, Some(name), vec![host]);
        (Protocol::Network(Box::new(source)), Format::Raw)
    } else {
        let name = volume.strip_prefix("block+").unwrap_or(volume);
        let path = DevicePath(format!("/some/block/device/{name}"));
        (Protocol::HostDevice { path }, Format::Raw)
    };
    if *mode == Some(VolumeMode::Direct) {
        // The pool's, which has none.
        image.authentication = None;
    }
    image.protocol = protocol;
    image.format.get_or_insert(format);
}

/// The guests of the corpus with their command lines: of each the name, what libvirt was given or wrote, and
/// the words of the command line.
fn guests(end: &str) -> Option<Vec<(String, Domain, Vec<String>)>> {
    let directory = corpus("qemuxmlconf")?;
    let guests = files(&directory, ".x86_64-latest.args");
    let read = |name: &str| {
        let text = std::fs::read_to_string(directory.join(format!("{name}{end}"))).unwrap();
        let document = vmdisk_libvirt::read(&text).unwrap();
        let mut domain = vmdisk_libvirt::resolve(&document.domain, &document.kept).domain;
        domain.disks.iter_mut().for_each(find_volume);
        domain
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
        let driver = word.split("\"driver\":\"").nth(1).unwrap_or_default();
        is_ours(driver.split('"').next().unwrap_or_default())
    };
    domain.boot_devices.is_empty()
        && words
            .iter()
            .any(|word| word.contains("\"bootindex\"") && !is_disk(word))
}

/// Compares what is written of each guest with what libvirt writes; hands back the guests that differ.
fn compare(end: &str, ignored: &[&str]) -> Option<()> {
    let (mut same, mut options_compared, mut total) = (0, 0, 0);
    let (mut different, mut wrong, mut refused) = (Vec::new(), Vec::new(), 0);
    for (name, mut domain, words) in guests(end)? {
        total += 1;
        let mut ignored = ignored.to_vec();
        if boots_from_others(&domain, &words) {
            ignored.push("bootindex");
        }
        let expected = Line::new(&words).comparable(&ignored);
        domain.boot_from_first_disk();
        let written = write(&domain, &options("qemu=10.0,libvirt=11.3"));
        let ours = written.map(|line| Line::new(&line.argv()).comparable(&ignored));
        let exception = DIFFERENT.iter().find(|(case, _)| *case == name);
        match (ours, exception) {
            (Ok(ours), exception) if ours == expected => {
                same += 1;
                options_compared += expected.len();
                different.extend(
                    exception.map(|(_, reason)| format!("not here, although {reason}: {name}")),
                );
            }
            (_, Some((_, reason))) => different.push(format!("because {reason}: {name}")),
            (Ok(ours), None) => {
                wrong.push(format!("{name}:\n{}", differences(&ours, &expected)));
            }
            (Err(problems), None) if is_refused(&problems) => refused += 1,
            (Err(problems), None) => wrong.push(format!("{name}: {problems}")),
        }
    }
    for line in &different {
        eprintln!("different, {line}");
    }
    eprintln!(
        "{same} of {total} guests are the same, with {options_compared} options; {refused} are refused"
    );
    assert!(100 * different.len() <= 2 * total, "{different:#?}");
    assert!(refused <= 6, "{refused} guests are refused");
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
    compare(".x86_64-latest.xml", &["port"]);
}
