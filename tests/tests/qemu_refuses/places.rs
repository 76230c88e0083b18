//! Buses, units and slots.

use crate::row::{row, silent, try_rows};

#[test]
fn places_that_qemu_refuses_are_reported() {
    let mut rows = vec![
        row(
            "unit-out-of-range",
            "-drive file={a.raw},format=raw,if=floppy,index=2",
            "machine type does not support if=floppy,bus=0,unit=2",
            "-drive file={a.raw},format=raw,if=floppy,index=1",
        ),
        row(
            "unit-out-of-range",
            "-drive file={a.raw},format=raw,if=pflash,unit=2",
            "machine type does not support if=pflash,bus=0,unit=2",
            "",
        ),
        row(
            "boot-order-twice",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,bootindex=1 -device virtio-net-pci,bootindex=1",
            "The bootindex 1 has already been used",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,id=vda,bootindex=1 -device virtio-net-pci,bootindex=2",
        ),
        row(
            "missing-value",
            "-drive if=virtio",
            "Device needs media, but drive is empty",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "missing-value",
            "-drive if=ide",
            "Device needs media, but drive is empty",
            "-drive if=ide,media=cdrom",
        ),
        row(
            "missing-value",
            "-drive if=none,id=d0 -device virtio-blk-pci,drive=d0",
            "Device needs media, but drive is empty",
            "",
        ),
        row(
            "missing-value",
            "-device virtio-scsi-pci -drive if=none,id=d0 -device scsi-hd,drive=d0",
            "Device needs media, but drive is empty",
            "-device virtio-scsi-pci -drive if=none,id=d0 -device scsi-cd,drive=d0",
        ),
        row(
            "missing-value",
            "-drive if=none,id=d0 -device ide-hd,drive=d0",
            "Device needs media, but drive is empty",
            "-drive if=none,id=d0 -device ide-cd,drive=d0",
        ),
        row(
            "missing-value",
            "-device qemu-xhci -drive if=none,id=d0 -device usb-storage,drive=d0",
            "Device needs media, but drive is empty",
            "-device qemu-xhci -drive if=none,id=d0,media=cdrom -device usb-storage,drive=d0",
        ),
        row(
            "missing-value",
            "-device virtio-scsi-pci -drive if=none,id=d0 -device scsi-hd,drive=d0,removable=off",
            "Device needs media, but drive is empty",
            "-device virtio-scsi-pci -drive if=none,id=d0 -device scsi-hd,drive=d0,removable=on",
        ),
        row(
            "qcow2-cache-refused",
            "-drive file={a.qcow2},format=qcow2,if=virtio,l2-cache-size=1048576,cache-size=524288",
            "l2-cache-size may not exceed cache-size",
            "-drive file={a.qcow2},format=qcow2,if=virtio,l2-cache-size=524288,cache-size=1048576",
        ),
        row(
            "qcow2-cache-refused",
            "-drive file={a.qcow2},format=qcow2,if=virtio,cache-size=3M,l2-cache-size=1M,refcount-cache-size=1M",
            "cache-size, l2-cache-size and refcount-cache-size may not be set at the same time",
            "-drive file={a.qcow2},format=qcow2,if=virtio,l2-cache-size=524288,cache-size=1048576",
        ),
        row(
            "qcow2-cache-refused",
            "-drive file={a.qcow2},format=qcow2,if=virtio,l2-cache-entry-size=1000",
            "L2 cache entry size must be a power of two between 512 and the cluster size",
            "-drive file={a.qcow2},format=qcow2,if=virtio,l2-cache-size=524288,cache-size=1048576",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device scsi-hd,drive=f0",
            "No 'SCSI' bus found for device 'scsi-hd'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci -device scsi-hd,drive=f0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device usb-storage,drive=f0",
            "No 'usb-bus' bus found for device 'usb-storage'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device qemu-xhci -device usb-storage,drive=f0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme-ns,drive=f0",
            "No 'nvme-bus' bus found for device 'nvme-ns'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme,id=n0,serial=a -device nvme-ns,drive=f0,bus=n0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device floppy,drive=f0",
            "No 'floppy-bus' bus found for device 'floppy'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device isa-fdc -device floppy,drive=f0",
        ),
        row(
            "bus-missing",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0",
            "No 'PCI' bus found for device 'virtio-blk-pci'",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-device,drive=f0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-device,drive=f0",
            "No 'virtio-bus' bus found for device 'virtio-blk-device'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=nope",
            "Bus 'nope' not found",
            "",
        ),
        row(
            "bus-missing",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,bus=pcie.0",
            "Bus 'pcie.0' not found",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,bus=pci.0",
        ),
        row(
            "bus-missing",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0",
            "No 'PCI' bus found for device 'virtio-blk-pci'",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-device,drive=f0",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,addr=0x20",
            "Property 'virtio-blk-pci.addr' doesn't take value '0x20'",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,addr=0x1e",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,addr=5 -device virtio-scsi,addr=5",
            "PCI: slot 5 function 0 not available for virtio-scsi-pci, in use by virtio-blk-pci",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk,drive=f0,addr=5 -device virtio-scsi,addr=6",
        ),
        row(
            "bus-missing",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pcie.0",
            "Bus 'pcie.0' not found",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pci.0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pci.0",
            "Bus 'pci.0' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pcie.0",
        ),
        row(
            "bus-missing",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pci.1",
            "Bus 'pci.1' not found",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device pci-bridge,chassis_nr=1 -device virtio-blk-pci,drive=f0,bus=pci.1",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0",
            "Bus 's0' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=scsi.0",
            "Bus 'scsi.0' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci -device scsi-hd,drive=f0,bus=scsi.0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device qemu-xhci,id=u0 -device usb-storage,drive=f0,bus=usb-bus.0",
            "Bus 'usb-bus.0' not found",
            "-usb -blockdev driver=file,node-name=f0,filename={a.raw} -device usb-storage,drive=f0,bus=usb-bus.0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device pcie-root-port,id=rp -device virtio-blk-pci,drive=f0,bus=rp.0",
            "Bus 'rp.0' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device pcie-root-port,id=rp -device virtio-blk-pci,drive=f0,bus=rp",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme,id=n0,serial=a -device nvme-ns,drive=f0,bus=n0.0",
            "Bus 'n0.0' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme,serial=a -device nvme-ns,drive=f0,bus=nvme-bus.0",
        ),
        row(
            "bus-missing",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device virtio-blk-pci,drive=f0,bus=s0.0",
            "Device 'virtio-blk-pci' can't go on SCSI bus",
            "",
        ),
        row(
            "bus-missing",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=ide.0",
            "Device 'virtio-blk-pci' can't go on IDE bus",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0",
        ),
        row(
            "bus-missing",
            "-machine microvm -drive file={a.raw},format=raw,if=virtio",
            "No 'PCI' bus found for device 'virtio-blk-pci'",
            "-machine microvm,pcie=on -drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "bus-missing",
            "-machine microvm -drive file={a.raw},format=raw,if=ide",
            "machine type does not support if=ide,bus=0,unit=0",
            "-machine microvm -drive file={a.raw},format=raw,if=none,id=d0 -device virtio-blk-device,drive=d0",
        ),
        row(
            "bus-missing",
            "-machine microvm,pcie=on -drive file={a.raw},format=raw,if=scsi",
            "machine type does not support if=scsi,bus=0,unit=0",
            "-machine microvm,pcie=on -drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "bus-missing",
            "-machine microvm -drive file={a.raw},format=raw,if=floppy",
            "machine type does not support if=floppy,bus=0,unit=0",
            "",
        ),
        row(
            "bus-missing",
            "-machine microvm -drive file={a.raw},format=raw,if=sd",
            "machine type does not support if=sd,bus=0,unit=0",
            "",
        ),
        row(
            "bus-missing",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0",
            "No 'IDE' bus found for device 'ide-hd'",
            "-machine microvm,pcie=on -blockdev driver=file,node-name=f0,filename={a.raw} -device ahci -device ide-hd,drive=f0",
        ),
        row(
            "bus-missing",
            "-machine microvm -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0",
            "Bus 'ide.0' not found",
            "-machine microvm,pcie=on -blockdev driver=file,node-name=f0,filename={a.raw} -device ahci -device ide-hd,drive=f0,bus=ide.0",
        ),
        row(
            "slot-taken",
            "-drive if=none,index=0,file={a.raw},format=raw,id=d0 -drive if=none,index=0,file={b.raw},format=raw,id=d1",
            "drive with bus=0, unit=0 (index=0) exists",
            "-drive if=none,index=0,file={a.raw},format=raw,id=d0 -drive if=none,index=1,file={b.raw},format=raw,id=d1",
        ),
        row(
            "slot-taken",
            "-machine microvm -drive index=1,file={a.raw},format=raw,id=d0 -drive if=none,index=1,file={b.raw},format=raw,id=d1",
            "unit=0 (index=1) exists",
            "-machine microvm -drive index=1,file={a.raw},format=raw,id=d0 -drive if=none,file={b.raw},format=raw,id=d1",
        ),
        silent(
            "node-unused",
            "-machine microvm -drive file={a.raw},format=raw",
            "-machine microvm -drive file={a.raw},format=raw,id=d0 -device virtio-blk-device,drive=d0",
        ),
        silent(
            "node-unused",
            "-drive file={a.raw},format=raw,if=none",
            "-drive file={a.raw},format=raw,if=none -device virtio-blk-pci,drive=none0",
        ),
        row(
            "property-refused",
            "-drive file={a.raw},format=raw,if=virtio,boot=on",
            "does not support the option 'boot'",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "invalid-value",
            "-drive file={a.raw},format=raw,if=virtio,index=0,unit=3",
            "index cannot be used with bus and unit",
            "-drive file={a.raw},format=raw,if=virtio,index=0,bus=0",
        ),
        row(
            "missing-value",
            "-blockdev driver=raw,node-name=f0,file.filename={a.raw} -device virtio-blk-pci,drive=f0",
            "Parameter 'file.driver' is missing",
            "-blockdev driver=raw,node-name=f0,file.driver=file,file.filename={a.raw} -device virtio-blk-pci,drive=f0",
        ),
        row(
            "unit-out-of-range",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.2",
            "Bus 'ide.2' not found",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device ahci -device ide-hd,drive=f0,bus=ide.2",
        ),
        row(
            "drive-protocol-unknown",
            "-hda backup:a.img",
            "Unknown protocol 'backup'",
            "",
        ),
        row(
            "bus-missing",
            "-drive file={a.raw},format=raw,if=scsi",
            "machine type does not support if=scsi",
            "-drive file={a.raw},format=raw,if=virtio",
        ),
        row(
            "invalid-value",
            "-drive file={a.raw},format=raw,if=bogus",
            "unsupported bus type 'bogus'",
            "",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,lun=16384",
            "bad scsi device lun: 16384",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,lun=16383",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,scsi-id=300",
            "bad scsi device id: 300",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,scsi-id=255",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,channel=1",
            "bad scsi channel id: 1",
            "",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.6",
            "Bus 'ide.6' not found",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.5",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0,unit=1",
            "Can't create IDE unit 1, bus supports only 1 units",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0,unit=0",
        ),
        row(
            "unit-out-of-range",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0,unit=2",
            "Can't create IDE unit 2, bus supports only 2 units",
            "-machine pc -blockdev driver=file,node-name=f0,filename={a.raw} -device ide-hd,drive=f0,bus=ide.0,unit=1",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme,id=n0,serial=a -device nvme-ns,drive=f0,bus=n0,nsid=257",
            "invalid namespace id",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device nvme,id=n0,serial=a -device nvme-ns,drive=f0,bus=n0,nsid=256",
        ),
        row(
            "unit-out-of-range",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,addr=0x20",
            "doesn't take value|addr",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,addr=0x1e",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,scsi-id=0,lun=0 -device scsi-hd,drive=f1,bus=s0.0,scsi-id=0,lun=0",
            "lun already used by",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,scsi-id=0,lun=0 -device scsi-hd,drive=f1,bus=s0.0,scsi-id=0,lun=1",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device ide-hd,drive=f0,bus=ide.0 -device ide-hd,drive=f1,bus=ide.0",
            "Can't create IDE unit 1, bus supports only 1 units",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device ide-hd,drive=f0,bus=ide.0 -device ide-hd,drive=f1,bus=ide.1",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device nvme,id=n0,serial=a,drive=f0 -device nvme-ns,drive=f1,bus=n0,nsid=1",
            "is already in use|already allocated",
            "",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -device virtio-blk-pci,drive=f0,bus=pcie.0,addr=0x1f",
            "not available for virtio-blk-pci",
            "",
        ),
        row(
            "slot-taken",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f0,addr=0x5 -device virtio-blk-pci,drive=f1,addr=0x5",
            "not available for virtio-blk-pci",
            "-blockdev driver=file,node-name=f0,filename={a.raw} -blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f0,addr=0x5 -device virtio-blk-pci,drive=f1,addr=0x6",
        ),
    ];
    for (machine, kind, most, says) in [
        (
            "q35",
            "ide-hd",
            1,
            "Can't create IDE unit 1, bus supports only 1 units",
        ),
        ("pc", "ide-hd", 2, "is in use"),
        (
            "q35",
            "virtio-blk-pci",
            30,
            "PCI: no slot/function available for virtio-blk-pci",
        ),
        (
            "pc",
            "virtio-blk-pci",
            30,
            "PCI: no slot/function available for virtio-blk-pci",
        ),
    ] {
        rows.push(row(
            "slot-taken",
            crowd(machine, kind, most + 1),
            says,
            crowd(machine, kind, most),
        ));
    }
    try_rows("places", &rows);
}

/// A machine with many disks of one kind.
fn crowd(machine: &str, kind: &str, count: usize) -> &'static str {
    let mut options = format!("-machine {machine}");
    for nth in 0..count {
        options += &format!(
            " -blockdev driver=null-co,node-name=n{nth},size=1048576,read-zeroes=on -device {kind},drive=n{nth}"
        );
    }
    Box::leak(options.into_boxed_str())
}
