//! Formats, nodes and their options.

use crate::row::{Refusing, row, silent, try_rows};
use vmdisk::facts::Version;

#[test]
fn images_that_qemu_refuses_are_reported() {
    let rows = [
        row(
            "format-mismatch",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
            "Image is not in qcow2 format",
            "-blockdev driver=raw,node-name=q0,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "missing-value",
            "-blockdev driver=qcow2,node-name=q0,filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'file' is missing",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "property-refused",
            "-blockdev driver=raw,node-name=q0,aio=native,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'aio' is unexpected",
            "-blockdev driver=raw,node-name=q0,file.driver=file,file.filename={a.raw},file.aio=threads -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "property-refused",
            "-blockdev '{\"driver\":\"file\",\"node-name\":\"f0\",\"filename\":\"{a.raw}\",\"read-only\":\"on\"}' -device virtio-blk-pci,drive=f0,id=vda",
            "Invalid parameter type for 'read-only', expected: boolean",
            "-blockdev '{\"driver\":\"file\",\"node-name\":\"f0\",\"filename\":\"{a.raw}\",\"read-only\":true}' -device virtio-blk-pci,drive=f0,id=vda",
        ),
        row(
            "property-refused",
            "-blockdev driver=qcow2,node-name=q0,l2-cache-size=4M,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'l2-cache-size' expects",
            "-blockdev driver=qcow2,node-name=q0,l2-cache-size=4194304,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "web-source-writable",
            "-blockdev driver=http,node-name=h0,url=http://127.0.0.1:1/a.img -device virtio-blk-pci,drive=h0,id=vda",
            "curl driver does not support writes",
            "",
        ),
        row(
            "node-order",
            "-blockdev driver=qcow2,node-name=q0,file=f0 -blockdev driver=file,node-name=f0,filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Cannot find device=|node-name='f0'",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0 -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "missing-value",
            "-blockdev driver=qcow2,node-name=q0,file=nobody -device virtio-blk-pci,drive=q0,id=vda",
            "Cannot find device=|nobody",
            "",
        ),
        row(
            "name-refused",
            "-blockdev driver=file,node-name=abcdefghijklmnopqrstuvwxyz012345,filename={a.raw} -device virtio-blk-pci,drive=abcdefghijklmnopqrstuvwxyz012345,id=vda",
            "Node name too long",
            "-blockdev driver=file,node-name=abcdefghijklmnopqrstuvwxyz01234,filename={a.raw} -device virtio-blk-pci,drive=abcdefghijklmnopqrstuvwxyz01234,id=vda",
        ),
        row(
            "name-refused",
            "-blockdev driver=file,node-name=1a,filename={a.raw} -device virtio-blk-pci,drive=1a,id=vda",
            "Invalid node",
            "-blockdev driver=file,node-name=a1,filename={a.raw} -device virtio-blk-pci,drive=a1,id=vda",
        ),
        row(
            "name-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f0,filename={b.raw} -device virtio-blk-pci,drive=f0,id=vda",
            "Duplicate node",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda",
        ),
        row(
            "name-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=1x",
            "Parameter 'id' expects an identifier",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=x1",
        ),
        row(
            "name-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=x -device virtio-scsi-pci,id=x",
            "Duplicate ID 'x'|Duplicate device ID 'x'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=x -device virtio-scsi-pci,id=y",
        ),
        row(
            "qcow2-cache-refused",
            "-blockdev driver=qcow2,node-name=q0,cache-size=1048576,l2-cache-size=2097152,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "l2-cache-size may not exceed cache-size",
            "-blockdev driver=qcow2,node-name=q0,cache-size=2097152,l2-cache-size=1048576,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "qcow2-cache-refused",
            "-blockdev driver=qcow2,node-name=q0,cache-size=2097152,l2-cache-size=1048576,refcount-cache-size=1048576,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "cache-size, l2-cache-size and refcount-cache-size may not be set at the same time",
            "",
        ),
        row(
            "qcow2-cache-refused",
            "-blockdev driver=qcow2,node-name=q0,l2-cache-entry-size=1000,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "L2 cache entry size must be a power of two",
            "-blockdev driver=qcow2,node-name=q0,l2-cache-entry-size=4096,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "qcow2-v2-option",
            "-blockdev driver=qcow2,node-name=q0,discard-no-unref=on,file.driver=file,file.filename={v2.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "discard-no-unref",
            "",
        ),
        row(
            "backing-missing",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={gone.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "No such file or directory",
            "",
        ),
        row(
            "data-file-missing",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={split.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "No such file or directory",
            "",
        ),
        row(
            "encryption-secret-missing",
            "-blockdev driver=luks,node-name=q0,file.driver=file,file.filename={key.luks} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'key-secret' is required for cipher",
            "-object secret,id=s,file={secret} -blockdev driver=luks,node-name=q0,key-secret=s,file.driver=file,file.filename={key.luks} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "encryption-secret-missing",
            "-blockdev driver=luks,node-name=q0,key-secret=nobody,file.driver=file,file.filename={key.luks} -device virtio-blk-pci,drive=q0,id=vda",
            "No secret with id 'nobody'",
            "",
        ),
        row(
            "encryption-secret-missing",
            "-object secret,id=s,file={secret} -blockdev driver=qcow2,node-name=q0,encrypt.key-secret=s,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'encrypt.format' is missing",
            "",
        ),
        row(
            "qcow2-aes-encryption",
            "-object secret,id=s,file={secret} -blockdev driver=qcow2,node-name=q0,encrypt.format=aes,encrypt.key-secret=s,file.driver=file,file.filename={aes.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Use of AES-CBC encrypted qcow2 images is no longer supported in system emulators",
            "",
        ),
        row(
            "slice-unaligned",
            "-blockdev driver=raw,node-name=r0,size=1000,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=r0,id=vda",
            "Specified size is not multiple of 512",
            "-blockdev driver=raw,node-name=r0,size=1024,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=r0,id=vda",
        ),
        row(
            "drive-protocol-unknown",
            "-drive file=backup:a.raw,format=raw,if=virtio",
            "Unknown protocol 'backup'",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "property-refused",
            "-drive file={a.raw},format=raw,if=virtio,serial=abc",
            "does not support the option 'serial'",
            "-drive file={a.raw},format=raw,if=none,id=d0 -device virtio-blk-pci,drive=d0,serial=abc",
        ),
        row(
            "property-refused",
            "-object throttle-group,id=tg,limits.iops-total=100 -blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=throttle,node-name=t0,throttle-group=tg,file=f0 -device virtio-blk-pci,drive=t0,id=vda",
            "limits",
            "-object throttle-group,id=tg,x-iops-total=100 -blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=throttle,node-name=t0,throttle-group=tg,file=f0 -device virtio-blk-pci,drive=t0,id=vda",
        ),
        row(
            "missing-value",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=throttle,node-name=t0,throttle-group=tg,file=f0 -device virtio-blk-pci,drive=t0,id=vda",
            "Throttle group 'tg' does not exist",
            "",
        ),
        row(
            "throttle-limits-refused",
            "-drive file={a.raw},format=raw,if=virtio,throttling.iops-total=100,throttling.iops-read=10",
            "bps/iops/max total values and read/write values cannot be used at the same time",
            "-drive file={a.raw},format=raw,if=virtio,throttling.iops-write=100,throttling.iops-read=10",
        ),
        row(
            "throttle-limits-refused",
            "-drive file={a.raw},format=raw,if=virtio,throttling.iops-total-max=100",
            "bps_max/iops_max require corresponding bps/iops values",
            "-drive file={a.raw},format=raw,if=virtio,throttling.iops-total=50,throttling.iops-total-max=100",
        ),
        row(
            "throttle-limits-refused",
            "-drive file={a.raw},format=raw,if=virtio,throttling.bps-total=200,throttling.bps-total-max=100",
            "bps_max/iops_max cannot be lower than bps/iops",
            "-drive file={a.raw},format=raw,if=virtio,throttling.bps-total=200,throttling.bps-total-max=300",
        ),
        row(
            "throttle-limits-refused",
            "-drive file={a.raw},format=raw,if=virtio,throttling.bps-total=200,throttling.bps-total-max-length=9",
            "burst length",
            "",
        ),
        row(
            "missing-value",
            "-blockdev driver=host_device,node-name=f0,filename=/dev/null,pr-manager=nobody -device virtio-blk-pci,drive=f0,id=vda",
            "No persistent reservation manager with id 'nobody'",
            "",
        ),
        row(
            "property-refused",
            "-chardev '{\"id\":\"c0\",\"backend\":{\"type\":\"null\",\"data\":{}}}'",
            "",
            "-chardev null,id=c0",
        ),
        row(
            "encryption-mismatch",
            "-object secret,id=s,file={secret} -blockdev driver=luks,node-name=q0,key-secret=s,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
            "Volume is not in LUKS format",
            "-object secret,id=s,file={secret} -blockdev driver=luks,node-name=q0,key-secret=s,file.driver=file,file.filename={key.luks} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "encryption-mismatch",
            "-object secret,id=s,file={secret} -blockdev driver=luks,node-name=q0,key-secret=s,file.driver=file,file.filename={two.luks} -device virtio-blk-pci,drive=q0,id=vda",
            "LUKS version 2 is not supported",
            "",
        ),
        row(
            "encryption-mismatch",
            "-object secret,id=s,file={secret} -blockdev driver=qcow2,node-name=q0,encrypt.format=luks,encrypt.key-secret=s,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "No encryption in image header, but options specified format 'luks'",
            "-object secret,id=s,file={secret} -blockdev driver=qcow2,node-name=q0,encrypt.format=luks,encrypt.key-secret=s,file.driver=file,file.filename={luks.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "encryption-mismatch",
            "-object secret,id=s,file={secret} -blockdev driver=qcow2,node-name=q0,encrypt.format=aes,encrypt.key-secret=s,file.driver=file,file.filename={luks.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Header reported 'luks' encryption format but options specify 'aes'",
            "",
        ),
        row(
            "encryption-mismatch",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={luks.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Parameter 'encrypt.key-secret' is required for cipher",
            "",
        ),
        row(
            "data-file-unexpected",
            "-blockdev driver=qcow2,node-name=q0,data-file.driver=file,data-file.filename={b.raw},file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "'data-file' can only be set for images with an external data file",
            "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "qcow2-v2-option",
            "-blockdev driver=qcow2,node-name=q0,lazy-refcounts=on,file.driver=file,file.filename={v2.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "Lazy refcounts require a qcow2 image with at least qemu 1.1 compatibility level",
            "-blockdev driver=qcow2,node-name=q0,lazy-refcounts=on,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "slice-beyond-storage",
            "-blockdev driver=raw,node-name=q0,offset=1048576,size=16777216,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
            "has to be smaller or equal to the  actual size of the containing file",
            "-blockdev driver=raw,node-name=q0,offset=1048576,size=15728640,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "slice-beyond-storage",
            "-blockdev driver=raw,node-name=q0,offset=33554432,size=512,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=q0,id=vda",
            "cannot be greater than size of the containing file",
            "",
        ),
        row(
            "property-refused",
            "-drive file={a.raw},format=raw,if=virtio,bogus=1",
            "does not support the option 'bogus'",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "qcow2-cache-refused",
            "-blockdev driver=qcow2,node-name=q0,refcount-cache-size=2097152,cache-size=1048576,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
            "refcount-cache-size may not exceed cache-size",
            "-blockdev driver=qcow2,node-name=q0,refcount-cache-size=1048576,cache-size=2097152,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=q0,id=vda",
        ),
        row(
            "lun-refused",
            "-object throttle-group,id=tg,x-iops-total=100 -blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=throttle,node-name=t0,throttle-group=tg,file=f0 -device virtio-scsi-pci,id=s0 -device scsi-block,drive=t0,bus=s0.0",
            "Is this a SCSI device?",
            "",
        ),
    ];
    try_rows("images", &rows);
}

#[test]
fn the_versions_that_refuse_are_those_of_the_table() {
    let rows = [row(
        "property-refused",
        "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-disk,drive=f0,bus=s0.0",
        "is not a valid device model name|'scsi-disk'",
        "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0",
    )
    .by(Refusing::Since(Version(6, 0, 0)))];
    try_rows("versions", &rows);
}

#[test]
fn what_qemu_accepts_in_one_form_and_refuses_in_another_is_told_apart() {
    const DEVICE: &str = "-device virtio-blk-pci,drive=f0,id=vda";
    const IMAGE: &str = r#""driver":"file","filename":"{a.raw}""#;
    let node = |members: &str| -> &'static str {
        Box::leak(format!("-blockdev '{{{IMAGE},{members}}}' {DEVICE}").into_boxed_str())
    };
    let rows = [
        row(
            "duplicate-value",
            node(r#""node-name":"f1","node-name":"f0""#),
            "duplicate key",
            node(r#""node-name":"f0""#),
        ),
        // The option defines no node that a disk uses.
        row(
            "duplicate-value",
            node(r#""node-name":"f0","node-name":"f1""#),
            "duplicate key",
            "",
        ),
        row(
            "property-refused",
            node(r#""node-name":"f0","cache":{"no-flush":"on"}"#),
            "Invalid parameter type for 'cache.no-flush', expected: boolean",
            node(r#""node-name":"f0","cache":{"no-flush":true}"#),
        ),
        row(
            "invalid-value",
            "-blockdev driver=qcow2,node-name=f0,cache-size=16M,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
            "expects integer|Invalid parameter type|expects a number",
            "-drive if=none,id=d0,file={a.qcow2},format=qcow2,cache-size=16M -device virtio-blk-pci,drive=d0,id=vda",
        ),
        row(
            "invalid-value",
            "-drive if=none,id=d0,file={a.raw},format=raw,rerror=enospc -device virtio-blk-pci,drive=d0,id=vda",
            "invalid read error action",
            "-drive if=none,id=d0,file={a.raw},format=raw -device virtio-blk-pci,drive=d0,id=vda,rerror=report",
        ),
        row(
            "block-size-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096,physical_block_size=0",
            "logical_block_size > physical_block_size not supported",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,logical_block_size=0,physical_block_size=4096",
        ),
        row(
            "missing-value",
            "-drive if=none,id=c0,media=cdrom,cache=none -device ide-cd,drive=c0,id=sda",
            "Must specify either driver or file",
            "-drive if=none,id=c0,media=cdrom,readonly=on -device ide-cd,drive=c0,id=sda",
        ),
        row(
            "missing-value",
            "-drive file=rbd:web1,format=raw,if=virtio",
            "Pool name is required",
            "",
        ),
        row(
            "missing-value",
            "-blockdev driver=rbd,node-name=f0,image=web1 -device virtio-blk-pci,drive=f0,id=vda",
            "Parameter 'pool' is missing",
            "",
        ),
        row(
            "missing-value",
            "-blockdev driver=rbd,node-name=f0,pool=vms -device virtio-blk-pci,drive=f0,id=vda",
            "Parameter 'image' is missing",
            "",
        ),
        row(
            "fat-directory-refused",
            "-drive file=fat:{folder},format=raw,if=virtio",
            "Block node is read-only",
            "-drive file=fat:{folder},format=raw,if=virtio,read-only=on",
        ),
        row(
            "fat-directory-refused",
            "-machine pc -hda fat:{folder}",
            "Block node is read-only",
            "-machine pc -drive file=fat:{folder},format=raw,if=virtio,read-only=on",
        ),
        row(
            "fat-directory-refused",
            "-device virtio-scsi-pci -drive file=fat:{folder},format=raw,if=none,id=d0 -device scsi-hd,drive=d0",
            "Block node is read-only",
            "-device virtio-scsi-pci -drive file=fat:{folder},format=raw,if=none,id=d0 -device scsi-cd,drive=d0",
        ),
        row(
            "fat-directory-refused",
            "-drive file=fat:rw:{folder},format=raw,if=virtio,read-only=on",
            "Unable to set VVFAT to 'rw' when drive is read-only",
            "-drive file=fat:rw:{folder},format=raw,if=virtio",
        ),
        row(
            "fat-directory-refused",
            "-drive file=fat:rw:{folder},format=raw,if=virtio,snapshot=on",
            "Unable to set VVFAT to 'rw' when drive is read-only",
            "-drive file=fat:{folder},format=raw,if=virtio,snapshot=on",
        ),
        row(
            "fat-directory-refused",
            "-snapshot -drive file=fat:rw:{folder},format=raw,if=virtio",
            "Unable to set VVFAT to 'rw' when drive is read-only",
            "-snapshot -drive file=fat:{folder},format=raw,if=virtio",
        ),
        row(
            "fat-directory-refused",
            "-blockdev driver=vvfat,node-name=f0,dir={folder} -device virtio-blk-pci,drive=f0,id=vda",
            "Image is read-only",
            "-blockdev driver=vvfat,node-name=f0,dir={folder},read-only=on -device virtio-blk-pci,drive=f0,id=vda",
        ),
        row(
            "fat-directory-refused",
            "-blockdev driver=vvfat,node-name=f0,dir={folder},rw=on,read-only=on -device virtio-blk-pci,drive=f0,id=vda",
            "Unable to set VVFAT to 'rw' when drive is read-only",
            "-blockdev driver=vvfat,node-name=f0,dir={folder},rw=on -device virtio-blk-pci,drive=f0,id=vda",
        ),
        silent(
            "fat-directory-writable",
            "-drive file=fat:rw:{folder},format=raw,if=virtio",
            "-drive file=fat:{folder},format=raw,if=virtio,read-only=on",
        ),
        row(
            "sd-card-size-refused",
            "-device sdhci-pci -drive file={odd.raw},format=raw,if=none,id=d0 -device sd-card,drive=d0",
            "Invalid SD card size",
            "-device sdhci-pci -drive file={a.raw},format=raw,if=none,id=d0 -device sd-card,drive=d0",
        ),
        row(
            "missing-value",
            "-drive if=none,id=c0,media=cdrom,format=raw -device ide-cd,drive=c0,id=sda",
            "must be specified for \"file\"",
            "-drive if=none,id=c0,media=cdrom -device ide-cd,drive=c0,id=sda",
        ),
    ];
    try_rows("forms", &rows);
}
