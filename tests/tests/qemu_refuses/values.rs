//! Values of a wrong type or range, and options at a wrong place.

use crate::row::{Row, row, try_rows};

const DRIVE: &str = "-drive if=none,id=d0,file={a.raw}";
const DEVICE: &str = "-device virtio-blk-pci,drive=d0";

/// A row about options of a `-drive`; one of the parted messages is QEMU's.
fn drive(rule: &'static str, refused: &str, says: &'static str, mended: &str) -> Row {
    let full = |options: &str| -> &'static str {
        Box::leak(format!("{DRIVE},{options} {DEVICE}").into_boxed_str())
    };
    row(rule, full(refused), says, full(mended))
}

/// A row about properties of a device, after its driver.
fn device(rule: &'static str, refused: &str, says: &'static str, mended: &str) -> Row {
    let full = |options: &str| -> &'static str {
        Box::leak(format!("{DRIVE},format=raw {options}").into_boxed_str())
    };
    row(rule, full(refused), says, full(mended))
}

#[test]
fn values_that_qemu_refuses_are_reported() {
    const PROPERTY: &str = "property-refused";
    const LIMITS: &str = "throttle-limits-refused";
    const PLACE: &str = "unit-out-of-range";
    const SWITCH: &str = "expects 'on' or 'off'";
    const RANGE: &str = "must be within [0, 1000000000000000]";
    const UNSIGNED: &str = "expects uint";
    const USB: &str = "-device qemu-xhci,id=usb -device usb-storage,drive=d0,bus=usb.0";
    let usb = |port: &str| format!("{USB},port={port}");
    let rows = [
        drive(
            PROPERTY,
            "format=raw,locking=off",
            "does not support the option 'locking'",
            "format=raw,file.locking=off",
        ),
        drive(
            PROPERTY,
            "format=raw,l2-cache-size=1M",
            "does not support the option 'l2-cache-size'",
            "driver=raw,size=512,offset=512",
        ),
        drive(
            PROPERTY,
            "format=raw,driver=raw",
            "Cannot specify both 'driver' and 'format'",
            "driver=raw",
        ),
        drive(
            PROPERTY,
            "format=raw,copy-on-read=maybe",
            SWITCH,
            "format=raw,copy-on-read=no",
        ),
        drive(
            PROPERTY,
            "format=raw,snapshot=1",
            SWITCH,
            "format=raw,snapshot=y",
        ),
        drive(
            PROPERTY,
            "format=raw,stats-account-invalid=x",
            SWITCH,
            "format=raw,stats-account-invalid=off",
        ),
        drive(
            PROPERTY,
            "format=raw,index=a",
            "expects a number",
            "format=raw,unit=-1",
        ),
        drive(
            PROPERTY,
            "format=raw,bps=1T",
            "expects a number",
            "format=raw,bps=0x1000",
        ),
        drive(PROPERTY, "format=raw,iops=-1", RANGE, "format=raw,iops=1"),
        drive(
            PROPERTY,
            "format=raw,file.locking=maybe",
            "invalid parameter value: maybe",
            "format=raw,file.locking=auto",
        ),
        drive(
            LIMITS,
            "format=raw,bps=1000000000000001",
            RANGE,
            "format=raw,bps=1000000000000000",
        ),
        drive(
            LIMITS,
            "format=raw,iops_size=4096",
            "iops size requires an iops value to be set",
            "format=raw,iops=1,iops_size=4096",
        ),
        drive(
            LIMITS,
            "format=raw,throttling.iops-total=1,throttling.iops-total-max=9,throttling.iops-total-max-length=0",
            "the burst length cannot be 0",
            "format=raw,throttling.iops-total=1,throttling.iops-total-max=9,throttling.iops-total-max-length=1",
        ),
        drive(
            "slice-unaligned",
            "format=raw,size=700",
            "Specified size is not multiple of 512",
            "format=raw,size=512",
        ),
        drive(
            "force-share-writable",
            "format=raw,force-share=on",
            "can only be used with read-only images",
            "format=raw,force-share=on,snapshot=on",
        ),
        device(
            "bus-missing",
            "-device virtio-blk-pci,drive=d0,bus=isa.0",
            "can't go on ISA bus",
            "-device virtio-blk-pci,drive=d0,bus=pcie.0",
        ),
        device(
            PLACE,
            &usb("9"),
            "usb port 9 (bus usb.0) not found",
            &usb("4"),
        ),
        device(
            PLACE,
            &usb("0"),
            "usb port 0 (bus usb.0) not found",
            &usb("1"),
        ),
        device(
            PLACE,
            &usb("1.9"),
            "usb port 1.9 (bus usb.0) not found",
            USB,
        ),
        device(
            PLACE,
            "-device virtio-blk-pci,drive=d0,addr=5.8",
            "doesn't take value",
            "-device virtio-blk-pci,drive=d0,addr=0x5.0x1",
        ),
        device(
            PROPERTY,
            "-device virtio-blk-pci,drive=d0,vectors=-1",
            UNSIGNED,
            "-device virtio-blk-pci,drive=d0,bootindex=-2",
        ),
        device(
            PROPERTY,
            "-device ide-hd,drive=d0,unit=-1",
            UNSIGNED,
            "-device ide-hd,drive=d0,unit=0",
        ),
        device(
            "invalid-value",
            "-device virtio-blk-pci,drive=d0,cyls=70000,heads=1,secs=1",
            "cyls must be between 1 and 65535",
            "-device virtio-blk-pci,drive=d0,cyls=65535,heads=255,secs=255",
        ),
        row(
            PROPERTY,
            "-blockdev driver=file,node-name=d0,filename={a.raw},discard=on -device virtio-blk-pci,drive=d0",
            "does not accept value 'on'|Invalid parameter 'on'",
            "-blockdev driver=file,node-name=d0,filename={a.raw},discard=unmap -device virtio-blk-pci,drive=d0",
        ),
    ];
    try_rows("values", &rows);
}
