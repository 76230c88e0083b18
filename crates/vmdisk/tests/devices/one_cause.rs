//! One mistake gives one error, and no other finding advises something that is refused next.

use vmdisk::{LintOptions, lint, read};

use super::support::guest;

/// The rules with findings, without those about tuning that no mistake here causes.
fn rules(text: &str) -> Vec<&'static str> {
    let document = read(text).expect("it is read");
    let found = lint(&document, &LintOptions::default());
    found.diagnostics.iter().map(|it| it.rule.name).collect()
}

#[test]
fn a_block_size_of_a_passed_through_device_is_to_be_removed() {
    let lun = |blockio: &str| {
        guest(
            "",
            &format!(
                "<controller type='scsi' index='0' model='virtio-scsi'/>\
                 <disk type='block' device='lun'><driver name='qemu' type='raw' cache='none'/>\
                 <source dev='/dev/disk/by-id/wwn-0x5000c500155f0cc5'/>\
                 <target dev='sda' bus='scsi'/>{blockio}</disk>"
            ),
        )
    };
    let without = rules(&lun(""));
    for blockio in [
        "<blockio logical_block_size='4096'/>",
        "<blockio logical_block_size='4096' physical_block_size='4096'/>",
    ] {
        let mut with = rules(&lun(blockio));
        with.retain(|rule| !without.contains(rule));
        assert_eq!(with, ["lun-option-refused"], "{blockio}");
    }
    assert_eq!(rules(&lun("<blockio logical_block_size='0'/>")), without);
}

#[test]
fn queues_of_a_controller_without_any_are_not_to_be_lowered() {
    let controller = |model: &str| {
        let controller = format!(
            "<controller type='scsi' index='0' model='{model}'><driver queues='4'/></controller>"
        );
        rules(&guest("<vcpu>2</vcpu>", &controller))
    };
    assert_eq!(controller("lsilogic"), ["controller-refused"]);
    assert!(controller("virtio-scsi").contains(&"queues-gt-vcpus"));
}

#[test]
fn a_name_on_a_refused_bus_is_not_to_be_changed() {
    let on = |device: &str, bus: &str| {
        let disk = format!(
            "<disk type='file' device='{device}'><driver name='qemu' type='raw'/>\
             <source file='/srv/a.iso'/><target dev='hdc' bus='{bus}'/><readonly/></disk>"
        );
        rules(&guest("", &disk))
    };
    let about_bus = |rules: Vec<&'static str>| -> Vec<&'static str> {
        let names = [
            "address-beyond-controller",
            "device-bus-refused",
            "target-bus-mismatch",
        ];
        rules
            .into_iter()
            .filter(|rule| names.contains(rule))
            .collect()
    };
    assert_eq!(about_bus(on("cdrom", "fdc")), ["device-bus-refused"]);
    assert_eq!(about_bus(on("disk", "sata")), ["target-bus-mismatch"]);
}

#[test]
fn a_mistake_in_a_node_is_reported_once() {
    let line = |node: &str, device: &str| {
        rules(&format!(
            "qemu-system-x86_64 -nodefaults -machine q35 \
             -blockdev driver=file,node-name=f0,filename=/srv/a.img{node} {device}"
        ))
    };
    let device = "-device virtio-blk-pci,drive=f0";
    for cache in [",cache.writeback=on", ",cache.drct=on"] {
        assert_eq!(line(cache, device), ["property-refused"], "{cache}");
    }
    let shared = format!("{device},share-rw=on");
    let mut both = line("", &format!("{shared} {shared}"));
    both.retain(|rule| *rule == "shareable-cached");
    assert_eq!(both, ["shareable-cached"]);
}
