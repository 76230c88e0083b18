//! `iso-writable`

use vmdisk_fields::phrase;
use vmdisk_model::{Change, Device, DiskField, FieldPath, FieldValue, Format, TargetBus};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// An ISO image is attached as a disk that the guest can write.
    ///
    /// ## What it reports
    /// Reports a raw image whose name ends in `.iso` on a disk with `device='disk'` that is neither read-only nor
    /// transient. The rule does not report seed images of cloud-init, which belong to one guest: names
    /// with `nocloud`, `config-drive`, `cidata`, `cloud-init` or `seed`, and what KubeVirt makes of secrets and
    /// configuration maps in `kubevirt-private`.
    ///
    /// ## Why it matters
    /// An installation image is shared by many guests and is expected never to change. QEMU opens it for writing and
    /// locks it, so a second guest with the same image does not start. A guest that partitions or formats the
    /// disk destroys it.
    ///
    /// ## Use instead
    /// Attach it as a CD drive, which is always read-only: `device='cdrom'` on bus `sata` or `scsi`. If the guest must
    /// see a disk, such as a USB stick to boot from, add `<readonly/>`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/iso/debian-13.iso'/>
    ///   <target dev='vdb' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/iso/debian-13.iso'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/iso/debian-13.iso'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// An image that KubeVirt makes for one guest:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/var/run/kubevirt-private/secret-disks/app.iso'/>
    ///   <target dev='vdb' bus='virtio'/>
    /// </disk>
    /// ```
    /// A seed image as KubeVirt attaches it:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/var/run/kubevirt-ephemeral-disks/cloud-init-data/noCloud.iso'/>
    ///   <target dev='vdb' bus='virtio'/>
    /// </disk>
    /// ```
    name: "iso-writable",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("qemu-io writes 64 KiB to a file named .iso as to any other raw image", "QEMU 7.2, driver raw on file"),
        Evidence::Source("libvirt src/conf/domain_postparse.c, virDomainDiskDefPostParse: only CD drives are read-only without <readonly/>"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image, path) in host::kept(context) {
        let is_raw = matches!(image.format, Some(Format::Raw) | None);
        if !is_raw
            || !is_iso(path)
            || is_seed(path)
            || disk.frontend.effective_device() != Device::Disk
        {
            continue;
        }
        let finding = report.finding(
            host::image_of(index),
            phrase!("{disk} lets the guest write an ISO image"),
        );
        finding.label("opened for writing").note(
            "the guest can destroy the image, and another guest with the same image does not start",
        );
        // QEMU has no read-only disk on these buses.
        if matches!(
            disk.frontend.effective_bus(),
            TargetBus::Ide | TargetBus::Sata
        ) {
            finding.help("attach it as a CD drive, which is read-only");
            continue;
        }
        let read_only = FieldPath::Disk(index, DiskField::ReadOnly);
        finding.remedy(Fix::needs_consent([Change::set(
            read_only,
            FieldValue::Set,
        )]));
    }
}

/// True if the name says that the file is the image of a CD.
fn is_iso(path: &str) -> bool {
    let (_, extension) = path.rsplit_once('.').unwrap_or_default();
    extension.eq_ignore_ascii_case("iso")
}

/// True for the names that tools give to an image that configures one guest.
fn is_seed(path: &str) -> bool {
    if path.contains("/kubevirt-private/") {
        return true;
    }
    const WORDS: [&str; 5] = ["cidata", "cloudinit", "configdrive", "nocloud", "seed"];
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    WORDS.iter().any(|word| name.contains(word))
}
