//! `startup-policy-refused`

use vmdisk_model::{BackendSource, Device, DiskField, FieldPath, Protocol, StartupPolicy};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A startup policy is set where libvirt cannot follow it.
    ///
    /// ## What it does
    /// Reports `startupPolicy` on sources that are neither file nor block nor dir nor volume, and `requisite` on
    /// anything but a CD or floppy drive.
    ///
    /// ## Why it matters
    /// libvirt can leave out only storage whose path it can look for, and empties only drives with removable media.
    /// It refuses the guest.
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
    pub(super) static RULE = {
        name: "startup-policy-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("disk startupPolicy '…' is not allowed for disk of '…' type", "src/conf/domain_validate.c, virDomainDiskDefValidateStartupPolicy"),
            Evidence::refused_by_libvirt("disk startupPolicy '…' is allowed only for cdrom or floppy", "src/conf/domain_validate.c, virDomainDiskDefValidateStartupPolicy"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let Some(policy) = disk.backend.startup_policy else {
            continue;
        };
        let name = disk.name();
        let at = FieldPath::Disk(index, DiskField::StartupPolicy);
        let has_no_path = match &disk.backend.source {
            BackendSource::Image(image) => match &image.protocol {
                Protocol::Network(_) | Protocol::Nvme(_) | Protocol::VhostVdpa { .. } => true,
                Protocol::File { .. }
                | Protocol::Directory { .. }
                | Protocol::HostDevice { .. }
                | Protocol::Volume(_)
                | Protocol::Other(_) => false,
            },
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
                    format!(
                        "`{name}` has a startup policy, and no path that libvirt could look for"
                    ),
                )
                .label("only for sources of type file, block, dir and volume")
                .note("libvirt refuses the guest for it")
                .help("leave the policy out");
        } else if policy == StartupPolicy::Requisite && !is_removable {
            report
                .finding(
                    at,
                    format!("`{name}` is a disk, and libvirt empties only CD and floppy drives"),
                )
                .label("'requisite' is for removable media")
                .note("libvirt refuses the guest for it")
                .help("write startupPolicy='optional', which leaves the disk out, or 'mandatory'");
        }
    }
}
