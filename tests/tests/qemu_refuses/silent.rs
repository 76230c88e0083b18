//! What QEMU takes without a word, and does not do or not as it says.

use crate::row::{Refusing, row, silent, try_rows};
use vmdisk::facts::Version;

#[test]
fn what_qemu_takes_in_silence_is_reported() {
    const A: &str = "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda";
    let rows = [
        silent(
            "discard-on-one-node",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap -device virtio-blk-pci,drive=q0,id=vda",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2},discard=unmap -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap -device virtio-blk-pci,drive=q0,id=vda",
        ),
        silent(
            "direct-on-one-node",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,cache.direct=on -device virtio-blk-pci,drive=q0,id=vda",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2},cache.direct=on -blockdev driver=qcow2,node-name=q0,file=f0,cache.direct=on -device virtio-blk-pci,drive=q0,id=vda",
        ),
        silent(
            "read-only-on-one-node",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2} -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on -device virtio-blk-pci,drive=q0,id=vda",
            "-blockdev driver=file,node-name=f0,filename={a.qcow2},read-only=on -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on -device virtio-blk-pci,drive=q0,id=vda",
        ),
        silent(
            "detect-zeroes-unmap-no-discard",
            "-drive file={a.raw},format=raw,if=virtio,detect-zeroes=unmap",
            "-drive file={a.raw},format=raw,if=virtio,detect-zeroes=unmap,discard=unmap",
        ),
        silent(
            "snapshot-ignored-by-blockdev",
            "-snapshot -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda",
            "-snapshot -drive file={a.raw},format=raw,if=virtio",
        ),
        silent(
            "locking-off",
            "-blockdev driver=file,node-name=f0,filename={a.raw},locking=off -device virtio-blk-pci,drive=f0,id=vda",
            A,
        ),
        silent(
            "format-mismatch",
            "-blockdev driver=raw,node-name=f0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
            "-blockdev driver=qcow2,node-name=f0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
        ),
        silent(
            "overlay-smaller-than-backing",
            "-blockdev driver=qcow2,node-name=f0,file.driver=file,file.filename={small.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
            "-blockdev driver=qcow2,node-name=f0,file.driver=file,file.filename={a.qcow2} -device virtio-blk-pci,drive=f0,id=vda",
        ),
        silent(
            "image-empty",
            "-blockdev driver=file,node-name=f0,filename={empty.raw} -device virtio-blk-pci,drive=f0,id=vda",
            A,
        ),
        silent(
            "serial-too-long",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,serial=123456789012345678901",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,serial=12345678901234567890",
        ),
        silent(
            "serial-too-long",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,id=sda,bus=ide.0,serial=123456789012345678901",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,id=sda,bus=ide.0,serial=12345678901234567890",
        ),
        silent(
            "queue-size-refused",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0,virtqueue_size=1000 -device scsi-hd,drive=f0,bus=s0.0",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0,virtqueue_size=512 -device scsi-hd,drive=f0,bus=s0.0",
        ),
        silent(
            "queues-gt-vcpus",
            "-smp 2 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=8",
            "-smp 2 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=2",
        ),
        silent(
            "vectors-too-few",
            "-smp 4 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=4,vectors=0",
            "-smp 4 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=4,vectors=5",
        ),
        silent(
            "invalid-value",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,rerror=enospc",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,rerror=report",
        ),
        silent(
            "duplicate-value",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,num-queues=2,num-queues=1",
            A,
        ),
        silent(
            "cache-contradicted",
            "-drive file={a.raw},format=raw,if=virtio,cache=none,cache.direct=off",
            "-drive file={a.raw},format=raw,if=virtio,cache=none",
        ),
        silent(
            "slice-unaligned",
            "-blockdev driver=raw,node-name=f0,offset=100,size=1048576,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda",
            "-blockdev driver=raw,node-name=f0,offset=512,size=1048576,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda",
        ),
        silent(
            "node-unused",
            "-blockdev driver=file,node-name=f0,filename={a.raw}",
            A,
        ),
        silent(
            "node-unused",
            "-drive file={a.raw},format=raw,if=none,id=d0",
            A,
        ),
        silent(
            "format-missing",
            "-drive file={a.raw},if=virtio",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
    ];
    try_rows("silent", &rows);
    let rows = [
        // A second device behind a root port: invisible before 10.0, told of since.
        silent("slot-taken", "-device pcie-root-port,id=rp0,chassis=1,slot=1 -blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f0,bus=rp0,addr=0 -device virtio-blk-pci,drive=f1,bus=rp0,addr=1", "-device pcie-root-port,id=rp0,chassis=1,slot=1 -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=rp0"),
        row("serial-too-long", "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,serial=12345678901234567890123456789012345678,device_id=a", "36 characters", "").by(Refusing::Since(Version(10, 0, 0))),
    ];
    try_rows("silent", &rows);
}
