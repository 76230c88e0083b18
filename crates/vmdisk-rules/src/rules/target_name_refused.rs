//! `target-name-refused`

use vmdisk_facts::Version;
use vmdisk_model::{Device, Disk, DiskField, FieldPath, TargetBus, target_number};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The target's name is none that a disk can have.
    ///
    /// ## What it does
    /// Reports names that do not begin with hd, sd, vd, xvd or ubd (fd for floppy drives), names of partitions such
    /// as `vda1`, and names from which libvirt cannot count out a place on the controller.
    ///
    /// ## Why it matters
    /// libvirt derives the bus and the place on the controller from the name, and refuses one that it cannot read.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda1' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='disk0' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vdaa' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "target-name-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("invalid disk target '…', partitions can't appear in disk targets", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
            Evidence::refused_by_libvirt("Unknown disk name '…' and no address specified", "src/conf/domain_conf.c, virDomainDiskDefAssignAddress"),
            Evidence::refused_by_libvirt("Invalid floppy device name: …", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("Invalid harddisk device name: …", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let knows_no_nvme = context.libvirt_is_before(Version(11, 5, 0)) == Some(true);
    for (index, disk) in context.disks() {
        let Some(target) = disk.frontend.target.as_deref() else {
            continue;
        };
        let what = wrong(disk.frontend.effective_device(), target)
            .or_else(|| (knows_no_nvme && is_nvme(disk, target)).then_some(NO_NVME));
        let Some(what) = what else {
            continue;
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetDev),
                format!("`{target}` is no name for a disk: {what}"),
            )
            .label("libvirt cannot read this name")
            .help("write a prefix and letters, such as vda, sdb or fda");
    }
}

const NO_NVME: &str = "libvirt counts disks of NVMe from 11.5 on";

/// Whether libvirt has to find a place for the disk by a name of NVMe.
fn is_nvme(disk: &Disk, target: &str) -> bool {
    // A bus that this libvirt does not know is `unsupported-by-target`'s business.
    disk.frontend.address.is_none()
        && target.starts_with("nvme")
        && disk.frontend.effective_bus() != TargetBus::Nvme
}

/// What is wrong with a name, if anything.
fn wrong(device: Device, target: &str) -> Option<&'static str> {
    let is_floppy = device == Device::Floppy;
    let prefixes: &[&str] = match device {
        Device::Floppy => &["fd"],
        // Of a CD drive libvirt asks only that its name can be counted.
        Device::Cdrom => &["hd", "sd", "vd", "xvd", "ubd", "fd", "nvme"],
        Device::Disk | Device::Lun => &["hd", "sd", "vd", "xvd", "ubd", "nvme"],
    };
    if !prefixes.iter().any(|prefix| target.starts_with(prefix)) {
        return Some(if is_floppy {
            "a floppy drive is called fda or fdb"
        } else {
            "names begin with hd, sd, vd, xvd or ubd"
        });
    }
    if target.ends_with(|last: char| last.is_ascii_digit()) && target_number(target).is_some() {
        return Some(
            "a number behind the letters names a partition, and the guest gets whole disks",
        );
    }
    // Controllers and namespaces of NVMe are counted in numbers.
    (target_number(target).is_none() && !target.starts_with("nvme"))
        .then_some("only letters that count the disk may follow the prefix")
}
