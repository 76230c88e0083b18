//! `source-is-mounted`

use std::collections::HashSet;

use vmdisk_facts::{BlockDevice, BlockKind, Fact, HostIndex};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Device, Disk, FieldPath, HostStorage, Image, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is a device that the host has mounted or otherwise uses.
    ///
    /// ## What it reports
    /// Reports a disk if the host uses its block device, a partition of it or a device on top of it: mounted, swap, an
    /// active volume group (LVM), an assembled array (md), an open LUKS container or a multipath device. An image file
    /// is reported if it is attached to a mounted loop device. A disk that the guest only reads is a warning, or not
    /// reported if the host only reads too.
    ///
    /// ## Why it matters
    /// Host and guest each cache the metadata of the file system and overwrite the changes of the other, which destroys
    /// the file system. QEMU opens a mounted device read-write without a warning, because it does not use `O_EXCL`.
    ///
    /// ## Use instead
    /// Unmount the device and remove it from `/etc/fstab`, or attach another device. If the volume group or array
    /// belongs to the guest, keep the host from activating it: LVM's devices file or `global_filter`, `AUTO` in
    /// `mdadm.conf`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-mounted-partition
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/nvme0n1p2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/mounted.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/swap.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/swapfile'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-mounted-partition
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/sdf2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "source-is-mounted",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("a mounted block device is opened read-write without a warning", "QEMU 5.2, 7.2, 10.0 and 11.1 on a loop device with a mounted XFS"),
        Evidence::measured("O_RDWR succeeds and O_RDWR with O_EXCL gives EBUSY for a mounted partition and the disk around it, swap, an md member, a PV with an active group, a device under a LUKS container, and every member of a mounted btrfs", "Linux 6.1.192"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let uses = context.host.map(Uses);
    for (index, disk, image) in context.images() {
        match disk.frontend.effective_device() {
            Device::Disk | Device::Lun => {}
            Device::Cdrom | Device::Floppy => continue,
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(path) = image.host_path() else {
            continue;
        };
        let found = match &uses {
            Some(uses) => uses.of_image(path, image),
            // Files are rarely mounted loop devices, so missing facts are not reported for them.
            None if is_device(image) => {
                let what = || format!("how the host uses {path}");
                context.host(what).map(|_| None)
            }
            None => Ok(None),
        };
        if let Some(Some(found)) = report.require(at, found) {
            report_use(report, index, disk, path, &found);
        }
    }
}

fn is_device(image: &Image) -> bool {
    matches!(image.protocol.on_host(), Some(HostStorage::Device(_)))
}

/// How the host uses a device and the devices on top of it.
#[derive(Debug, Default)]
struct Use {
    /// Mounted devices with their mount points.
    mounted: Vec<(String, String)>,
    /// True if the host may write to any of them.
    is_written: bool,
    /// Devices with active swap.
    swap: Vec<String>,
    /// Descriptions of the devices on top of it.
    held_by: Vec<String>,
}

impl Use {
    fn is_none(&self) -> bool {
        let Use {
            mounted,
            is_written: _,
            swap,
            held_by,
        } = self;
        mounted.is_empty() && swap.is_empty() && held_by.is_empty()
    }
}

/// The devices of a host, and their use.
#[derive(Clone, Copy)]
struct Uses<'a>(&'a HostIndex<'a>);

impl<'a> Uses<'a> {
    /// How the host uses the device or file of an image; `None` if it does not.
    fn of_image(&self, path: &str, image: &Image) -> Result<Option<Use>, Missing> {
        let what = || format!("how the host uses {path}");
        let found = match Context::known(self.0.block_device(path), what) {
            Ok(Some(device)) => self.of_device(device)?,
            Ok(None) => self.of_file(path)?,
            Err(missing) if is_device(image) => return Err(missing),
            // For files only loop devices matter.
            Err(_) => self.of_file(path)?,
        };
        Ok((!found.is_none()).then_some(found))
    }

    /// The use of a file: as swap, and through the loop devices on it.
    fn of_file(&self, path: &str) -> Result<Use, Missing> {
        let mut found = Use::default();
        if self.0.file(path).is_some_and(|file| file.swap.is_true()) {
            found.swap.push(path.to_owned());
            found.is_written = true;
        }
        for device in self.0.loop_devices_over(path) {
            let Use {
                mounted,
                is_written,
                swap,
                held_by,
            } = self.of_device(device)?;
            found.mounted.extend(mounted);
            found.is_written |= is_written;
            found.swap.extend(swap);
            found.held_by.extend(held_by);
        }
        Ok(found)
    }

    /// Visits a device, its partitions and the devices on top of them, each once.
    fn of_device(&self, device: &'a BlockDevice) -> Result<Use, Missing> {
        let mut found = Use::default();
        let mut unknown = None;
        let mut seen = HashSet::from([device.id.as_str()]);
        let mut next = vec![device];
        while let Some(above) = next.pop() {
            // The host creates the partitions of multipath devices automatically; they hold nothing themselves.
            let is_part = matches!(
                above.kind,
                BlockKind::Partition | BlockKind::MultipathPartition
            );
            if above.id != device.id && !is_part {
                found.held_by.push(describe(above));
            }
            let on_top = self.look(above, &mut found).unwrap_or_else(|missing| {
                unknown.get_or_insert(missing);
                Vec::new()
            });
            next.extend(
                on_top
                    .iter()
                    .filter(|id| seen.insert(id.as_str()))
                    .filter_map(|id| self.0.device(id)),
            );
        }
        match unknown {
            Some(missing) if found.is_none() => Err(missing),
            Some(_) | None => Ok(found),
        }
    }

    /// Records how the host uses one device, and returns the ids of the devices on top of it.
    fn look(&self, device: &'a BlockDevice, found: &mut Use) -> Result<Vec<&'a String>, Missing> {
        let what = || format!("how the host uses {}", device.name());
        let mounted_at = Context::known(device.mounted_at.as_ref(), what)?;
        let mut points: Vec<&str> = mounted_at
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        if points.is_empty() {
            points.extend(self.0.mount_point_over(&device.id));
        }
        for point in points {
            found
                .mounted
                .push((device.name().into_owned(), point.to_owned()));
            let is_read_only = match self.0.mount_of(point) {
                Fact::Known(mount) if mount.point == point => mount.read_only().is_true(),
                Fact::Known(_) | Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => false,
            };
            found.is_written |= !is_read_only;
        }
        if device.swap.is_true() {
            found.swap.push(device.name().into_owned());
            found.is_written = true;
        }
        let holders = Context::known(device.holders.as_ref(), what)?;
        let partitions = Context::known(device.partitions.as_ref(), what)?;
        Ok(holders.into_iter().chain(partitions).flatten().collect())
    }
}

/// True for the mount points of the system and of snaps, which nobody unmounts for a guest.
fn is_of_system(point: &str) -> bool {
    let is_below = |top: &str| {
        let rest = point.strip_prefix(top);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    point == "/"
        || ["/boot", "/efi", "/snap", "/usr", "/var"]
            .into_iter()
            .any(is_below)
}

/// The description of a device that holds another.
fn describe(device: &BlockDevice) -> String {
    let name = device.name();
    let kind = &device.kind;
    if kind.is_lvm() {
        format!("the logical volume {name}")
    } else if kind.is_crypt() {
        format!("the opened container {name}")
    } else if *kind == BlockKind::Md {
        format!("the array {name}")
    } else {
        format!("the {kind} device {name}")
    }
}

fn report_use(report: &mut Report, index: usize, disk: &Disk, path: &str, found: &Use) {
    let Use {
        mounted,
        is_written,
        swap,
        held_by,
    } = found;
    let at = FieldPath::Image(index, 0, ImageField::Path);
    let only_reads = !disk.is_writable();
    let only_mounted = swap.is_empty() && held_by.is_empty();
    if only_reads && only_mounted && !is_written {
        return;
    }
    let (title, help) = match (mounted.first(), swap.first(), held_by.first()) {
        (Some((_, point)), _, _) => (
            phrase!(
                "{disk} is on a device that the host has mounted at {point}",
                point = quoted(point.clone())
            ),
            match is_of_system(point) {
                true => "attach another device: the host itself needs this one",
                false => {
                    "unmount it and remove it from /etc/fstab before the guest uses it, or attach another device"
                }
            },
        ),
        (None, Some(swap), _) => (
            phrase!(
                "{disk} is on a device that the host uses as swap: {swap}",
                swap = quoted(swap.clone())
            ),
            "run `swapoff` and remove it from /etc/fstab before the guest uses it, or attach another device",
        ),
        (None, None, Some(holder)) => (
            phrase!(
                "{disk} is on a device in use by the host, for {holder}",
                holder = holder.clone()
            ),
            "deactivate the device on top; if it belongs to the guest, keep the host from activating it (LVM's devices file or global_filter, AUTO in mdadm.conf); or attach the device on top",
        ),
        (None, None, None) => return,
    };
    let finding = report.finding(at, title);
    finding.label(format!("the host uses {path}"));
    for (device, point) in mounted {
        finding.note(format!("{device} is mounted at {point}"));
    }
    for device in swap {
        finding.note(format!("{device} is active swap"));
    }
    for holder in held_by {
        finding.note(format!("{holder} is on top of it"));
    }
    if only_reads {
        finding
            .severity(Severity::Warning)
            .note("a warning, because the guest only reads; the data changes while it reads");
    } else {
        finding
            .note("QEMU does not check whether the host uses the device, and opens it for writing");
    }
    finding.help(help);
}
