//! `target-name-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Device, Disk, DiskField, FieldPath, TargetBus, target_number};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The target name of a disk (`<target dev='…'/>`) is not one that libvirt accepts.
    ///
    /// ## What it reports
    /// Reports names that do not start with hd, sd, vd, xvd, ubd or nvme (fd for floppy drives); names of partitions
    /// such as `vda1`; other characters than letters after the prefix; and, for libvirt before 11.5, names of NVMe
    /// disks on other buses.
    ///
    /// ## Why it matters
    /// libvirt derives the bus and the address on the controller from the name. It refuses a guest with a name that it
    /// cannot parse.
    ///
    /// ## Use instead
    /// Use a prefix and letters: `vda`, `vdb` for virtio, `sda` for SATA, SCSI and USB, `hda` for IDE, `fda` for
    /// floppy drives. The name is only a label: the guest chooses its own device names. To attach only a partition,
    /// use the partition as the source: `<source dev='/dev/disk/by-id/…-part1'/>`.
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
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vd1' bus='virtio'/>
    /// </disk>
    /// ```
    name: "target-name-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("invalid disk target '…', partitions can't appear in disk targets", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
        Evidence::refused_by_libvirt("Unknown disk name '…' and no address specified", "src/conf/domain_conf.c, virDomainDiskDefAssignAddress"),
        Evidence::refused_by_libvirt("Invalid floppy device name: …", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("Invalid harddisk device name: …", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let knows_no_nvme = context.can(Capability::LibvirtNvmeBus).is_no();
    for (index, disk) in context.disks() {
        let Some(target) = disk.frontend.target.as_deref() else {
            continue;
        };
        let what = mistake(disk.frontend.effective_device(), target)
            .or_else(|| (knows_no_nvme && is_nvme(disk, target)).then_some(NO_NVME));
        let Some(what) = what else {
            continue;
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetDev),
                phrase!(
                    "libvirt refuses the target name {target}: {what}",
                    target = quoted(target.to_owned()),
                    what,
                ),
            )
            .label("libvirt cannot parse this name")
            .help("use a prefix and letters, such as vda, sdb or fda");
    }
}

/// The length of the shortest name whose letters mean a number that is too large: a prefix and six letters.
const MAX_NAME: usize = 7;

const NO_NVME: &str = "names of NVMe disks need libvirt 11.5 or later";

/// True if libvirt has to derive an address from the name of an NVMe disk.
fn is_nvme(disk: &Disk, target: &str) -> bool {
    // `unsupported-by-target` reports a bus that this libvirt does not know.
    disk.frontend.address.is_none()
        && target.starts_with("nvme")
        && disk.frontend.effective_bus() != TargetBus::Nvme
}

/// The mistake in a name, if there is one.
fn mistake(device: Device, target: &str) -> Option<&'static str> {
    let is_floppy = device == Device::Floppy;
    let prefixes: &[&str] = match device {
        Device::Floppy => &["fd"],
        // libvirt only requires that the name of a CD drive has a number.
        Device::Cdrom => &["hd", "sd", "vd", "xvd", "ubd", "fd", "nvme"],
        Device::Disk | Device::Lun => &["hd", "sd", "vd", "xvd", "ubd", "nvme"],
    };
    if !prefixes.iter().any(|prefix| target.starts_with(prefix)) {
        return Some(if is_floppy {
            "the name of a floppy drive starts with fd"
        } else {
            "names start with hd, sd, vd, xvd or ubd"
        });
    }
    if target.ends_with(|last: char| last.is_ascii_digit()) && target_number(target).is_some() {
        return Some("it names a partition, but a target is a whole disk");
    }
    // Controllers and namespaces of NVMe have numbers.
    if target_number(target).is_some() || target.starts_with("nvme") {
        return None;
    }
    let has_only_letters =
        target.len() > MAX_NAME && target.bytes().all(|it| it.is_ascii_lowercase());
    Some(if has_only_letters {
        "it has too many letters"
    } else {
        "only letters may follow the prefix"
    })
}
