//! Writes a guest's disks, and the machine they hang on, as a QEMU command line.

use vmdisk_model::{Domain, DomainField, FieldPath, Scope, TargetBus};

use crate::command_line::CommandLine;
use crate::daemon::storage_daemon;
use crate::device::DiskDevice;
use crate::names::{NodeNames, image_count, libvirt_numbers, libvirt_order, stems};
use crate::options::{Medium, Options, Style};
use crate::problem::WriteProblems;
use crate::writer::Writer;

/// Writes a guest as a QEMU command line: a whole guest with its machine and `-nodefaults`, bare
/// disks with what they need and nothing else.
///
/// # Errors
/// Everything that QEMU has no option for, and the few values that it does not survive. What QEMU
/// itself refuses with a clear message is left to it, and to the rules.
///
/// ```
/// use vmdisk_model::{CacheMode, Disk, Domain, Format, Frontend, Image, Scope, TargetBus};
/// use vmdisk_qemu::{Options, write};
///
/// let mut disk = Disk::new(
///     Frontend::new("vda", TargetBus::Virtio),
///     Image::file("/srv/web1.qcow2", Format::Qcow2),
/// );
/// disk.backend.cache = Some(CacheMode::None);
/// let mut domain = Domain { scope: Scope::DisksOnly, ..Domain::default() };
/// domain.disks.push(disk);
///
/// let line = write(&domain, &Options::default())?;
/// assert_eq!(
///     line.to_shell(),
///     r#"-blockdev '{"driver":"file","node-name":"vda-file","filename":"/srv/web1.qcow2","cache":{"direct":true,"no-flush":false},"read-only":false}' \
///   -blockdev '{"driver":"qcow2","node-name":"vda-format","file":"vda-file","cache":{"direct":true,"no-flush":false},"read-only":false}' \
///   -device '{"driver":"virtio-blk-pci","id":"vda","drive":"vda-format","write-cache":"on"}'
/// "#
/// );
/// # Ok::<(), vmdisk_qemu::WriteProblems>(())
/// ```
pub fn write(domain: &Domain, options: &Options) -> Result<CommandLine, WriteProblems> {
    write_for(domain, options, Medium::CommandLine)
}

/// The options of a guest, as they go into a medium.
pub(crate) fn write_for(
    domain: &Domain,
    options: &Options,
    medium: Medium,
) -> Result<CommandLine, WriteProblems> {
    let mut writer = Writer::new(domain, options, medium);
    let program = write_guest(&mut writer);
    let Writer {
        arguments,
        problems,
        left_out,
        ..
    } = writer;
    let mut problems = problems;
    let mut daemons = Vec::new();
    for nth in 0..domain.disks.len() {
        match storage_daemon(domain, nth, options) {
            Some(Ok(daemon)) => daemons.push(daemon),
            Some(Err(WriteProblems(more))) => problems.extend(more),
            None => {}
        }
    }
    if !problems.is_empty() {
        return Err(WriteProblems(problems));
    }
    Ok(CommandLine {
        program,
        arguments,
        daemons,
        left_out,
    })
}

fn write_guest(writer: &mut Writer<'_>) -> Option<&'static str> {
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
        // Read through `boot_index`.
        boot_devices: _,
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
        tuned_iothreads: _, // the threads of the process, which QEMU hears nothing of
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
    writer.check_boot_devices();
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
