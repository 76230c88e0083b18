//! `source-missing`

use vmdisk_model::{Device, FieldPath, Image, ImageField, StartupPolicy};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity, host};

declare_rule! {
    /// A disk's file or device is not there.
    ///
    /// ## What it does
    /// Reports a disk whose image, or an image below it that is written, was looked for on the host and not
    /// found. A disk that says how its storage is to be made is left alone. For CD and floppy drives it is a
    /// warning, because `startupPolicy` may let the guest start without the medium.
    ///
    /// ## Why it matters
    /// libvirt accepts the definition and refuses to start the guest. A device named by an order of discovery,
    /// or a file system that is not mounted yet, look the same from here.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-nocow-6.18
    /// <domain type='kvm'>
    ///   <name>old</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/nocow/gone.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/nocow/gone.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "source-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt_at_start("Cannot access storage file", "src/qemu/qemu_domain.c, qemuDomainDetermineDiskChain; for the image and for one in a written <backingStore>"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        for (depth, kind, path) in paths(image) {
            let at = FieldPath::Image(index, depth, kind.field());
            let what = || format!("whether {path} exists");
            let exists = context
                .host(what)
                .and_then(|facts| Context::known(host::exists(facts, path), what))
                .and_then(|known: Option<bool>| {
                    known.ok_or_else(|| Missing::new(what(), "the facts contradict themselves"))
                });
            let Some(exists) = report.require(at, exists) else {
                // One missing fact is enough to say about one disk.
                break;
            };
            if exists {
                continue;
            }
            let name = disk.name();
            let finding = report.finding(
                at,
                match (kind, depth) {
                    (Kind::Image, 0) => format!("the image of `{name}` does not exist: {path}"),
                    (Kind::Image, _) => format!("an image below `{name}` does not exist: {path}"),
                    (Kind::DataFile, _) => {
                        format!("a data file of `{name}` does not exist: {path}")
                    }
                },
            );
            finding.label("not found on the host");
            if depth == 0 && disk.backend.startup_policy == Some(StartupPolicy::Optional) {
                finding
                    .severity(Severity::Warning)
                    .note(
                        "startupPolicy='optional' is written: libvirt starts the guest without it",
                    )
                    .help("make it or correct the path, if the guest is to have it");
                continue;
            }
            match disk.frontend.effective_device() {
                Device::Disk | Device::Lun => finding
                    .note(context.for_taker(
                        "libvirt says `Cannot access storage file`, and the guest does not start",
                        "QEMU says `Could not open`, and does not start",
                    ))
                    .help("make it, mount the file system it is on, or correct the path; if it has been made since, check again with facts of now"),
                Device::Cdrom | Device::Floppy => finding
                    .severity(Severity::Warning)
                    .note(context.for_taker(
                        "the guest does not start, unless startupPolicy='optional' is written for the medium",
                        "QEMU says `Could not open`, and does not start",
                    ))
                    .help("correct the path, or remove the medium from the drive"),
            };
        }
    }
}

/// What a path is to a disk.
#[derive(Clone, Copy)]
enum Kind {
    Image,
    DataFile,
}

impl Kind {
    const fn field(self) -> ImageField {
        match self {
            Kind::Image => ImageField::Path,
            Kind::DataFile => ImageField::DataFile,
        }
    }
}

/// The files and devices of a chain that are to be there, each with its depth.
fn paths(top: &Image) -> impl Iterator<Item = (usize, Kind, &str)> {
    let existing = top.chain().enumerate();
    let existing = existing.filter(|(_, image)| image.creation.is_none());
    existing.flat_map(|(depth, image)| {
        let data_file = image.data_file.as_deref().and_then(Image::host_path);
        let image = image.host_path().map(|path| (depth, Kind::Image, path));
        let data_file = data_file.map(|path| (depth, Kind::DataFile, path));
        image.into_iter().chain(data_file)
    })
}
