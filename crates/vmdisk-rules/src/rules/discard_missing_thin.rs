//! `discard-missing-thin`

use vmdisk_facts::verdict::allocation::Allocation;
use vmdisk_facts::{BlockKind, Bug, Fact, HostIndex};
use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{
    Bytes, Change, Device, Discard, Disk, DiskField, FieldPath, Format, HostStorage, Image,
    NetworkProtocol, Protocol,
};
use vmdisk_rule::{
    Confidence, Context, Evidence, Fix, Group, Missing, Report, Severity, declare_rule,
};

use super::qcow2_discard_corruption;
use crate::{host, thin};

declare_rule! {
    /// A disk on thin or sparse storage does not pass discards on and never frees space.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, without `discard='unmap'`, on storage that grows with its data: a
    /// warning for a thin logical volume, whose pool is shared; advice for a ZFS volume, an RBD image, a sparse raw file and
    /// a qcow2 image. A fully allocated file is not reported, because discards would undo the allocation. Without facts, a
    /// qcow2 image is assumed not to be preallocated.
    ///
    /// ## Why it matters
    /// QEMU drops the guest's TRIM, and deleted data stays allocated. Each disk of a thin pool grows to its full size,
    /// and when the pool is full, writes to all its volumes stop. The guest sees no difference, because QEMU offers
    /// discards in both cases.
    ///
    /// QEMU before 10.0.11, and from 10.1 to 11.0.1, can corrupt a qcow2 image when a discard meets a write in flight
    /// to the same cluster. Data matters more than space: for these versions, and without a version, the advice about
    /// qcow2 images has no fix, and is given once for all guests of a host. Then free the space while the guest is off
    /// (`virt-sparsify --in-place IMAGE`), or update QEMU.
    ///
    /// ## Use instead
    /// Use `discard='unmap'`, and let the guest trim: enable `fstrim.timer` in the guest, or mount with the `discard`
    /// option. Trimming costs some I/O, and freed blocks are allocated again at the next write.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-64k
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// Without a fix, because discards can corrupt qcow2 images with this QEMU:
    /// ```xml,reported,qemu-7.2
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Another disk of the guest discards, so `qcow2-discard-corruption` asks for a newer QEMU already:
    /// ```xml,not-reported,qemu-7.2
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///       <source file='/srv/img/web2.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,qemu-11.1
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent,hidden,qemu-11.1
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source protocol='rbd' name='vms/web1'>
    ///     <host name='ceph1.example' port='6789'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source protocol='rbd' name='vms/web1'>
    ///     <host name='ceph1.example' port='6789'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-lvm-thin-64k
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A fully allocated raw file:
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts, because the device may or may not be thin:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "discard-missing-thin",
    group: Group::Space,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("16644 KiB before and after the guest discarded 16 MiB without discard=unmap, 260 KiB after with it", "QEMU 5.2, 7.2, 10.0 and 11.1 with qcow2"),
        Evidence::Source("QEMU qapi/block-core.json, discard: the default is ignore"),
        Evidence::Source("Debian changelogs of QEMU 10.0.11 and 11.0.2: qcow2: Fix corruption on discard during write with COW; reproduced on 5.2 and 7.2.22"),
    ],
    check: Model(check),
}

/// Storage that is allocated as the guest writes.
struct Grows {
    what: &'static str,
    severity: Severity,
    confidence: Confidence,
    note: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let corrupts = context.target.has_bug(Bug::Qcow2DiscardDuringCow);
    // `qcow2-discard-corruption` says the same about the host, if another disk of the guest discards.
    let mut is_told = corrupts.is_yes() && qcow2_discard_corruption::is_affected(context);
    for (index, disk, image) in context.images() {
        if !drops_discards(disk)
            || super::machine_type_old_defaults::hides_discards(context.domain, disk)
        {
            continue;
        }
        let is_qcow2 = will_be_qcow2(context, image);
        let at = FieldPath::Disk(index, DiskField::Discard);
        let Some(Some(grows)) = report.require(at, grows(context, image)) else {
            continue;
        };
        let waits = is_qcow2 && !corrupts.is_no();
        // A file that grows can wait for the next QEMU: once for the guests of a host is enough. A pool can run full.
        let is_about_host = waits && grows.severity == Severity::Advice;
        if is_about_host && std::mem::replace(&mut is_told, true) {
            continue;
        }
        let fix = [Change::set(at, Discard::Unmap)];
        let qemu = context.target.qemu.filter(|_| corrupts.is_yes());
        let title = match qemu {
            _ if !is_about_host => phrase!(
                "{disk} is {what} and does not free what the guest deletes",
                what = grows.what,
            ),
            Some(qemu) => phrase!(
                "qcow2 images do not free what the guest deletes, and discards can corrupt them on QEMU {qemu}",
                qemu = qemu.to_string(),
            ),
            None => "qcow2 images do not free what the guest deletes, and discards can corrupt them on an older QEMU".into(),
        };
        let finding = report.finding(at, title);
        finding
            .label(match disk.backend.discard {
                Some(_) => Phrase::from("drops the guest's discards"),
                None => phrase!(
                    "{discard} is not set here, so the guest's discards are dropped",
                    discard = at
                ),
            })
            .severity(grows.severity)
            .confidence(grows.confidence)
            .note(grows.note);
        let unmap = setting(at, Discard::Unmap);
        if !waits {
            finding
                .help(phrase!("use {unmap}, and let the guest trim (`fstrim.timer`, or the `discard` mount option)", unmap))
                .fix(if is_qcow2 {
                    Fix::needs_consent(fix)
                } else {
                    Fix::safe(fix)
                });
            continue;
        }
        if is_about_host {
            finding.about_host();
        }
        let fixed = Bug::Qcow2DiscardDuringCow.row().fix().unwrap_or_default();
        match qemu {
            Some(_) => finding
                .help(phrase!(
                    "shrink it while the guest is off (`virt-sparsify --in-place`); with QEMU {fixed} or later, use {unmap}, and let the guest trim (`fstrim.timer`, or the `discard` mount option)",
                    fixed,
                    unmap,
                )),
            None => finding
                .help(phrase!(
                    "with QEMU {fixed} or later, use {unmap}, and let the guest trim (`fstrim.timer`, or the `discard` mount option); name the version with `--target qemu=…` for a fix",
                    fixed,
                    unmap,
                )),
        };
    }
}

/// True for a persistent disk that the guest writes, whose discards QEMU drops.
fn drops_discards(disk: &Disk) -> bool {
    disk.is_writable()
        && !disk.backend.is_transient
        && disk.backend.discard != Some(Discard::Unmap)
        && disk.frontend.effective_device() == Device::Disk
}

/// True for a qcow2 image, also if its format is missing or another one: `format-missing` and `format-mismatch` end that.
fn will_be_qcow2(context: &Context<'_>, image: &Image) -> bool {
    let header = || match image.protocol.on_host() {
        Some(HostStorage::File(path)) => host::header_format(context, path).ok().flatten(),
        _ => None,
    };
    host::format_in_use(context, image) == Ok(Format::Qcow2) || header() == Some("qcow2")
}

fn grows(context: &Context<'_>, image: &Image) -> Result<Option<Grows>, Missing> {
    match image.protocol.on_host() {
        Some(HostStorage::Device(path)) => device_grows(context, &path.0),
        Some(HostStorage::File(path)) => match host::format_in_use(context, image) {
            _ if will_be_qcow2(context, image) => Ok(qcow2_grows(context.host, path)),
            Ok(Format::Raw) | Err(_) => raw_file_grows(context, path),
            _ => Ok(None),
        },
        None => Ok(match &image.protocol {
            Protocol::Network(it) if it.protocol == NetworkProtocol::Rbd => Some(rbd_grows()),
            _ => None,
        }),
    }
}

/// Ceph stores the objects of an image that were written, whoever opens it.
fn rbd_grows() -> Grows {
    Grows {
        what: "an RBD image",
        severity: Severity::Advice,
        confidence: Confidence::Certain,
        note: "an RBD image gets its space from the pool as the guest writes".to_owned(),
    }
}

fn device_grows(context: &Context<'_>, path: &str) -> Result<Option<Grows>, Missing> {
    let Some((_, device)) = host::block_device(context, path)? else {
        return Ok(None);
    };
    if device.kind == BlockKind::LvmThin {
        let pool = match &device.lvm {
            Fact::Known(lvm) => thin::pool_of(lvm),
            _ => "its thin pool".to_owned(),
        };
        return Ok(Some(Grows {
            what: "a thin logical volume",
            severity: Severity::Warning,
            confidence: Confidence::Certain,
            note: format!(
                "{path} gets its space from {pool}; when the pool is full, all its volumes stop"
            ),
        }));
    }
    if device.kind == BlockKind::Rbd {
        return Ok(Some(rbd_grows()));
    }
    if device.kind == BlockKind::Zvol {
        return Ok(Some(Grows {
            what: "a ZFS volume",
            severity: Severity::Advice,
            confidence: Confidence::Assumed,
            note: format!("{path} gets its space from the ZFS pool, unless it reserves all of it"),
        }));
    }
    Ok(None)
}

/// A qcow2 image grows unless it was preallocated.
fn qcow2_grows(facts: Option<&HostIndex<'_>>, path: &str) -> Option<Grows> {
    let file = facts.and_then(|facts| facts.file(path));
    let allocated = file.and_then(|file| file.alloc.clone().known());
    let size = file.and_then(|file| {
        let size = file
            .image
            .as_ref()
            .and_then(|header| header.virtual_size.clone());
        size.known()
    });
    let (confidence, note) = match (allocated, size) {
        (Some(allocated), Some(size)) if allocated >= size => return None,
        (Some(_), Some(_)) => (
            Confidence::Certain,
            format!("{path} is not fully allocated, so it grows as the guest writes"),
        ),
        _ => (
            Confidence::Assumed,
            "a qcow2 image grows as the guest writes, unless it was preallocated".to_owned(),
        ),
    };
    Some(Grows {
        what: "a qcow2 image",
        severity: Severity::Advice,
        confidence,
        note,
    })
}

fn raw_file_grows(context: &Context<'_>, path: &str) -> Result<Option<Grows>, Missing> {
    let what = || format!("whether {path} is sparse");
    let facts = context.host(what)?;
    let Some(file) = facts.file(path) else {
        return Err(Missing::new(what(), Missing::NOT_COLLECTED));
    };
    if file.is_missing() {
        return Err(Missing::new(what(), "the file does not exist yet"));
    }
    let allocation = Context::known(file.allocation(), what)?;
    let sparse = allocation.filter(Allocation::is_sparse);
    Ok(sparse.map(|Allocation { allocated, size }| Grows {
        what: "a sparse file",
        severity: Severity::Advice,
        confidence: Confidence::Certain,
        note: format!(
            "{path} has {} of its {} allocated",
            Bytes(allocated),
            Bytes(size)
        ),
    }))
}
