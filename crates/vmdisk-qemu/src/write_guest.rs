//! Writes the options of a guest: what it needs as a whole, then its disks in order.

use vmdisk_model::{BootDevice, Domain, DomainField, FieldPath, Scope, TargetBus};

use crate::argument::Argument;
use crate::device::DiskDevice;
use crate::names::{NodeNames, image_count, libvirt_numbers, libvirt_order, stems};
use crate::options::{Medium, Options, Style};
use crate::problem::WriteProblem;
use crate::writer::Writer;

/// The options of a guest, without the daemons that it needs.
pub(crate) struct WrittenGuest {
    pub(crate) program: Option<&'static str>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) problems: Vec<WriteProblem>,
    pub(crate) left_out: Vec<WriteProblem>,
}

/// Writes the options of a guest as they go into a medium.
pub(crate) fn write_guest(domain: &Domain, options: &Options, medium: Medium) -> WrittenGuest {
    let mut writer = Writer::new(domain, options, medium);
    let program = write_options(&mut writer);
    let Writer {
        arguments,
        problems,
        left_out,
        ..
    } = writer;
    WrittenGuest {
        program,
        arguments,
        problems,
        left_out,
    }
}

fn write_options(writer: &mut Writer<'_>) -> Option<&'static str> {
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
        // Other people's devices.
        scsi_host_devices: _,
    } = writer.domain;
    let program = match scope {
        Scope::WholeGuest => {
            let memory = writer.write_memory();
            // The machine names its memory, and reads better in front of it.
            let memory_arguments = std::mem::take(&mut writer.arguments);
            let program = writer.write_machine(memory);
            writer.arguments.extend(memory_arguments);
            program
        }
        Scope::DisksOnly => None,
    };
    if blkiotune.is_some() {
        writer.leave_out(
            FieldPath::Domain(DomainField::Blkiotune),
            "shares of the host's disks are the cgroup's, not QEMU's",
        );
    }
    if boot_devices.contains(&BootDevice::Network) {
        writer.leave_out(
            FieldPath::Domain(DomainField::BootDevices),
            "the network card that the firmware tries is not one of the disks",
        );
    }
    writer.write_iothreads();
    writer.write_throttle_limits();
    writer.write_pci_buses();
    let mut plan = writer.plan();
    writer.write_controllers(&mut plan);
    let stems = stems(disks);
    let order = match writer.style {
        Style::Readable => (0..disks.len()).collect(),
        Style::Libvirt => libvirt_order(disks),
    };
    let numbers = libvirt_numbers(disks, &order);
    for nth in order {
        let disk = &disks[nth];
        let stem = &stems[nth];
        if writer.is_plugged_in_later(nth, disk) {
            continue;
        }
        if disk.frontend.effective_bus() == TargetBus::Sd {
            writer.write_sd_card(nth, disk);
            continue;
        }
        let problems = writer.problems.len();
        let names = match writer.style {
            Style::Readable => NodeNames::Readable { stem },
            Style::Libvirt => NodeNames::Libvirt {
                stem,
                first: numbers[nth],
                images: image_count(&disk.backend.source),
            },
        };
        let node = writer.write_backend(nth, disk, stem, names);
        if writer.problems.len() > problems && node.is_none() {
            // The device would only be refused a second time for lack of its node.
            continue;
        }
        writer.write_disk_device(&DiskDevice {
            nth,
            disk,
            stem,
            node,
            place: plan.places[nth],
            plan: &plan,
        });
    }
    program
}
