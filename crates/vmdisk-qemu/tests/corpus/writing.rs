//! From the same XML our libvirt style writes the same nodes and devices, to the byte.

use std::collections::BTreeMap;

use vmdisk_model::*;
use vmdisk_qemu::{CommandLine, write};

use crate::support::*;

/// JSON without the spaces that are there for people.
fn compact(pretty: &str) -> String {
    pretty
        .lines()
        .map(|line| line.trim().replacen("\": ", "\":", 1))
        .collect()
}

/// The images of a disk, with those on protocols that are not modelled put into a file, so that the
/// nodes above them can be looked at.
fn put_into_files(image: &mut Image) {
    if let Protocol::Other(_) = image.protocol {
        image.protocol = Protocol::File {
            path: "elsewhere".to_owned(),
        };
    }
    if let Backing::Image(below) = &mut image.backing {
        put_into_files(below);
    }
}

#[test]
fn nodes_are_libvirts_to_the_byte() {
    let Some(directory) = corpus("qemublock-xml2json") else {
        return;
    };
    // Nodes that are about what the model does not have yet.
    let is_foreign = |node: &str| {
        [
            "\"encrypt\"",
            "\"pr-manager\"",
            "\"vvfat\"",
            "\"key-secret\"",
        ]
        .iter()
        .any(|part| node.contains(part))
            || ![
                "file",
                "host_device",
                "raw",
                "qcow2",
                "qcow",
                "qed",
                "vmdk",
                "vpc",
                "vhdx",
                "vdi",
                "bochs",
                "cloop",
                "dmg",
                "parallels",
            ]
            .iter()
            .any(|driver| node.contains(&format!("\"driver\":\"{driver}\"")))
    };
    let mut compared = 0;
    let mut foreign = 0;
    let mut wrong = Vec::new();
    for (name, path) in files(&directory, ".xml") {
        let Ok(expected) = std::fs::read_to_string(directory.join(format!("{name}.json"))) else {
            // Refused by libvirt for the length of a node's name, which is not ours to choose.
            assert!(name.starts_with("nodename-long"), "{name} has no answer");
            continue;
        };
        let expected: Vec<String> = expected.split_inclusive("\n}\n").map(compact).collect();
        let document = vmdisk_libvirt::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut domain = document.domain;
        let is_other = |disk: &Disk| matches!(disk.backend.source, BackendSource::Other(_));
        if domain.disks.iter().any(is_other) {
            // A whole source that the model does not have yet.
            foreign += expected.len();
            continue;
        }
        for disk in &mut domain.disks {
            if let BackendSource::Image(image) = &mut disk.backend.source {
                put_into_files(image);
            }
        }
        // A QEMU for which libvirt writes the format node of raw images too, as this data has it.
        let line = write(&domain, &options("qemu=8.2,libvirt=11.3"))
            .unwrap_or_else(|problems| panic!("{name}: {problems}"));
        let mut ours: Vec<String> = line.blockdevs().map(ToString::to_string).collect();
        ours.reverse();
        if ours.len() != expected.len() {
            wrong.push(format!(
                "{name}: {} nodes, not {}",
                ours.len(),
                expected.len()
            ));
            continue;
        }
        let node_name = |node: &str| {
            let rest = node.split("\"node-name\":").nth(1).unwrap();
            format!("\"{}\"", rest.split('"').nth(1).unwrap())
        };
        let names: Vec<(String, String)> = ours
            .iter()
            .zip(&expected)
            .map(|(ours, expected)| (node_name(ours), node_name(expected)))
            .collect();
        for (ours, expected) in ours.iter().zip(&expected) {
            if is_foreign(expected) {
                foreign += 1;
                continue;
            }
            let ours = names
                .iter()
                .fold(ours.clone(), |node, (from, to)| node.replace(from, to));
            compared += 1;
            if ours != *expected {
                wrong.push(format!(
                    "{name}:\n  ours     {ours}\n  libvirt's {expected}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{compared} nodes are the same, {foreign} are of kinds that are not written yet");
    assert!(compared > 80, "only {compared} nodes were compared");
}

/// What libvirt's elements beyond the model come to.
const BEYOND_THE_MODEL: &[&str] = &[
    "\"ioeventfd\"",
    "\"event_idx\"",
    "\"iommu_platform\"",
    "\"ats\"",
    "\"packed\"",
    "\"page-per-vq\"",
    "\"cyls\"",
    "\"pr-manager\"",
    "\"key-secret\"",
    "\"prop1\"",
    "\"p2\"",
    "/dev/fdset/",
];

/// Guests that come out differently, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "disk-cdrom-bus-other",
        "libvirt made a USB CD drive a disk until 11.5",
    ),
    (
        "disk-metadata-cache",
        "the cache of a backing image's metadata is not in the model",
    ),
    (
        "hostdev-scsi-autogen-address",
        "a controller that only a host device needs",
    ),
];

#[test]
fn whole_guests_have_libvirts_nodes_and_devices_to_the_byte() {
    let Some(directory) = corpus("qemuxmlconf") else {
        return;
    };
    let (mut same, mut options_compared) = (0, 0);
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut wrong, mut beyond) = (Vec::new(), Vec::new());
    for (name, path) in files(&directory, ".x86_64-latest.args") {
        let text = std::fs::read_to_string(directory.join(format!("{name}.xml"))).unwrap();
        let document = vmdisk_libvirt::read(&text).unwrap();
        let words = shell_words(&std::fs::read_to_string(&path).unwrap());
        let expected = comparable_line(&words);
        let line: CommandLine = match write(&document.domain, &options("qemu=10.0,libvirt=11.3")) {
            Ok(line) => line,
            Err(problems) => {
                let message = problems.0[0].message.clone();
                refused.entry(message).or_default().push(name);
                continue;
            }
        };
        if BEYOND_THE_MODEL
            .iter()
            .any(|part| expected.iter().any(|option| option.contains(part)))
        {
            beyond.push(name);
            continue;
        }
        let ours = comparable_line(&line.argv());
        let exception = DIFFERENT.iter().find(|(case, _)| *case == name);
        if let Some((_, reason)) = exception {
            assert_ne!(ours, expected, "{name} is no longer different: {reason}");
            eprintln!("different, because {reason}: {name}");
        } else if ours == expected {
            same += 1;
            options_compared += ours.len();
        } else {
            let lacks = expected.iter().filter(|option| !ours.contains(option));
            let more = ours.iter().filter(|option| !expected.contains(option));
            let differences: Vec<String> = lacks
                .map(|option| format!("  libvirt's {option}"))
                .chain(more.map(|option| format!("  ours      {option}")))
                .collect();
            wrong.push(format!("{name}:\n{}", differences.join("\n")));
        }
    }
    for (message, names) in &refused {
        eprintln!("refused, {}: {message}: {}", names.len(), names.join(" "));
    }
    eprintln!("beyond the model, {}: {}", beyond.len(), beyond.join(" "));
    eprintln!("{same} guests are the same, with {options_compared} options");
    assert!(same > 250, "only {same} guests were compared");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
