//! How requests reach the host.

use std::process::{Command, Stdio};

use crate::row::{Refusing, Row, row, try_rows};
use vmdisk::facts::Version;
use vmdisk_tests::{on_each_qemu, real};

const F: &str = "-device virtio-blk-pci,drive=f0,id=vda";

/// Rows whose device is always the same.
fn with_device(rows: &[Row]) -> Vec<Row> {
    let full = |options: &'static str| -> &'static str {
        if options.is_empty() || options.contains("-drive") {
            return options;
        }
        Box::leak(format!("{options} {F}").into_boxed_str())
    };
    rows.iter()
        .map(|row| Row {
            refused: full(row.refused),
            mended: full(row.mended),
            ..*row
        })
        .collect()
}

#[test]
fn host_io_that_qemu_refuses_is_reported() {
    let rows = [
        row(
            "native-without-direct",
            "-blockdev driver=file,node-name=f0,filename={a.raw},aio=native",
            "aio=native was specified, but it requires cache.direct=on",
            "-blockdev driver=file,node-name=f0,filename={a.raw},aio=native,cache.direct=on",
        ),
        row(
            "native-without-direct",
            "-drive file={a.raw},format=raw,if=virtio,aio=native,cache=writeback",
            "aio=native was specified, but it requires cache.direct=on",
            "-drive file={a.raw},format=raw,if=virtio,aio=native,cache=none",
        ),
        row(
            "invalid-value",
            "-blockdev driver=file,node-name=f0,filename={a.raw},aio=bogus",
            "Invalid parameter 'bogus'|does not accept value 'bogus'",
            "-blockdev driver=file,node-name=f0,filename={a.raw},aio=threads",
        ),
        row(
            "detect-zeroes-unmap-no-discard",
            "-blockdev driver=file,node-name=f0,filename={a.raw},detect-zeroes=unmap",
            "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap",
            "-blockdev driver=file,node-name=f0,filename={a.raw},detect-zeroes=unmap,discard=unmap",
        ),
        row(
            "source-kind-mismatch",
            "-blockdev driver=host_device,node-name=f0,filename={a.raw}",
            "expects either a character or block device|to be either a character or block device",
            "-blockdev driver=file,node-name=f0,filename={a.raw}",
        ),
        row(
            "source-kind-mismatch",
            "-blockdev driver=file,node-name=f0,filename={folder}",
            "Is a directory|to be a regular file",
            "",
        ),
        row(
            "source-kind-mismatch",
            "-blockdev driver=file,node-name=f0,filename=/dev/null",
            "'file' driver requires '/dev/null' to be a regular file",
            "",
        )
        .by(Refusing::Since(Version(6, 0, 0))),
        row(
            "source-missing",
            "-blockdev driver=file,node-name=f0,filename={missing.raw}",
            "No such file or directory",
            "",
        ),
        row(
            "image-size-unaligned",
            "-blockdev driver=file,node-name=f0,filename={odd.raw},cache.direct=on",
            "Image size is not a multiple of request alignment",
            "-blockdev driver=file,node-name=f0,filename={odd.raw}",
        )
        .by(Refusing::Before(Version(11, 1, 0))),
        row(
            "missing-value",
            "-blockdev driver=file,node-name=f0,filename=/dev/fdset/9",
            "fdset",
            "",
        ),
        row(
            "property-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw},cache=none",
            "cache",
            "-blockdev driver=file,node-name=f0,filename={a.raw},cache.direct=on",
        ),
        row(
            "property-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw},cache.writeback=on",
            "Parameter 'cache.writeback' is unexpected",
            "",
        ),
        row(
            "missing-value",
            "-blockdev node-name=f0,filename={a.raw}",
            "Parameter 'driver' is missing",
            "",
        ),
    ];
    try_rows("host_io", &with_device(&rows));
}

/// What a QEMU refuses for the file system that the image `/mnt/a.raw` is on.
struct Mounted {
    /// Makes the file system at `/mnt`, with the image.
    script: &'static str,
    /// Members of the node.
    node: &'static str,
    rule: &'static str,
    says: &'static str,
}

const MOUNTED: [Mounted; 2] = [
    Mounted {
        script: "mount -t tmpfs none /mnt && truncate -s 1M /mnt/a.raw && mount -o remount,ro /mnt",
        node: "",
        rule: "read-only-filesystem",
        says: "Read-only file system",
    },
    Mounted {
        script: "mount -t ramfs none /mnt && truncate -s 1M /mnt/a.raw",
        node: ",cache.direct=on",
        rule: "odirect-unsupported",
        says: "filesystem does not support O_DIRECT",
    },
];

#[test]
fn a_host_without_o_direct_and_one_mounted_read_only_are_real_refusals_too() {
    // Only a mount of one's own shows them, which needs a namespace.
    let inside = |script: &str| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
    };
    let test = "file systems that refuse";
    let folder = tempfile::tempdir().unwrap();
    let guest = folder.path().join("guest.args");
    for mounted in &MOUNTED {
        let Mounted {
            script,
            node,
            rule,
            says,
        } = mounted;
        // Not every user may remount in a namespace.
        let may_mount = inside(script).is_ok_and(|it| it.status.success());
        let needs = format!("the right to `{script}` in a namespace");
        if !real(may_mount, test, &needs) {
            continue;
        }
        let words = format!(
            "-nodefaults -machine q35 -blockdev driver=file,node-name=f0,filename=/mnt/a.raw{node} {F}"
        );
        std::fs::write(&guest, format!("qemu-system-x86_64 {words}\n")).unwrap();
        let linter = env!("CARGO_BIN_EXE_vmdisk-under-test");
        let lint = format!(
            "{script} && exec {linter} lint --live --format concise {}",
            guest.display()
        );
        let output = inside(&lint).unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            said.contains(&format!("error[{rule}]")),
            "{rule}: {output:?}"
        );
        on_each_qemu(test, |qemu| {
            let emulator = qemu.emulator();
            let start = format!(
                "{script} && exec '{}' -S -display none -accel tcg {words}",
                emulator.display()
            );
            let output = inside(&start).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(says), "{said}");
        });
    }
}
