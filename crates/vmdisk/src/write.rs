//! Writes the model in the formats of the field.

use vmdisk_libvirt::{FlashFile, Resolved, Unmodeled, UnmodeledContent};
use vmdisk_model::{Disk, Domain, Firmware, Scope, Switch};
use vmdisk_qemu::Flash;

use crate::{Document, Source};

pub use vmdisk_libvirt::{
    CannotAdd, CannotEdit, Unwritable, add_devices, edits_of_all as change_edits,
};
pub use vmdisk_qemu::{
    CommandLine, MonitorScript, Options as QemuOptions, StorageDaemon, WriteProblem, WriteProblems,
};

#[cfg(feature = "plan")]
pub use crate::planned::{planned_for_qemu, planned_xml};

/// A whole libvirt `<domain>`. An x86 PC has ACPI unless it is switched off, as QEMU gives it to each: libvirt does so only if
/// told, and refuses UEFI without it.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn libvirt_xml(domain: &Domain) -> Result<String, Unwritable> {
    libvirt_xml_with(domain, &Unmodeled::default())
}

pub(crate) fn libvirt_xml_with(domain: &Domain, kept: &Unmodeled) -> Result<String, Unwritable> {
    let has_acpi =
        domain.is_pc() || domain.firmware == Some(Firmware::Efi) && domain.architecture.is_none();
    match domain.acpi {
        None if has_acpi => {
            let acpi = Some(Switch::On);
            vmdisk_libvirt::write_domain(
                &Domain {
                    acpi,
                    ..domain.clone()
                },
                kept,
            )
        }
        _ => vmdisk_libvirt::write_domain(domain, kept),
    }
}

/// One libvirt `<disk>`.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn disk_xml(disk: &Disk) -> Result<String, Unwritable> {
    vmdisk_libvirt::write_disk(disk, &UnmodeledContent::default())
}

/// The `<disk>` of a document with this number as another model has it, with everything the model does not cover.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn disk_xml_in(document: &Document, index: usize, disk: &Disk) -> Result<String, Unwritable> {
    match &document.source {
        Source::LibvirtXml(source) => vmdisk_libvirt::write_disk(disk, source.kept.disk(index)),
        Source::QemuCommandLine(_) | Source::Spec(_) => disk_xml(disk),
    }
}

/// A document that was read, written anew from its model, with everything the model does not cover
/// unchanged. To change single values of a file, use fixes.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn document_xml(document: &Document) -> Result<String, Unwritable> {
    match &document.source {
        Source::LibvirtXml(source) => vmdisk_libvirt::write_domain(&source.domain, &source.kept),
        Source::QemuCommandLine(source) => {
            let mut kept = Unmodeled::default();
            if let Some(firmware) = &source.firmware {
                let variables = firmware.variables.as_ref().map(flash_file);
                kept.add_firmware(flash_file(&firmware.code), variables)?;
            }
            libvirt_xml_with(&source.domain, &kept)
        }
        Source::Spec(_) => libvirt_xml(document.domain()),
    }
}

fn flash_file(flash: &Flash) -> FlashFile<'_> {
    FlashFile {
        path: &flash.path,
        format: flash.format,
        is_read_only: flash.is_read_only,
    }
}

/// The `<disk>` of a guest that was resolved, or its disks in `<devices>`, with everything the model does not cover.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn resolved_disks_xml(resolved: &Resolved) -> Result<String, Unwritable> {
    disks_xml_with(&resolved.domain, &resolved.kept)
}

fn disks_xml_with(domain: &Domain, kept: &Unmodeled) -> Result<String, Unwritable> {
    let disks = domain.disks.iter().enumerate();
    let disks: String = disks
        .map(|(nth, disk)| vmdisk_libvirt::write_disk(disk, kept.disk(nth)))
        .collect::<Result<_, _>>()?;
    // XML has one root element.
    Ok(match domain.disks.len() {
        0 | 1 => disks,
        _ => format!("<devices>\n{disks}</devices>\n"),
    })
}

/// The `<disk>` of a guest, or its disks in `<devices>`.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn disks_xml(domain: &Domain) -> Result<String, Unwritable> {
    disks_xml_with(domain, &Unmodeled::default())
}

/// The `<disk>` of a document that was read, or its disks in `<devices>`, with everything the model does not cover.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn document_disks_xml(document: &Document) -> Result<String, Unwritable> {
    let nothing = Unmodeled::default();
    let kept = match &document.source {
        Source::LibvirtXml(source) => &source.kept,
        Source::QemuCommandLine(_) | Source::Spec(_) => &nothing,
    };
    disks_xml_with(document.domain(), kept)
}

/// The elements outside `<disk>` that the disks of a guest need or that tune them, each as a text: controllers,
/// iothreads, shared memory, `<blkiotune>` and throttle groups.
///
/// # Errors
/// If a name holds a character that XML cannot carry.
pub fn surroundings_xml(domain: &Domain) -> Result<Vec<String>, Unwritable> {
    vmdisk_libvirt::write_surroundings(domain)
}

/// Writes down what libvirt passes to QEMU for settings that a guest leaves unset: without `<acpi/>`, a PC has no ACPI,
/// and without a boot order the guest boots from its first disk.
pub fn set_for_qemu(domain: &mut Domain) {
    domain.boot_from_first_disk();
    if domain.scope == Scope::WholeGuest && domain.is_pc() {
        domain.acpi.get_or_insert(Switch::Off);
    }
}

/// A QEMU command line for the version that will run it.
///
/// # Errors
/// Everything that QEMU has no option for, each with the disk it belongs to.
pub fn qemu_command_line(
    domain: &Domain,
    options: &QemuOptions,
) -> Result<CommandLine, WriteProblems> {
    vmdisk_qemu::write(domain, options)
}

/// The commands that plug the disks of a guest into a QEMU that runs.
///
/// # Errors
/// Everything that QEMU has no option for, and what cannot be plugged while the guest runs.
pub fn qemu_monitor_script(
    domain: &Domain,
    options: &QemuOptions,
) -> Result<MonitorScript, WriteProblems> {
    vmdisk_qemu::write_monitor_script(domain, options)
}
