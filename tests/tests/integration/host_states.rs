//! From a state of a real host to the finding, and to silence when it is mended.
//!
//! Each needs root and loop devices. Without them a test prints the reason and passes; with `VMDISK_REAL=require` it
//! fails instead.

use std::path::Path;

use vmdisk::{Host, lint, read};
use vmdisk_collect::{Request, collect};
use vmdisk_testing::{LoopDevice, needed, run};

/// The rules that speak about a guest with this image, with the facts of this host.
fn rules_about(image: &Path) -> Vec<&'static str> {
    let text = format!(
        "<disk type='file'><driver name='qemu' type='raw' cache='none'/><source file='{}'/>\
         <target dev='vda' bus='virtio'/></disk>",
        image.display()
    );
    rules_about_guest(image, &text)
}

/// The rules that speak about a guest, with the facts of this host about its image.
fn rules_about_guest(image: &Path, text: &str) -> Vec<&'static str> {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths.push(image.to_owned());
    let options = Host::new(collect(&request)).options();
    let report = lint(&read(text).unwrap(), &options);
    report.diagnostics.iter().map(|it| it.rule.name).collect()
}

#[test]
fn an_image_that_the_host_has_mounted_through_a_loop_device_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    let point = folder.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    let point = point.to_str().unwrap();
    let mounted = || {
        let device = LoopDevice::new(&image, 8 << 20, &[])?;
        run("mkfs.ext4", &["-q", device.path()])?;
        run("mount", &[device.path(), point])?;
        Ok(device)
    };
    let Some(_device) = needed(mounted()) else {
        return;
    };
    let found = rules_about(&image);
    run("umount", &[point]).unwrap();
    assert!(found.contains(&"source-is-mounted"), "{found:?}");
    let found = rules_about(&image);
    assert!(!found.contains(&"source-is-mounted"), "{found:?}");
}

#[test]
fn a_loop_device_is_no_scsi_device() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    let Some(device) = needed(LoopDevice::new(&image, 8 << 20, &[])) else {
        return;
    };
    let rules = |kind: &str| {
        let text = format!(
            "<disk type='block' device='{kind}'><driver name='qemu' type='raw' cache='none'/><source dev='{}'/>\
             <target dev='sda' bus='scsi'/></disk>",
            device.path()
        );
        rules_about_guest(Path::new(device.path()), &text)
    };
    assert!(rules("lun").contains(&"lun-refused"));
    assert!(!rules("disk").contains(&"lun-refused"));
}
