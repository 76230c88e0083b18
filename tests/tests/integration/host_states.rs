//! From a state of a real host to the finding, and to silence when it is mended.
//!
//! Each needs root and loop devices. Without them a test prints the reason and passes; with `VMDISK_REAL=require` it
//! fails instead.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use vmdisk::{Host, lint, read};
use vmdisk_collect::{Request, collect};
use vmdisk_testing::{LoopDevice, needed, run};
use vmdisk_tests::has_program;

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

/// The programs that make the states of `states.sh`.
const PROGRAMS: [&str; 7] = [
    "losetup",
    "mkfs.btrfs",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkswap",
    "qemu-img",
    "qemu-system-x86_64",
];

/// Number of states; each line of the script's output is one.
const STATES: usize = 61;

#[test]
fn states_made_for_real_are_found_and_nothing_is_said_when_they_are_mended() {
    let missing = PROGRAMS.into_iter().find(|program| !has_program(program));
    let folder = tempfile::tempdir().unwrap();
    let can = match missing {
        Some(program) => Err(format!("{program} is not installed")),
        None => LoopDevice::new(&folder.path().join("tried"), 1 << 20, &[]).map(drop),
    };
    if needed(can).is_none() {
        return;
    }
    // QEMU's user reaches the images.
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/host_states/states.sh");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh"]);
    let output = command
        .args([script.as_path(), crate::VMDISK.as_ref(), folder.path()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (ok, wrong): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("ok "));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(wrong.is_empty(), "{wrong:#?}\n{errors}");
    assert_eq!(ok.len(), STATES, "{errors}");
}
