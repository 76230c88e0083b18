//! Writes the model in the formats of the field.

use vmdisk_facts::Target;
use vmdisk_model::{Disk, Domain};

pub use vmdisk_qemu::{CommandLine, WriteProblem};

/// A whole libvirt `<domain>`.
pub fn libvirt_xml(domain: &Domain) -> String {
    vmdisk_libvirt::write_domain(domain)
}

/// One libvirt `<disk>`.
pub fn disk_xml(disk: &Disk) -> String {
    vmdisk_libvirt::write_disk(disk)
}

/// A QEMU command line for the version that will run it.
///
/// # Errors
/// Everything that QEMU cannot express or would refuse, each with the disk it belongs to.
pub fn qemu_command_line(
    domain: &Domain,
    target: &Target,
) -> Result<CommandLine, Vec<WriteProblem>> {
    vmdisk_qemu::write(domain, target)
}
