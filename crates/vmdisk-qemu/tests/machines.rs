//! A `-drive` without `if` on each recorded machine.

use vmdisk_model::TargetBus;
use vmdisk_qemu::read;

#[test]
fn a_drive_without_if_is_the_disk_that_qemu_makes_of_it() {
    let mut machines = 0;
    for line in include_str!("../src/interfaces.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [programs, interface, _empty_drives, names @ ..] = &words[..] else {
            panic!("{line}");
        };
        for (program, name) in programs
            .split(',')
            .flat_map(|it| names.iter().map(move |name| (it, *name)))
        {
            let is_default = name.ends_with('*');
            let mut written = vec![
                format!("-M {}", name.trim_end_matches('*')),
                format!("-M {}-7.2", name.trim_end_matches('*')),
            ];
            if is_default {
                written.push(String::new());
            }
            // These have no machine without a version.
            written
                .retain(|it| !matches!(it.as_str(), "-M pc-q35" | "-M pc-i440fx" | "-M q35-7.2"));
            for machine in written {
                let text = format!(
                    "qemu-system-{program} {machine} -drive file=/a,format=raw -hdb /b -drive if=none,id=d,file=/c"
                );
                let document = read(&text).expect("it is a command line");
                let buses: Vec<_> = document
                    .domain
                    .disks
                    .iter()
                    .map(|disk| disk.frontend.bus)
                    .collect();
                let expected = match *interface {
                    "ide" if name.contains("q35") => Some(TargetBus::Sata),
                    "ide" => Some(TargetBus::Ide),
                    "scsi" => Some(TargetBus::Scsi),
                    "virtio" => Some(TargetBus::Virtio),
                    "sd" => Some(TargetBus::Sd),
                    other => {
                        assert_eq!(other, "none");
                        None
                    }
                };
                let expected: Vec<_> = expected.iter().flat_map(|bus| [Some(*bus); 2]).collect();
                assert_eq!(buses, expected, "{text}");
                machines += 1;
            }
        }
    }
    assert!(machines > 400, "{machines}");
}

#[test]
fn a_drive_of_a_machine_that_is_not_recorded_may_be_a_disk() {
    for text in [
        "qemu-system-aarch64 -M newboard -drive file=/a,format=raw,id=a -hdb /b",
        "-M virt -drive file=/a,format=raw,id=a -hdb /b",
    ] {
        let document = read(text).expect("it is a command line");
        assert_eq!(document.domain.disks.len(), 0, "{text}");
        let unknown = document
            .others
            .iter()
            .filter(|it| it.is_unknown && it.has_data);
        assert_eq!(unknown.count(), 2, "{text}");
    }
}
