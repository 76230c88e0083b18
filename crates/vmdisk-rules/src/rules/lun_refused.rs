//! `lun-refused`

use vmdisk_facts::BlockKind;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, DiskField, FieldPath, Format, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A disk is configured as a SCSI device of the host, but its source is not one.
    ///
    /// ## What it reports
    /// Reports `device='lun'`, and `scsi-block` and `scsi-generic` on command lines, with a file, with an image that is
    /// not raw, with I/O limits, and with a device of the host that takes no SCSI commands: NVMe, virtio, loop, RAID by md,
    /// thin volumes, encryption, bcache, zvols and devices on a network. Partitions and other logical volumes are not
    /// judged, because the kernel passes commands on for some processes.
    ///
    /// ## Why it matters
    /// The guest's SCSI commands are sent to the host's device unchanged. A file does not accept them, and a format or
    /// filter above the device does not pass them on. QEMU checks this and does not start.
    ///
    /// ## Use instead
    /// Use a raw SCSI device of the host as the source. For files and other formats, use `device='disk'` (`scsi-hd`).
    /// To limit a passed-through device, use `io.max` of its cgroup on the host.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='lun'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-block,drive=f0,id=sda,bus=scsi0.0
    /// ```
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='block' device='lun'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/nvme2n1'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-mounted-partition
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/loop0'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-mounted-partition
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/guestdata'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='block' device='lun'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/disk/by-id/scsi-360a98000'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -blockdev driver=host_device,node-name=f0,filename=/dev/sg1 \
    ///   -device scsi-generic,drive=f0,id=sda,bus=scsi0.0
    /// ```
    name: "lun-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("disk device='…' is only valid for block type disk source", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_libvirt("disk device 'lun' must use 'raw' format", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_qemu("Is this a SCSI device?", "hw/scsi/scsi-generic.c, scsi_generic_realize"),
        Evidence::Source("Proxmox qemu-server, Blockdev.pm: throttling a passed-through device has no effect"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.frontend.effective_device() != Device::Lun {
            continue;
        }
        let emulated = setting(FieldPath::Disk(index, DiskField::Device), Device::Disk);
        let help = phrase!(
            "use a raw SCSI device of the host, or {emulated}",
            emulated = emulated.clone()
        );
        match (&image.protocol, image.format) {
            (Protocol::File { .. }, _) => {
                let at = FieldPath::Image(index, 0, ImageField::Source);
                report
                    .finding(
                        at,
                        phrase!(
                            "{disk} is configured as a SCSI device of the host, but its source is a file"
                        ),
                    )
                    .label("a file does not accept SCSI commands")
                    .help(help);
            }
            (_, Some(format)) if format != Format::Raw => {
                let at = FieldPath::Image(index, 0, ImageField::Format);
                report
                    .finding(
                        at,
                        phrase!(
                            "{disk} is configured as a SCSI device of the host, but its format is {format}",
                            format = format.as_str(),
                        ),
                    )
                    .label("this format does not pass SCSI commands on")
                    .help(help);
            }
            _ if disk.backend.iotune.is_some() => {
                let at = FieldPath::Disk(index, DiskField::Iotune);
                report
                    .finding(
                        at,
                        phrase!(
                            "{disk} passes a SCSI device through, which I/O limits do not affect"
                        ),
                    )
                    .label(context.for_consumer(
                        "the guest's SCSI commands bypass the limits",
                        "QEMU refuses the filter above the device",
                    ))
                    .help(phrase!(
                        "limit the device on the host (cgroup `io.max`), or use {emulated}",
                        emulated
                    ))
                    .severity(Severity::Warning);
            }
            (Protocol::HostDevice { path }, _) => {
                let at = FieldPath::Image(index, 0, ImageField::Source);
                let Some(Some(kind)) = report.require(at, without_scsi(context, path.0.as_str()))
                else {
                    continue;
                };
                report
                    .finding(
                        at,
                        phrase!(
                            "{disk} is configured as a SCSI device of the host, but {path} is {kind}",
                            path = path.0.clone(),
                            kind,
                        ),
                    )
                    .label("this device does not accept SCSI commands")
                    // In a spec, the device has the word, and not a setting of its own.
                    .help("use a raw SCSI device of the host, or a disk that QEMU emulates");
            }
            _ => {}
        }
    }
}

/// The kind of a device that takes no SCSI commands; `None` for one that does or may.
///
/// # Errors
/// If the facts do not say which device it is, or whether a disk is a SCSI disk.
fn without_scsi(context: &Context<'_>, path: &str) -> Result<Option<&'static str>, Missing> {
    if context.host.is_none() {
        return Ok(None);
    }
    let Some((_, device)) = host::block_device(context, path)? else {
        return Ok(None);
    };
    let what = || format!("whether {path} is a SCSI disk");
    Ok(match device.kind {
        BlockKind::Disk => match Context::known(device.scsi.clone(), what)? {
            None => Some("a disk without SCSI commands, such as virtio"),
            Some(_) => None,
        },
        BlockKind::Nvme => Some("an NVMe namespace"),
        BlockKind::Loop => Some("a loop device"),
        BlockKind::Md => Some("a RAID of the host"),
        BlockKind::LvmThin => Some("a thin logical volume"),
        BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
            Some("an encrypted device")
        }
        BlockKind::Bcache => Some("a bcache device"),
        BlockKind::Zvol => Some("a ZFS volume"),
        BlockKind::Rbd | BlockKind::Nbd | BlockKind::Drbd => Some("a device on a network"),
        BlockKind::Zram | BlockKind::Ram => Some("a device in memory"),
        _ => None,
    })
}
