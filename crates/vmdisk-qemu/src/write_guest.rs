//! Writes the options of a guest: the general ones, then its disks in order.

use vmdisk_model::{BootDevice, Disk, Domain, DomainField, FieldPath, Firmware, Scope};

use crate::device::{ControllerIds, DiskDevice};
use crate::guest::Guest;
use crate::names::{NodeNames, stems};
use crate::options::{Medium, Options};
use crate::placement::Plan;
use crate::writer::{Writer, Written};

/// Writes the options of a guest for an output form, without the required daemons; returns the name of its program.
pub(crate) fn write_guest(
    domain: &Domain,
    options: &Options,
    medium: Medium,
) -> (Option<&'static str>, Written) {
    let guest = Guest::new(domain, options, medium);
    let plan = Plan::new(&guest);
    let mut writer = Writer::new(&guest);
    let program = write_options(&plan, &mut writer);
    (program, writer.finish())
}

fn write_options(plan: &Plan, writer: &mut Writer<'_>) -> Option<&'static str> {
    let Domain {
        scope,
        // Written with the machine.
        name: _,
        uuid: _,
        domain_type: _,
        architecture: _,
        machine: _,
        vcpus: _,
        memory: _,
        memory_backing: _,
        cpu: _,
        acpi: _,
        firmware,
        // Of disks read through `boot_index`.
        boot_devices,
        blkiotune,
        // Written by `write_throttle_limits`.
        throttle_groups: _,
        // Written by `write_iothreads`.
        default_iothread: _,
        iothreads: _,
        // Written by `write_controllers`.
        controllers: _,
        disks,
        // Devices outside this crate's scope.
        scsi_host_devices: _,
        boots_from_others: _,
        emulator: _, // the program is not an option
        pci_room: _,
        manager: _,
        system: _,
        tuned_iothreads: _, // the threads of the process, which QEMU hears nothing of
    } = writer.domain();
    let program = match scope {
        Scope::WholeGuest => {
            let memory = writer.write_memory();
            let count = writer.written().arguments.len();
            let program = writer.write_machine(memory);
            // The machine refers to its memory, so the memory is written first.
            writer.move_to_end(count);
            program
        }
        Scope::DisksOnly => None,
    };
    if blkiotune.is_some() {
        writer.leave_out(
            FieldPath::Domain(DomainField::Blkiotune),
            "shares of the host's disks are settings of the cgroup, not of QEMU",
        );
    }
    if *firmware == Some(Firmware::Efi) {
        writer.leave_out(
            FieldPath::Domain(DomainField::Firmware),
            "QEMU needs the files of UEFI: add `-drive if=pflash,unit=0,format=raw,readonly=on,file=CODE` and \
             `-drive if=pflash,unit=1,format=raw,file=VARS`",
        );
    }
    if boot_devices.contains(&BootDevice::Network) {
        writer.leave_out(
            FieldPath::Domain(DomainField::BootDevices),
            "the firmware boots from a network card, which is not one of the disks",
        );
    }
    writer.write_iothreads();
    writer.write_throttle_limits();
    writer.write_pci_buses();
    writer.add_notes(&plan.problems, &plan.left_out);
    let controllers = writer.write_controllers(plan);
    write_disks(disks, plan, &controllers, writer);
    program
}

fn write_disks<'a>(
    disks: &'a [Disk],
    plan: &Plan,
    controllers: &ControllerIds,
    writer: &mut Writer<'a>,
) {
    let stems = stems(disks);
    for (nth, (disk, stem)) in disks.iter().zip(&stems).enumerate() {
        let problems = writer.written().problems.len();
        let node = writer.write_backend(nth, disk, NodeNames { stem });
        if writer.written().problems.len() > problems && node.is_none() {
            // The device would be refused again because its node is missing.
            continue;
        }
        writer.write_disk_device(&DiskDevice {
            nth,
            disk,
            stem,
            node,
            place: plan.places[nth],
            plan,
            controllers,
        });
    }
}
