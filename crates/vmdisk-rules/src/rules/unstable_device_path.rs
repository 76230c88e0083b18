//! `unstable-device-path`

use vmdisk_facts::{BlockDevice, Fact, HostIndex};
use vmdisk_model::{
    Change, Device, DevicePath, DevicePathKind, Disk, FieldPath, HostStorage, ImageField,
};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk names a device by a name that the next boot may give to another device.
    ///
    /// ## What it does
    /// Reports `/dev/sdX`, `/dev/nvmeXnY`, `/dev/vdX`, `/dev/dm-N` and their like, with or without a partition, as
    /// the source of a disk. With host facts that know the device it offers the name that stays: the logical
    /// volume's own, or the link under `/dev/disk/by-id`. CD drives are left alone, and so are names that whoever
    /// makes the device chooses: `/dev/md0`, `/dev/loop0`, `/dev/nbd0`.
    ///
    /// ## Why it matters
    /// The kernel hands these names out in the order in which it finds the devices, and it does not wait for one
    /// before it asks the next. After a boot, a new drive or a changed cable, `/dev/sdb` may be the disk that the host's own file
    /// system is on, and the guest writes to it. A name that follows the drive makes the guest fail to start instead.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/nvme2n1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,facts-xfs-nvme
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
    pub(super) static RULE = {
        name: "unstable-device-path",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Source("Linux drivers/scsi/sd.c, sd_probe: a disk gets the lowest number that is free when it is probed, and probing is asynchronous"),
            Evidence::Source("systemd udev rules 60-persistent-storage: /dev/disk/by-id is made of serial number and world wide name"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        match disk.frontend.effective_device() {
            Device::Disk | Device::Lun | Device::Floppy => {}
            Device::Cdrom => continue,
        }
        for (depth, image) in image.chain().enumerate() {
            match image.protocol.on_host() {
                Some(HostStorage::Device(path)) if is_unstable(path) => {
                    let at = FieldPath::Image(index, depth, ImageField::Path);
                    report_unstable(context, report, at, disk, &path.0);
                }
                Some(HostStorage::Device(_) | HostStorage::File(_)) | None => {}
            }
        }
    }
}

/// Whether the kernel alone chose the name.
fn is_unstable(path: &DevicePath) -> bool {
    // Whoever makes these devices chooses the number: losetup, qemu-nbd, mdadm.conf.
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
    let finding = report.finding(
        at,
        format!(
            "`{}` may be another device after the next boot",
            disk.name()
        ),
    );
    let does = if disk.is_writable() {
        "writes to it"
    } else {
        "reads what is there"
    };
    finding
        .label("the kernel gives this name out in the order of discovery")
        .note(format!(
            "if {path} becomes another drive, the guest starts on it and {does}"
        ));
    match context.host.and_then(|host| stable_name(host, path)) {
        Some((name, device)) => {
            finding
                .note(format!(
                    "when the facts were collected, {path} was {}",
                    describe(device)
                ))
                .help(format!(
                    "write {name}, if that is still the device that is meant"
                ))
                .fix(Fix::needs_consent([Change::set(at, name)]));
        }
        None => {
            finding.help("write the link under /dev/disk/by-id that leads there, or the logical volume's own name; ls -l /dev/disk/by-id shows them");
        }
    }
}

/// The name of a device that follows it, the most telling first.
fn stable_name<'a>(host: &'a HostIndex<'a>, path: &str) -> Option<(&'a str, &'a BlockDevice)> {
    let Fact::Known(device) = host.block_device(path) else {
        return None;
    };
    let links = device.by_id.as_ref().known().into_iter().flatten();
    let names = device.paths.iter().chain(links).map(String::as_str);
    names
        .filter_map(|name| rank(name).map(|rank| (rank, name)))
        .min()
        .map(|(_, name)| (name, device))
}

/// How well a name follows the device, the best first; `None` if it does not.
fn rank(name: &str) -> Option<u8> {
    let path = DevicePath::new(name);
    match path.kind() {
        DevicePathKind::LogicalVolume { .. } | DevicePathKind::Zvol(_) => Some(0),
        DevicePathKind::Mapper(_) => Some(1),
        DevicePathKind::Persistent {
            scheme: "by-id", ..
        } => {
            let link = name.rsplit('/').next().unwrap_or_default();
            // A world wide name belongs to the drive, a serial number in a model's name nearly as surely; the
            // device mapper's identifiers are harder to read than its names.
            Some(match link {
                _ if link.starts_with("wwn-") || link.starts_with("nvme-eui.") => 2,
                _ if link.starts_with("dm-") || link.starts_with("lvm-") => 5,
                _ if link.starts_with("usb-") => 4,
                _ => 3,
            })
        }
        // The partition's own identifier follows its content, which a copy has too; the others follow the slot.
        _ => None,
    }
}

/// The device in words: model and size, as far as they are known.
fn describe(device: &BlockDevice) -> String {
    let size = device.size.clone().known();
    let size = size.map(|size| format!("{} GB", size / 1_000_000_000));
    let model = device.model.as_str().known().map(str::trim);
    match (model, size) {
        (Some(model), Some(size)) => format!("a {} ({model}, {size})", device.kind),
        (None, Some(size)) => format!("a {} ({size})", device.kind),
        (Some(model), None) => format!("a {} ({model})", device.kind),
        (None, None) => format!("a {}", device.kind),
    }
}
