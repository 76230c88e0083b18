//! `lun-refused`

use vmdisk_model::{Device, DiskField, FieldPath, Format, ImageField, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A SCSI logical unit of the host is asked for, and the source cannot be one.
    ///
    /// ## What it does
    /// Reports `device='lun'`, and `scsi-block` and `scsi-generic` on command lines, on a file, on an image that is
    /// not raw, and under a throttle on command lines.
    ///
    /// ## Why it matters
    /// SCSI commands of the guest go to the host's device as they are. A file takes none, and a format or filter
    /// above the device passes none on. QEMU asks, and does not start.
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
    pub(super) static RULE = {
        name: "lun-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Is this a SCSI device?",
                source: "hw/scsi/scsi-generic.c, scsi_generic_realize",
            },
            Evidence::Source("Proxmox qemu-server, Blockdev.pm: throttling a passed-through unit has no effect"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.frontend.effective_device() != Device::Lun {
            continue;
        }
        let name = disk.name();
        let help = "name a SCSI device of the host, raw; or use device='disk'";
        match (&image.protocol, image.format) {
            (Protocol::File { .. }, _) => {
                let at = FieldPath::Image(index, 0, ImageField::Source);
                report
                    .finding(
                        at,
                        format!(
                            "`{name}` is to be a SCSI unit of the host, and its source is a file"
                        ),
                    )
                    .label("a file takes no SCSI commands")
                    .help(help);
            }
            (_, Some(format)) if format != Format::Raw => {
                let at = FieldPath::Image(index, 0, ImageField::Format);
                report
                    .finding(
                        at,
                        format!(
                            "`{name}` is to be a SCSI unit of the host, and its format is {format}"
                        ),
                    )
                    .label("a format passes no SCSI commands on")
                    .help(help);
            }
            _ if disk.backend.iotune.is_some() => {
                let at = FieldPath::Disk(index, DiskField::Iotune);
                report
                    .finding(at, format!("`{name}` is a SCSI unit of the host, which limits do not hold for"))
                    .label("the guest's SCSI commands pass it by; on a command line QEMU refuses the filter")
                    .help("limit it on the host (cgroup io.max), or use device='disk'")
                    .severity(Severity::Warning);
            }
            _ => {}
        }
    }
}
