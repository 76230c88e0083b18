//! `unstable-device-path`

use vmdisk_facts::{BlockDevice, BlockKind, HostIndex};
use vmdisk_fields::{phrase, quoted, setting};
use vmdisk_model::{
    Bytes, Change, Device, DevicePath, DevicePathKind, Disk, FieldPath, HostStorage, ImageField,
    Manager,
};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk uses a device name such as `/dev/sdb`, which can be another device after the next boot.
    ///
    /// ## What it reports
    /// Reports `/dev/sdX`, `/dev/nvmeXnY`, `/dev/vdX`, `/dev/dm-N` and similar names, with or without a partition, as
    /// the source of a disk, also as `file=`. The rule does not report CD drives or names that an administrator
    /// chooses: `/dev/md0`, `/dev/loop0`, `/dev/nbd0`. If host facts know the device, the finding proposes its
    /// persistent name.
    ///
    /// It is only a warning if the facts say that `/dev/dm-N` is a multipath map. OpenStack Nova, for example, looks
    /// up the map at each start of a guest, and writes its current name into the XML: then there is nothing to correct
    /// in the file.
    ///
    /// ## Why it matters
    /// The kernel assigns these names in the order in which it finds the devices, and that order is not fixed. After a
    /// boot, a new drive or a changed cable, `/dev/sdb` can be the disk with the host's own file system, and the guest
    /// writes to it. With a persistent name, the guest does not start instead.
    ///
    /// ## Use instead
    /// Use the link under `/dev/disk/by-id` (`ls -l /dev/disk/by-id` lists them), `/dev/VG/LV` for a logical volume,
    /// and `/dev/mapper/NAME` for a multipath map or an encrypted device. Check that it is still the device you mean.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/nvme2n1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/nvme-eui.36344730541000030025384e00000001'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/sdb'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "unstable-device-path",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::Source("Linux drivers/scsi/sd.c, sd_probe: a disk gets the lowest number that is free when it is probed, and probing is asynchronous"),
        Evidence::Source("systemd udev rules 60-persistent-storage: /dev/disk/by-id is made of serial number and world wide name"),
        Evidence::Source("OpenStack Nova's XML for iSCSI and Fibre Channel volumes names /dev/dm-N and /dev/sdX, and is written anew at each start"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Such a manager writes the name that the device has at that start.
    if context
        .domain
        .manager
        .is_some_and(Manager::resolves_devices)
    {
        return;
    }
    for (index, disk, image) in context.images() {
        match disk.frontend.effective_device() {
            Device::Disk | Device::Lun | Device::Floppy => {}
            Device::Cdrom => continue,
        }
        for (depth, image) in image.chain().enumerate() {
            let path = match image.protocol.on_host() {
                Some(HostStorage::Device(path)) => path.clone(),
                // A device as a file is still that device.
                Some(HostStorage::File(path)) if path.starts_with("/dev/") => DevicePath::new(path),
                Some(HostStorage::File(_)) | None => continue,
            };
            if is_unstable(&path) {
                let at = FieldPath::Image(index, depth, ImageField::Path);
                report_unstable(context, report, at, disk, &path.0);
            }
        }
    }
}

/// True if the kernel assigned the name.
fn is_unstable(path: &DevicePath) -> bool {
    // The number of these devices is chosen: by losetup, qemu-nbd, mdadm.conf.
    const CHOSEN: [&str; 5] = ["md", "loop", "nbd", "pmem", "sr"];
    match path.kind() {
        DevicePathKind::KernelName(name) => !CHOSEN.iter().any(|prefix| name.starts_with(prefix)),
        _ => false,
    }
}

fn report_unstable(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    disk: &Disk,
    path: &str,
) {
    let quoted_path = || quoted(path.to_owned());
    let finding = report.finding(
        at,
        phrase!(
            "{disk} uses {path}, which can be another device after the next boot",
            path = quoted_path(),
        ),
    );
    let does = if disk.is_writable() {
        "the guest starts and writes to it"
    } else {
        "the guest starts and reads it"
    };
    finding
        .label("the kernel assigns this name in the order of discovery")
        .note(phrase!(
            "if {path} becomes another drive, {does}",
            path = quoted_path(),
            does
        ));
    let device = context
        .host
        .and_then(|host: &HostIndex<'_>| host.block_device(path).known());
    let name = device.and_then(stable_name);
    if let Some(device) = device {
        if matches!(
            device.kind,
            BlockKind::Multipath | BlockKind::MultipathPartition
        ) {
            finding
                .severity(Severity::Warning)
                .note("it is a multipath map; management software can write its current name at each start");
        }
        if name.is_some() {
            finding.note(phrase!(
                "when the facts were collected, {path} was {device}",
                path = quoted_path(),
                device = describe(device),
            ));
        }
    }
    match name {
        Some(name) => finding
            .help(phrase!(
                "use {name}, if that is still the right device",
                name = setting(at, name),
            ))
            .fix(Fix::needs_consent([Change::set(at, name)])),
        None => finding.help(
            "use the link under /dev/disk/by-id (`ls -l /dev/disk/by-id` lists them), or the name of the logical volume",
        ),
    };
}

/// The persistent name of a device, the most readable first.
fn stable_name(device: &BlockDevice) -> Option<&str> {
    let links = device.by_id.as_ref().known().into_iter().flatten();
    let names = device.paths.iter().chain(links).map(String::as_str);
    names
        .filter_map(|name| rank(name).map(|rank| (rank, name)))
        .min()
        .map(|(_, name)| name)
}

/// The rank of a persistent name, the best first; `None` for other names.
fn rank(name: &str) -> Option<u8> {
    let path = DevicePath::new(name);
    match path.kind() {
        DevicePathKind::LogicalVolume { .. } | DevicePathKind::Zvol(_) => Some(0),
        DevicePathKind::Mapper(_) => Some(1),
        DevicePathKind::Persistent {
            scheme: "by-id", ..
        } => {
            let link = name.rsplit('/').next().unwrap_or_default();
            // A world wide name belongs to the drive, and so does, nearly as surely, a serial number with the model;
            // the identifiers of the device mapper are harder to read than its names.
            Some(match link {
                _ if link.starts_with("wwn-") || link.starts_with("nvme-eui.") => 2,
                _ if link.starts_with("dm-") || link.starts_with("lvm-") => 5,
                _ if link.starts_with("usb-") => 4,
                _ => 3,
            })
        }
        // The identifier of a partition belongs to its content, which a copy has too; the others belong to the slot.
        _ => None,
    }
}

/// The device in words, with model and size if they are known.
fn describe(device: &BlockDevice) -> String {
    let kind = Some(device.kind.as_str().to_owned());
    let model = device.model.as_str().known();
    let model = model.map(|model| model.trim().to_owned());
    let size = device.size.clone().known().map(size_of_drive);
    let known: Vec<String> = [kind, model, size].into_iter().flatten().collect();
    format!("a block device ({})", known.join(", "))
}

/// A size as drives are sold, in powers of ten; a small one as it is configured.
fn size_of_drive(bytes: u64) -> String {
    match bytes / 1_000_000_000 {
        0 => Bytes(bytes).to_string(),
        gigabytes => format!("{gigabytes} GB"),
    }
}
