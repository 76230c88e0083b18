//! `startup-policy-refused`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{BackendSource, Device, DiskField, FieldPath, Protocol, StartupPolicy};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A startup policy is set on a disk that libvirt cannot apply it to.
    ///
    /// ## What it reports
    /// Reports `startupPolicy` for sources of another type than file, block, dir and volume, and
    /// `startupPolicy='requisite'` for devices other than CD and floppy drives.
    ///
    /// ## Why it matters
    /// A startup policy says what happens if the source is missing. libvirt can check only paths on its host, and can
    /// leave only CD and floppy drives empty. It refuses the guest.
    ///
    /// ## Use instead
    /// Remove `startupPolicy` for network sources and other sources without a path. For a disk, use
    /// `startupPolicy='optional'`: the guest then starts without the disk if the source is missing.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img' startupPolicy='requisite'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img' startupPolicy='optional'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "startup-policy-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("disk startupPolicy '…' is not allowed for disk of '…' type", "src/conf/domain_validate.c, virDomainDiskDefValidateStartupPolicy"),
        Evidence::refused_by_libvirt("disk startupPolicy '…' is allowed only for cdrom or floppy", "src/conf/domain_validate.c, virDomainDiskDefValidateStartupPolicy"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let Some(policy) = disk.backend.startup_policy else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::StartupPolicy);
        let has_no_path = match &disk.backend.source {
            BackendSource::Image(image) => matches!(
                &image.protocol,
                Protocol::Network(_) | Protocol::Nvme(_) | Protocol::VhostVdpa { .. }
            ),
            BackendSource::VhostUser(_) => true,
            BackendSource::Empty => false,
        };
        let is_removable = matches!(
            disk.frontend.effective_device(),
            Device::Cdrom | Device::Floppy
        );
        if has_no_path {
            report
                .finding(
                    at,
                    phrase!("{disk} has a startup policy, but its source has no path on the host"),
                )
                .label("only for sources of type file, block, dir and volume")
                .help(phrase!("remove {policy}", policy = at));
        } else if policy == StartupPolicy::Requisite && !is_removable {
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} has {requisite}, but is neither a CD nor a floppy drive",
                        requisite = setting(at, policy),
                    ),
                )
                .label("only for removable media")
                .help(phrase!(
                    "use {optional} to start without the disk if its source is missing, or remove {policy}",
                    optional = setting(at, StartupPolicy::Optional),
                    policy = at,
                ));
        }
    }
}
