//! Locks, and nodes that several use.

use crate::row::{row, try_rows};

#[test]
fn sharing_that_qemu_refuses_is_reported() {
    let rows = [
        row(
            "node-used-twice",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda -device virtio-blk-pci,drive=f0,id=vdb",
            "Conflicts with use by|Permission conflict on node",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,share-rw=on -device virtio-blk-pci,drive=f0,id=vdb,share-rw=on",
        ),
        row(
            "node-used-twice",
            "-drive file={a.raw},format=raw,if=none,id=d0 -device virtio-blk-pci,drive=d0,id=vda -device virtio-blk-pci,drive=d0,id=vdb",
            "Drive 'd0' is already in use",
            "-drive file={a.raw},format=raw,if=none,id=d0 -device virtio-blk-pci,drive=d0,id=vda",
        ),
        row(
            "node-used-twice",
            "-drive file={a.raw},format=raw,id=d0 -device virtio-blk-pci,drive=d0,id=vda",
            "already in use because it has been automatically connected",
            "-drive file={a.raw},format=raw,if=none,id=d0 -device virtio-blk-pci,drive=d0,id=vda",
        ),
        row(
            "duplicate-disk-source",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda -device virtio-blk-pci,drive=f1,id=vdb",
            "Failed to get \"write\" lock|Failed to get shared \"write\" lock",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f0,id=vda -device virtio-blk-pci,drive=f1,id=vdb",
        ),
        row(
            "force-share-writable",
            "-blockdev driver=file,node-name=f0,filename={a.raw},force-share=on -device virtio-blk-pci,drive=f0,id=vda",
            "force-share=on can only be used with read-only images",
            "-blockdev driver=file,node-name=f0,filename={a.raw},force-share=on,read-only=on -device virtio-blk-pci,drive=f0,id=vda",
        ),
    ];
    try_rows("sharing", &rows);
}
