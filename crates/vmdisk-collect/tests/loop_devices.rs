//! The loop devices over an image are found.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use vmdisk_collect::{Request, collect};
use vmdisk_facts::{Fact, HostIndex};

/// A system with an image, and two loop devices over files, as the kernel writes them.
fn system(root: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("srv/web.img", "");
    for (name, number, file) in [("loop3", "7:3", "/srv/web.img"), ("loop4", "7:4", "/srv/x")] {
        write(&format!("dev/{name}"), "");
        let at = format!("sys/class/block/{name}");
        write(&format!("{at}/dev"), &format!("{number}\n"));
        write(&format!("{at}/loop/backing_file"), &format!("{file}\n"));
        write(&format!("{at}/loop/dio"), "0\n");
    }
    let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 7:3 / /mnt rw - ext4 /dev/loop3 rw\n";
    write("proc/self/mountinfo", mounts);
}

#[test]
fn a_mounted_loop_device_over_an_image_is_found() {
    let folder = tempfile::tempdir().unwrap();
    system(folder.path());
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = folder.path().to_owned();
    request.paths.push(PathBuf::from("/srv/web.img"));
    let facts = collect(&request);
    let index = HostIndex::new(&facts);
    let over = index.loop_devices_over("/srv/web.img");
    let [device] = over else {
        panic!("{over:?}");
    };
    assert_eq!(device.name(), "/dev/loop3");
    assert_eq!(device.mounted_at, Fact::Known(vec!["/mnt".to_owned()]));
    let numbers: Vec<_> = facts.blockdevs.iter().map(|it| it.name()).collect();
    assert!(!numbers.contains(&"/dev/loop4".into()), "{numbers:?}");
}
