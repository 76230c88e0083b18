//! The columns of the field table about values, tried on real QEMUs.

use std::io::Write as _;
use std::process::{Command, Stdio};

use vmdisk_fields::{
    DISK_FIELDS, DeviceModel, LIMIT_FIELDS, Spelling, ValueLimits, Zero, disk, limit,
};
use vmdisk_model::DiskField;
use vmdisk_tests::{QemuBuild, on_each_qemu};

/// True if a QEMU starts with these options, and ends when it is asked to.
fn starts(qemu: &QemuBuild, options: &[String]) -> bool {
    let mut child = Command::new(qemu.emulator())
        .args(["-nodefaults", "-machine", "q35,accel=tcg", "-S"])
        .args(["-display", "none", "-monitor", "stdio"])
        .args(["-blockdev", "driver=null-co,node-name=n0,read-zeroes=on"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut monitor = child.stdin.take().unwrap();
    // A QEMU that refuses its options does not read on.
    let _ = monitor.write_all(b"quit\n");
    // QEMU 7.2 can forget the command if its input ends before it has read it.
    let status = child.wait().unwrap();
    drop(monitor);
    status.success()
}

#[test]
fn a_number_is_refused_exactly_where_its_row_says() {
    on_each_qemu("limits", |qemu| {
        let mut tried = 0;
        for field in DISK_FIELDS {
            let row = disk(*field);
            // libvirt counts a boot order from 1, and QEMU its index from 0.
            let (ValueLimits::Number { least, most, .. }, Spelling::Named(property)) =
                (row.values, row.spelling(DeviceModel::VirtioBlk))
            else {
                continue;
            };
            if *field == DiskField::BootOrder {
                continue;
            }
            for value in [0, least / 2, least, least + 1, least * 2, most, most * 2] {
                // A logical sector does not fit a smaller physical one.
                let more = match field {
                    DiskField::LogicalBlockSize => format!(",physical_block_size={most}"),
                    _ => String::new(),
                };
                let device = format!("virtio-blk-pci,drive=n0,{property}={value}{more}");
                let is_taken = match value {
                    0 => row.values.zero() == Zero::Unset,
                    _ => row.values.has(value.into()),
                };
                let options = ["-device".to_owned(), device];
                assert_eq!(
                    starts(qemu, &options),
                    is_taken,
                    "{}: {options:?}",
                    qemu.name
                );
                tried += 1;
            }
        }
        assert!(tried >= 28, "only {tried}");
    });
}

#[test]
fn a_limit_of_zero_is_refused_exactly_where_its_row_says() {
    on_each_qemu("limits", |qemu| {
        for row in LIMIT_FIELDS.iter().filter_map(|field| limit(*field)) {
            if row.zero == Zero::Number {
                continue;
            }
            let group = format!("throttle-group,id=t0,x-{}=0", row.qemu);
            let options = ["-object".to_owned(), group];
            let is_taken = row.zero == Zero::Unset;
            assert_eq!(
                starts(qemu, &options),
                is_taken,
                "{}: {options:?}",
                qemu.name
            );
        }
    });
}
