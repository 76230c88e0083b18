//! The contents of the guest's initramfs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use vmdisk_bench_runner::guest::{Archive, Kernel};

use super::stacks::Stack;

/// The programs for the guest, by path in Debian's packages.
const PROGRAMS: &[&str] = &[
    "bin/dash",
    "bin/cat",
    "bin/chmod",
    "bin/cp",
    "bin/dd",
    "bin/dmesg",
    "bin/ln",
    "bin/ls",
    "bin/mkdir",
    "bin/mount",
    "bin/readlink",
    "bin/rm",
    "bin/rmdir",
    "bin/sleep",
    "bin/sync",
    "bin/touch",
    "bin/true",
    "bin/udevadm",
    "bin/umount",
    "bin/kmod",
    "sbin/blkid",
    "sbin/blkdiscard",
    "sbin/blockdev",
    "sbin/cryptsetup",
    "sbin/dmsetup",
    "sbin/losetup",
    "sbin/lvm",
    "sbin/mdadm",
    "sbin/mkfs.btrfs",
    "bin/btrfs",
    "sbin/mke2fs",
    "sbin/mkfs.xfs",
    "sbin/mkswap",
    "sbin/swapon",
    "sbin/swapoff",
    "sbin/sfdisk",
    "sbin/wipefs",
    "usr/bin/chattr",
    "usr/bin/cut",
    "usr/bin/fallocate",
    "usr/bin/head",
    "usr/bin/fio",
    "usr/bin/setpriv",
    "usr/bin/sha256sum",
    "usr/bin/tail",
    "usr/bin/tr",
    "usr/bin/truncate",
    "usr/sbin/make-bcache",
    "usr/sbin/nvme",
    "usr/sbin/pdata_tools",
    "lib/udev/scsi_id",
    "lib/udev/ata_id",
];

/// Other names of programs.
const LINKS: &[(&str, &str)] = &[
    ("bin/sh", "dash"),
    ("lib/systemd/systemd-udevd", "../../bin/udevadm"),
    ("sbin/insmod", "../bin/kmod"),
    ("sbin/modprobe", "../bin/kmod"),
    ("sbin/mkfs.ext4", "mke2fs"),
    ("sbin/pvcreate", "lvm"),
    ("sbin/pvremove", "lvm"),
    ("sbin/vgcreate", "lvm"),
    ("sbin/vgremove", "lvm"),
    ("sbin/vgchange", "lvm"),
    ("sbin/lvcreate", "lvm"),
    ("sbin/lvremove", "lvm"),
    ("sbin/lvchange", "lvm"),
    ("sbin/lvs", "lvm"),
    ("sbin/lvmconfig", "lvm"),
    ("sbin/pvscan", "lvm"),
    ("usr/sbin/thin_check", "pdata_tools"),
];

/// The kernel modules for the stacks.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "virtio_console",
    "virtio_rng",
    "sd_mod",
    "nvme",
    "dm_mod",
    "dm_thin_pool",
    "dm_snapshot",
    "dm_crypt",
    "dm_multipath",
    "dm_round_robin",
    "raid1",
    "raid456",
    "bcache",
    "loop",
    "lzo-rle",
    "zram",
    "bfq",
    "kyber-iosched",
    "ext4",
    "xfs",
    "btrfs",
    "overlay",
    "virtiofs",
    "crc32c_generic",
    "xts",
    "ecb",
    "aes_generic",
    "sha256_generic",
    "af_alg",
    "algif_skcipher",
    "algif_hash",
];

/// The programs built from this repository.
#[derive(Debug)]
pub(crate) struct Ours {
    /// The command.
    pub(crate) vmdisk: PathBuf,
    /// The guest's helper program.
    pub(crate) inside: PathBuf,
}

/// Builds the archive for one kernel.
pub(crate) fn archive(
    debian: &Path,
    kernel: &Kernel,
    ours: &Ours,
    stacks: &[&Stack],
    rounds: u32,
) -> anyhow::Result<Archive> {
    let mut archive = Archive::default();
    for folder in [
        "dev", "proc", "sys", "run", "tmp", "root", "srv", "etc/lvm", "var/lib", "mnt",
    ] {
        archive.folder(folder);
    }
    archive.character_device("dev/console", 5, 1);
    for program in PROGRAMS {
        let bytes = read(&find(debian, program)?)?;
        archive.file(program, bytes, true);
    }
    for (name, target) in LINKS {
        archive.link(name, target);
    }
    libraries(debian, &mut archive)?;
    rules(debian, &mut archive)?;
    archive.file("usr/bin/vmdisk", read(&ours.vmdisk)?, true);
    archive.file("usr/bin/lab-inside", read(&ours.inside)?, true);
    let mut order = String::new();
    for (name, bytes) in kernel.closure(MODULES)? {
        order += &format!("{name}\n");
        archive.file(&format!("lab/modules/{name}.ko"), bytes, false);
    }
    archive.file("lab/modules/order", order.into_bytes(), false);
    let names: String = stacks
        .iter()
        .map(|stack| format!("{}\n", stack.name))
        .collect();
    archive.file("lab/stacks/order", names.into_bytes(), false);
    for stack in stacks {
        let path = format!("lab/stacks/{}.sh", stack.name);
        archive.file(&path, stack.script.as_bytes().to_vec(), false);
    }
    archive.file("lab/rounds", format!("{rounds}\n").into_bytes(), false);
    archive.file("init", include_bytes!("guest/init.sh").to_vec(), true);
    archive.file(
        "etc/lvm/lvm.conf",
        include_bytes!("guest/lvm.conf").to_vec(),
        false,
    );
    // udev's rules name these groups.
    archive.file(
        "etc/passwd",
        b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n".to_vec(),
        false,
    );
    let groups = "root:x:0:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\nkmem:x:15:\ndialout:x:20:\ncdrom:x:24:\ntape:x:26:\n\
                  audio:x:29:\nvideo:x:44:\nsgx:x:103:\nrender:x:104:\nkvm:x:105:\ninput:x:106:\nnogroup:x:65534:\n";
    archive.file("etc/group", groups.as_bytes().to_vec(), false);
    archive.file(
        "etc/os-release",
        read(&debian.join("usr/lib/os-release")).unwrap_or_default(),
        false,
    );
    Ok(archive)
}

pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Finds a program in a package, with or without the merged `usr`.
pub(super) fn find(debian: &Path, program: &str) -> anyhow::Result<PathBuf> {
    let other = match program.strip_prefix("usr/") {
        Some(rest) => rest.to_owned(),
        None => format!("usr/{program}"),
    };
    [program, &other]
        .into_iter()
        .map(|path| debian.join(path))
        .find(|path| path.is_file())
        .with_context(|| format!("no package contains {program}"))
}

/// Adds every shared library of the packages; the loader finds the ones it needs.
fn libraries(debian: &Path, archive: &mut Archive) -> anyhow::Result<()> {
    /// Needed only by interpreters that the guest does not have.
    const LEFT_OUT: &[&str] = &["libperl", "libpython", "libsqlite", "libc_malloc_debug"];
    let mut found = 0;
    for folder in [
        "lib/x86_64-linux-gnu",
        "usr/lib/x86_64-linux-gnu",
        // fio is linked against all its storage backends.
        "usr/lib/x86_64-linux-gnu/ceph",
        "lib64",
        "lib/systemd",
    ] {
        let Ok(entries) = fs::read_dir(debian.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            if !name.contains(".so") || LEFT_OUT.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            // All libraries go to the loader's default directories.
            let inside = if folder == "lib64" {
                "lib64"
            } else {
                "lib/x86_64-linux-gnu"
            };
            if path.is_symlink() {
                let target = fs::read_link(&path)?;
                let base = target
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default();
                // The loader is a single file in both directories.
                let target = if folder == "lib64" {
                    format!("/lib/x86_64-linux-gnu/{base}")
                } else {
                    base
                };
                if target != name {
                    archive.link(&format!("{inside}/{name}"), &target);
                }
            } else if path.is_file() {
                found += 1;
                archive.file(&format!("{inside}/{name}"), read(&path)?, true);
            }
        }
    }
    ensure!(found > 0, "no package contains a library");
    Ok(())
}

fn rules(debian: &Path, archive: &mut Archive) -> anyhow::Result<()> {
    for folder in ["lib/udev/rules.d", "usr/lib/udev/rules.d"] {
        let Ok(entries) = fs::read_dir(debian.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            // These rules start arrays and volumes automatically, which the stacks do themselves.
            let starts = ["69-lvm", "64-md-raid-assembly", "69-md", "80-drivers"];
            if path.is_file() && !starts.iter().any(|prefix| name.starts_with(prefix)) {
                archive.file(&format!("lib/udev/rules.d/{name}"), read(&path)?, false);
            }
        }
    }
    Ok(())
}
