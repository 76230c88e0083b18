//! A guest that writes to its disk with a flush after each write: its kernel and initramfs, for tests
//! that count flushes.

use std::fs;

use vmdisk_bench_runner::guest::{Archive, Kernel};

use super::packages::Packages;

/// The modules that the guest's disk needs.
const MODULES: &[&str] = &["virtio_pci", "virtio_blk"];

/// The names under which the guest's only program runs.
const APPLETS: &[&str] = &[
    "sh", "cat", "dd", "insmod", "mount", "poweroff", "sed", "sleep",
];

/// Writes `kernel` and `initramfs` to the directory that tests use.
pub(crate) fn run() -> anyhow::Result<()> {
    let lab = crate::repository().join("target/hostlab");
    fs::create_dir_all(&lab)?;
    let packages = Packages::ready(&lab, super::RELEASE)?;
    let unpacked = super::unpacked_kernel(&packages, "6.1", "")?;
    let busybox = packages.unpacked("busybox", "", &["busybox-static"], |package| {
        package == "busybox-static"
    })?;
    let kernel = Kernel::find(&unpacked)?;
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys"] {
        archive.folder(folder);
    }
    archive.character_device("dev/console", 5, 1);
    archive.file(
        "bin/busybox",
        super::initramfs::read(&super::initramfs::find(&busybox, "bin/busybox")?)?,
        true,
    );
    for name in APPLETS {
        archive.link(&format!("bin/{name}"), "busybox");
    }
    let mut order = String::new();
    for (name, bytes) in kernel.closure(MODULES)? {
        order += &format!("{name}\n");
        archive.file(&format!("modules/{name}.ko"), bytes, false);
    }
    archive.file("modules/order", order.into_bytes(), false);
    archive.file("init", include_bytes!("guest/flushes.sh").to_vec(), true);
    let folder = crate::repository().join("target/guest");
    fs::create_dir_all(&folder)?;
    fs::copy(&kernel.image, folder.join("kernel"))?;
    fs::write(folder.join("initramfs"), archive.bytes())?;
    println!("{}: kernel and initramfs", folder.display());
    Ok(())
}
