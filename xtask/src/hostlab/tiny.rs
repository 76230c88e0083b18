//! A guest that is a kernel and busybox: it writes to its disk with a flush after each write, or names its disks.

use std::fs;

use anyhow::Context;
use vmdisk_bench_runner::guest::{Archive, Kernel};

use super::packages::{Packages, Release};

/// The instruction set of a guest, with its packages.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// QEMU's name.
    pub(crate) name: &'static str,
    /// Debian's name.
    debian: &'static str,
    release: Release,
    /// QEMU and UEFI; empty for those of this host.
    emulator: &'static [&'static str],
}

/// The instruction sets of guests.
pub(crate) const ARCHITECTURES: [Architecture; 3] = [
    Architecture {
        name: "x86_64",
        debian: "amd64",
        release: super::RELEASE,
        emulator: &[],
    },
    Architecture {
        name: "aarch64",
        debian: "arm64",
        release: TRIXIE,
        emulator: &["qemu-system-arm", "qemu-efi-aarch64"],
    },
    Architecture {
        name: "riscv64",
        debian: "riscv64",
        release: TRIXIE,
        emulator: &["qemu-system-riscv", "qemu-efi-riscv64"],
    },
];

/// The first release with riscv64.
const TRIXIE: Release = Release {
    name: "trixie",
    suites: &[""],
};

/// The drivers for the disks of each bus, of which a kernel has those that its machines need. Most tests load only the
/// first two.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "sd_mod",
    "nvme",
    "ahci",
    "ata_piix",
    "xhci_pci",
    "ehci_pci",
    "uhci_hcd",
    "usb_storage",
];

/// The names under which the guest's only program runs.
const APPLETS: &[&str] = &[
    "sh", "cat", "dd", "insmod", "mount", "poweroff", "sed", "sleep",
];

/// Writes `kernel` and `initramfs` to the directory that tests use: with the kernel for virtual machines, which starts in
/// half the time, or with that of an instruction set, which has the drivers of all buses.
pub(crate) fn run(name: Option<&str>) -> anyhow::Result<()> {
    let mut lab = crate::repository().join("target/hostlab");
    let mut folder = crate::repository().join("target/guest");
    let (packages, unpacked);
    if let Some(name) = name {
        let Architecture {
            name,
            debian,
            release,
            emulator,
        } = ARCHITECTURES
            .iter()
            .find(|it| it.name == name)
            .context("unknown instruction set")?;
        folder.push(name);
        let is_foreign = !emulator.is_empty();
        if is_foreign {
            lab.push(name);
            crate::qemus::fetch(&folder.join("qemu"), *release, "", emulator)?;
        }
        packages = Packages::of(&lab, *release, is_foreign.then_some(debian))?;
        let latest = format!("linux-image-{debian}");
        unpacked = super::unpacked_kernel(&packages, name, "", &latest)?;
    } else {
        packages = Packages::ready(&lab, super::RELEASE)?;
        let (version, suite) = super::KERNELS[0];
        unpacked = super::unpacked_kernel(&packages, version, suite, super::CLOUD)?;
    }
    fs::create_dir_all(&folder)?;
    let kernel = Kernel::find(&unpacked)?;
    let busybox = packages.unpacked("busybox", "", &["busybox-static"], |package| {
        package == "busybox-static"
    })?;
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
    let mut drivers = MODULES.to_vec();
    drivers.retain(|name| kernel.has(name));
    for (list, wanted) in [("order", &MODULES[..2]), ("all", &drivers)] {
        let mut order = String::new();
        for (name, bytes) in kernel.closure(wanted)? {
            order += &format!("{name}\n");
            archive.file(&format!("modules/{name}.ko"), bytes, false);
        }
        archive.file(&format!("modules/{list}"), order.into_bytes(), false);
    }
    archive.file("init", include_bytes!("guest/flushes.sh").to_vec(), true);
    fs::copy(&kernel.image, folder.join("kernel"))?;
    fs::write(folder.join("initramfs"), archive.bytes())?;
    println!("{}: kernel and initramfs", folder.display());
    Ok(())
}
