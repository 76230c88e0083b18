//! How requests reach the host.

use crate::row::{Refusing, Row, row, try_rows};
use vmdisk::facts::Version;

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

#[test]
fn a_host_without_o_direct_and_one_mounted_read_only_are_real_refusals_too() {
    // Only a mount of one's own shows them, which needs a namespace; see `refused_by_programs` of vmdisk-rules.
    let unshare = ["--user", "--map-root-user", "--mount"];
    let may_mount = std::process::Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", "mount -t tmpfs none /mnt"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !vmdisk_tests::real(
        may_mount,
        "read-only file system",
        "the right to mount in a namespace",
    ) {
        return;
    }
    vmdisk_tests::on_each_qemu("read-only file system", |qemu| {
        let script = format!(
            "mount -t tmpfs none /mnt && truncate -s 1M /mnt/a.raw && mount -o remount,ro /mnt && \
             exec '{}' -S -display none -nodefaults -accel tcg -blockdev driver=file,node-name=f0,filename=/mnt/a.raw",
            qemu.emulator().display()
        );
        let output = std::process::Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", &script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("Read-only file system"),
            "{said}"
        );
    });
}
