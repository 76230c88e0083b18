//! Writes a guest's disks and its machine as a QEMU command line.

use vmdisk_model::Domain;

use crate::command_line::CommandLine;
use crate::options::{Medium, Options};
use crate::problem::WriteProblems;
use crate::write_daemon::storage_daemon;
use crate::write_guest::write_guest;
use crate::writer::Written;

/// Writes a guest as a QEMU command line: a whole guest with its machine and `-nodefaults`, or disks without a machine
/// with only their dependencies.
///
/// # Errors
/// Fails for settings that QEMU has no option for, and for the few values that crash it. Settings that QEMU refuses
/// with a clear message are left to QEMU and to the rules.
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

/// The options of a guest for an output form.
pub(crate) fn write_for(
    domain: &Domain,
    options: &Options,
    medium: Medium,
) -> Result<CommandLine, WriteProblems> {
    let (program, written) = write_guest(domain, options, medium);
    let Written {
        arguments,
        mut problems,
        left_out,
    } = written;
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
        further: Vec::new(),
        daemons,
        left_out,
    })
}
