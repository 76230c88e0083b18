//! `windows-discard-granularity`

use vmdisk_facts::{Answer, Capability};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, Discard, Disk, DiskField, FieldPath, GuestSystem, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Windows is told that a virtio disk discards pieces of 4 KiB or less, and its optimization takes hours or fails.
    ///
    /// ## What it reports
    /// Reports a disk on virtio or SCSI with `discard='unmap'` in a guest that libosinfo's note calls Windows, if its
    /// `discard_granularity` is unset or smaller than 32 KiB. Zero, which hides the size, is not reported.
    ///
    /// ## Why it matters
    /// QEMU tells the guest a granularity of 4096 bytes on SCSI and of one sector on virtio. With it, the optimization of drives in
    /// Windows 10 rewrote all data, and in Windows 11 since May 2026 it discards nothing. Pieces that are smaller than a
    /// cluster of a qcow2 image (64 KiB) free nothing in any case.
    ///
    /// ## Use instead
    /// Use `<blockio discard_granularity='65536'/>` (libvirt 9.8). With an earlier libvirt, write it with `<qemu:override>`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-9.0
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <blockio discard_granularity='4096'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <blockio discard_granularity='65536'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <blockio discard_granularity='0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://microsoft.com/win/11'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://debian.org/debian/12'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "windows-discard-granularity",
    group: Group::Performance,
    severity: Severity::Advice,
    libvirt_only: true,
    evidence: &[
        Evidence::NotMeasuredHere("virtio-win issue 666: the optimization of Windows 10 rewrites all data on virtio-scsi, and not with another granularity"),
        Evidence::NotMeasuredHere("virtio-win issue 1574: Windows 11 since May 2026 discards again with 32768 or 65536, on libvirt 11.3 and 12.0; with clusters of 64 KiB, 32768 frees less"),
        Evidence::Source("QEMU hw/scsi/scsi-disk.c, DEFAULT_DISCARD_GRANULARITY; hw/block/virtio-blk.c, virtio_blk_update_config: one sector"),
    ],
    check: Model(check),
}

/// Clusters of qcow2 images, and the smallest granularity that Windows discards with.
const CLUSTER: u32 = 65_536;
const SMALLEST: u32 = 32_768;

fn check(context: &Context<'_>, report: &mut Report) {
    if context.domain.system != Some(GuestSystem::Windows) {
        return;
    }
    for (index, _) in context.disks().filter(|(_, disk)| discards_pieces(disk)) {
        let at = FieldPath::Disk(index, DiskField::DiscardGranularity);
        let granularity = setting(at, CLUSTER);
        let finding = report.finding(
            at,
            phrase!("Windows is told that {disk} discards in small pieces"),
        );
        finding.label("the optimization of drives takes hours, or discards nothing");
        match context.can(Capability::LibvirtDiscardGranularity) {
            Answer::No(_) => finding.help(phrase!(
                "with libvirt 9.8 or later, use {granularity}",
                granularity
            )),
            Answer::Yes(_) | Answer::Unknown => {
                finding.help(phrase!("use {granularity}", granularity))
            }
        };
    }
}

/// True if the guest may discard on the disk, and in pieces that are too small.
fn discards_pieces(disk: &Disk) -> bool {
    let bus = disk.frontend.effective_bus();
    let is_small = match disk.frontend.discard_granularity {
        None => true,
        Some(bytes) => (1..SMALLEST).contains(&bytes),
    };
    matches!(bus, TargetBus::Scsi | TargetBus::Virtio)
        && disk.frontend.effective_device() == Device::Disk
        && disk.backend.discard == Some(Discard::Unmap)
        && is_small
}
