//! `source-missing`

use vmdisk_facts::HostIndex;
use vmdisk_fields::{phrase, quoted, setting};
use vmdisk_model::{
    Device, DevicePath, DevicePathKind, DiskField, FieldPath, Image, ImageField, StartupPolicy,
};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image file or device of a disk does not exist.
    ///
    /// ## What it reports
    /// Reports a disk whose image, data file or configured backing image does not exist on the host. A disk that
    /// describes how to create its storage is not reported. With `startupPolicy='optional'` the guest starts without the
    /// image: that is a warning for a disk, and advice for a CD or floppy drive. If the facts contain an image beside the
    /// missing one whose name begins it, as the base of a lost snapshot overlay does, the rule names that image.
    ///
    /// ## Why it matters
    /// libvirt accepts the definition and refuses to start the guest. The file may also be on a file system that is not
    /// mounted yet, or the device may have another name since the last boot.
    ///
    /// ## Use instead
    /// Correct the path, mount the file system, or create the image: `qemu-img create -f qcow2 IMAGE SIZE`. The device of a
    /// volume may be missing after a start of the host although the volume is there: activate it. The help names the
    /// command for LVM, ZFS, RBD and iSCSI.
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
    /// ```xml,reported,hidden,facts-btrfs-nocow-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/nocow/gone.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-btrfs-nocow-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/nocow/gone.qcow2' startupPolicy='optional'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-image-not-there
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/nocow/gone.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "source-missing",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("Cannot access storage file", "src/qemu/qemu_domain.c, qemuDomainDetermineDiskChain; for the image and for one in a configured <backingStore>"),
    ],
    check: Model(check),
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
            let Some(exists) = report.require_once(at, exists) else {
                continue;
            };
            if exists {
                continue;
            }
            let finding = report.finding(
                at,
                phrase!(
                    "{what} of {disk} does not exist: {path}",
                    what = match (kind, depth) {
                        (Kind::Image, 0) => "the image",
                        (Kind::Image, _) => "a backing image",
                        (Kind::DataFile, _) => "a data file",
                    },
                    path = quoted(path.to_owned()),
                ),
            );
            finding.label("not found on the host");
            if let Some(base) = context.host.and_then(|facts| left_base(facts, path)) {
                finding.note(format!(
                    "{base} is there: if the missing image was a snapshot of it, the guest can go back to it"
                ));
            }
            let startup = FieldPath::Disk(index, DiskField::StartupPolicy);
            if depth == 0 && disk.backend.startup_policy == Some(StartupPolicy::Optional) {
                let is_medium = matches!(
                    disk.frontend.effective_device(),
                    Device::Cdrom | Device::Floppy
                );
                finding
                    .severity(if is_medium {
                        Severity::Advice
                    } else {
                        Severity::Warning
                    })
                    .note(phrase!(
                        "libvirt starts the guest without it because of {optional}",
                        optional = setting(startup, StartupPolicy::Optional),
                    ))
                    .help("create it or correct the path");
                continue;
            }
            match disk.frontend.effective_device() {
                Device::Disk | Device::Lun => finding
                    .note(context.for_consumer(
                        "libvirt says `Cannot access storage file`, and the guest does not start",
                        "QEMU says `Could not open`, and does not start",
                    ))
                    .help(match to_activate(path) {
                        Some(how) => format!("{how}, or correct the path; if it exists by now, collect the facts again"),
                        None => "create it, mount its file system, or correct the path; if it exists by now, collect the facts again".to_owned(),
                    }),
                Device::Cdrom | Device::Floppy => finding
                    .note(match context.consumer {
                        Consumer::Libvirt => phrase!(
                            "libvirt says `Cannot access storage file`, and the guest does not start without {optional}",
                            optional = setting(startup, StartupPolicy::Optional),
                        ),
                        Consumer::Qemu => "QEMU says `Could not open`, and does not start".into(),
                    })
                    .help("correct the path, or remove the medium from the drive"),
            };
        }
    }
}

/// How a volume gets its device, which is gone after a start of the host although the data is there; `None` for a file.
fn to_activate(path: &str) -> Option<String> {
    if let Some(image) = path.strip_prefix("/dev/rbd/") {
        return Some(format!("map it with `rbd map {image}`"));
    }
    match DevicePath::new(path).kind() {
        DevicePathKind::LogicalVolume { group, volume } => Some(format!(
            "activate it with `lvchange --activate y {group}/{volume}` (with `--ignoreactivationskip` if it is skipped)"
        )),
        DevicePathKind::Mapper(_) => Some(
            "activate it (`vgchange --activate y GROUP`, `cryptsetup open`, `multipath`)"
                .to_owned(),
        ),
        DevicePathKind::Zvol(dataset) => {
            let pool = dataset.split('/').next().unwrap_or(dataset);
            Some(format!("import its pool with `zpool import {pool}`"))
        }
        DevicePathKind::Persistent { .. } if path.contains("-iscsi-") => {
            Some("log in to its target with `iscsiadm --mode node --login`".to_owned())
        }
        DevicePathKind::Persistent { .. } | DevicePathKind::KernelName(_) => {
            Some("connect the drive".to_owned())
        }
        DevicePathKind::Other => None,
    }
}

/// The role of a path.
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

/// The files and devices of a chain that must exist, each with its depth.
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

/// An image beside a missing one whose name, without its extension, begins the missing name: the base of an overlay.
fn left_base<'a>(facts: &HostIndex<'a>, missing: &str) -> Option<&'a str> {
    let (directory, name) = missing.rsplit_once('/')?;
    let files = facts.facts().files.iter();
    let begins = |path: &&str| {
        let base = path.rsplit_once('/').filter(|(own, _)| *own == directory);
        let stem = base.map(|(_, file)| file.rsplit_once('.').map_or(file, |(stem, _)| stem));
        let rest = stem.and_then(|stem| name.strip_prefix(stem).filter(|_| !stem.is_empty()));
        rest.is_some_and(|rest| rest.starts_with(['-', '.', '_']) && *path != missing)
    };
    let there = files.filter(|file| file.present.is_true() && file.image.is_known());
    there.map(|file| file.path.as_str()).find(begins)
}
