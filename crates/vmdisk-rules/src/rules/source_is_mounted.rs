//! `source-is-mounted`

use std::collections::{HashMap, HashSet};

use vmdisk_facts::{BlockDevice, BlockKind, Fact, HostIndex};
use vmdisk_model::{Device, Disk, FieldPath, HostStorage, Image, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// A disk is a device that the host itself uses.
    ///
    /// ## What it does
    /// Looks at the block device behind a disk, at its partitions and at everything on top of them, and reports
    /// what the host has mounted, swaps to, or holds: an active volume group (LVM), an assembled array (md), an
    /// opened LUKS container, a multipath device. An image file is reported when the host has it attached to a loop
    /// device that is mounted. A disk that the guest only reads is a warning, and none if the host only reads too.
    ///
    /// ## Why it matters
    /// Host and guest each keep a file system's metadata in memory and write it back over the other's: both lose
    /// the file system. QEMU opens a mounted device read-write without a word, because the kernel allows it:
    /// opening with `O_EXCL` would fail, and QEMU does not ask for that. If the volume group or array inside
    /// belongs to the guest, the host found and activated it by itself, and has to be told to leave it alone.
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
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts, nobody knows what the host does with the device:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "source-is-mounted",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a mounted block device is opened read-write and nothing is said",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 on a loop device with a mounted XFS",
            },
            Evidence::Measured {
                figures: "O_RDWR succeeds and O_RDWR with O_EXCL gives EBUSY for a mounted partition and the disk around it, swap, an md member, a PV with an active group, a device under a LUKS container, and every member of a mounted btrfs",
                how: "Linux 6.1.192",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let uses = context.host.map(Uses::new);
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
            // A file is hardly ever a mounted loop device, so that nothing is said of files without facts.
            None if is_device(image) => {
                let what = || format!("what the host does with {path}");
                context.host(what).map(|_| None)
            }
            None => Ok(None),
        };
        if let Some(Some(found)) = report.require(at, found) {
            report_use(report, at, disk, path, &found);
        }
    }
}

fn is_device(image: &Image) -> bool {
    match image.protocol.on_host() {
        Some(HostStorage::Device(_)) => true,
        Some(HostStorage::File(_)) | None => false,
    }
}

/// What the host does with a device and what is on it.
#[derive(Debug, Default)]
struct Use {
    /// Where it is mounted, with the device that is.
    mounted: Vec<(String, String)>,
    /// Whether the host writes to any of these mounts, as far as is known.
    is_written: bool,
    /// Devices the host swaps to.
    swap: Vec<String>,
    /// Devices on top of it, in words.
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

/// What the host does with its devices.
struct Uses<'a> {
    host: &'a HostIndex<'a>,
    /// The mount point of the file system that a device is part of: mountinfo names one of several.
    mounted_members: HashMap<&'a str, &'a str>,
    /// Loop devices by the file behind them.
    loops: HashMap<&'a str, &'a BlockDevice>,
}

impl<'a> Uses<'a> {
    fn new(host: &'a HostIndex<'a>) -> Self {
        let facts = host.facts();
        let mut mounted_members = HashMap::new();
        for mount in &facts.mounts {
            let Fact::Known(filesystem) = &mount.fs else {
                continue;
            };
            let members = host.filesystem(filesystem).map(|fs| &fs.devices);
            if let Some(Fact::Known(members)) = members {
                for member in members {
                    mounted_members
                        .entry(member.as_str())
                        .or_insert(mount.point.as_str());
                }
            }
        }
        let mut loops = HashMap::new();
        for device in &facts.blockdevs {
            if let Fact::Known(file) = &device.loop_file
                && let Fact::Known(path) = &file.backing_file
            {
                loops.insert(path.as_str(), device);
            }
        }
        Uses {
            host,
            mounted_members,
            loops,
        }
    }

    /// What the host does with what is behind an image; `None` if nothing.
    fn of_image(&self, path: &str, image: &Image) -> Result<Option<Use>, Missing> {
        let what = || format!("what the host does with {path}");
        let found = match Context::known(self.host.block_device(path), what) {
            Ok(Some(device)) => self.of_device(device)?,
            Ok(None) => self.of_file(path)?,
            Err(missing) if is_device(image) => return Err(missing),
            // Files need not be described for this rule: only the loop devices count.
            Err(_) => self.of_file(path)?,
        };
        Ok((!found.is_none()).then_some(found))
    }

    fn of_file(&self, path: &str) -> Result<Use, Missing> {
        match self.loops.get(path) {
            Some(device) => self.of_device(device),
            None => Ok(Use::default()),
        }
    }

    /// Walks from a device to its partitions and to what is on top of them, each once.
    fn of_device(&self, device: &'a BlockDevice) -> Result<Use, Missing> {
        let mut found = Use::default();
        let mut unknown = None;
        let mut seen = HashSet::from([device.id.as_str()]);
        let mut next = vec![device];
        while let Some(above) = next.pop() {
            // A partition of a multipath device is made by the host for every table it sees, as the
            // kernel makes those of a disk, and holds nothing by itself.
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
                    .filter_map(|id| self.host.device(id)),
            );
        }
        match unknown {
            Some(missing) if found.is_none() => Err(missing),
            Some(_) | None => Ok(found),
        }
    }

    /// Notes what the host does with one device, and gives the ids of what is on top of it.
    fn look(&self, device: &'a BlockDevice, found: &mut Use) -> Result<Vec<&'a String>, Missing> {
        let what = || format!("what the host does with {}", device.name());
        let mounted_at = Context::known(device.mounted_at.as_ref(), what)?;
        let mut points: Vec<&str> = mounted_at
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        if points.is_empty() {
            points.extend(self.mounted_members.get(device.id.as_str()).copied());
        }
        for point in points {
            found
                .mounted
                .push((device.name().into_owned(), point.to_owned()));
            let is_read_only = match self.host.mount_of(point) {
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

/// A device that holds another, in words.
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

fn report_use(report: &mut Report, at: FieldPath, disk: &Disk, path: &str, found: &Use) {
    let Use {
        mounted,
        is_written,
        swap,
        held_by,
    } = found;
    let name = disk.name();
    let only_reads = !disk.is_writable();
    let only_mounted = swap.is_empty() && held_by.is_empty();
    if only_reads && only_mounted && !is_written {
        return;
    }
    let (title, help) = match (mounted.first(), swap.first(), held_by.first()) {
        (Some((_, point)), _, _) => (
            format!("`{name}` is on a device that the host has mounted at {point}"),
            "unmount it and take it out of /etc/fstab before the guest has it, or give the guest another device",
        ),
        (None, Some(swap), _) => (
            format!("`{name}` is on a device that the host swaps to, {swap}"),
            "swapoff it and take it out of /etc/fstab before the guest has it, or give the guest another device",
        ),
        (None, None, Some(holder)) => (
            format!("`{name}` is on a device that the host holds, for {holder}"),
            "deactivate what holds it; if that belongs to the guest, keep the host from activating it (LVM's devices file or global_filter, AUTO in mdadm.conf); or give the guest what is on top",
        ),
        (None, None, None) => return,
    };
    let finding = report.finding(at, title);
    finding.label(format!("the host uses {path} itself"));
    for (device, point) in mounted {
        finding.note(format!("{device} is mounted at {point}"));
    }
    for device in swap {
        finding.note(format!("the host swaps to {device}"));
    }
    for holder in held_by {
        finding.note(format!("{holder} is on top of it"));
    }
    if only_reads {
        finding.severity(Severity::Warning).note(
            "a warning and no error: the guest only reads, but what it reads changes under it",
        );
    } else {
        finding
            .note("QEMU does not look whether the host uses the device, and opens it for writing");
    }
    finding.help(help);
}
