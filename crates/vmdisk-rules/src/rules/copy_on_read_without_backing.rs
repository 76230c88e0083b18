//! `copy-on-read-without-backing`

use vmdisk_fields::phrase;
use vmdisk_model::{Backing, Change, Device, DiskField, FieldPath, Format, Image, Switch};
use vmdisk_rule::{Context, Evidence, Fix, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A disk enables copy-on-read, but its image has no backing image.
    ///
    /// ## What it reports
    /// Reports `copy_on_read` on a disk whose image has no backing image: a raw image, a qcow2 image with an empty
    /// `<backingStore/>`, or one whose header names none.
    ///
    /// ## Why it matters
    /// Copy-on-read copies what the guest reads from the backing image into the top image. Without a backing image there
    /// is nothing to copy. In a qcow2 image, QEMU still writes metadata when the guest reads a cluster for the first
    /// time, so that reads cost writes and the image grows.
    ///
    /// ## Use instead
    /// Remove `copy_on_read`. It is left over when an overlay was flattened, or when the disk of a template is copied.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <backingStore/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <backingStore/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' copy_on_read='on'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// The header of the image shows it:
    /// ```xml,reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-backing-chains
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/img/overlay.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts, because the header decides:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' copy_on_read='on'/>
    ///   <source dev='/dev/sdb'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    name: "copy-on-read-without-backing",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("a read of 64 MiB of an empty qcow2 image without a backing image: the file grew from 196,616 to 327,680 bytes; without copy-on-read it did not", "qemu-io -C of QEMU 7.2; the four QEMUs in tests/tests/qemu_refuses/silence.rs"),
        Evidence::Source("QEMU block/io.c, bdrv_co_do_copy_on_readv: clusters that are not allocated are written as zeroes"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let is_on = disk.backend.copy_on_read == Some(Switch::On) && disk.is_writable();
        // `copy-on-read-refused` reports other devices.
        if !is_on || disk.frontend.effective_device() != Device::Disk {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::CopyOnRead);
        if report.require(at, has_backing(context, image)) != Some(false) {
            continue;
        }
        report
            .finding(
                at,
                phrase!("{disk} enables copy-on-read, but its image has no backing image"),
            )
            .label("there is nothing to copy")
            .remedy(Fix::safe([Change::remove(at)]));
    }
}

/// True if an image has a backing image, according to the configuration or to its header.
fn has_backing(context: &Context<'_>, image: &Image) -> Result<bool, Missing> {
    match (&image.backing, image.format) {
        (Backing::Image(_), _) => return Ok(true),
        (Backing::Terminated, _) => return Ok(false),
        (Backing::Unspecified, Some(format)) if !format.has_backing() => return Ok(false),
        // Without a format QEMU probes one; another rule reports it.
        (Backing::Unspecified, format) if format != Some(Format::Qcow2) => return Ok(true),
        (Backing::Unspecified, _) => {}
    }
    // A new image is created without one.
    if image.creation.is_some() {
        return Ok(false);
    }
    let what = || "the header of an image on another host".to_owned();
    let header = host::qcow2_header(context, image);
    let header = header.unwrap_or_else(|| Err(Missing::new(what(), Missing::NOT_COLLECTED)))?;
    // Other rules report an image that does not exist or has another format.
    let Some(header) = header else {
        return Ok(true);
    };
    Ok(Context::known(header.backing.as_ref(), what)?.is_some())
}
