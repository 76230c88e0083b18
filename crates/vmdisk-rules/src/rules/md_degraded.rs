//! `md-degraded`

use std::collections::BTreeMap;

use vmdisk_facts::{BlockDevice, Fact, HostIndex};
use vmdisk_model::{Device, Disk, FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// The storage under a disk has lost its redundancy.
    ///
    /// ## What it does
    /// Looks at everything under an image, down to the drives: a software RAID (md) with missing members, and a
    /// logical volume that LVM calls unhealthy. An array is reported once, with all disks on it. One that is being
    /// rebuilt is reported too: it has no redundancy until that is done.
    ///
    /// ## Why it matters
    /// The next drive that fails takes the guests' data with it. Nothing in the guest shows it, and no hypervisor
    /// looks.
    ///
    /// ## Reported
    /// ```xml,reported,facts-md-degraded
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/data.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts, nobody knows what is under the image:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "md-degraded",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a raid1 with one member removed shows degraded=1 and array_state=clean, and works on",
                how: "recorded with mdadm under Linux 6.1.192 and 6.12.117",
            },
            Evidence::Source("Linux Documentation/admin-guide/md: degraded counts how many devices the array is short of"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut all_broken: BTreeMap<&str, Broken<'_>> = BTreeMap::new();
    for (index, disk, image) in context.images() {
        match disk.frontend.effective_device() {
            Device::Disk | Device::Lun => {}
            Device::Cdrom | Device::Floppy => continue,
        }
        let Some(path) = image.host_path() else {
            continue;
        };
        let faults = context
            .host(|| format!("the devices under {path}"))
            .and_then(|host| faults_under(host, path));
        for (device, fault) in report.require(at(index), faults).into_iter().flatten() {
            let broken = all_broken.entry(&device.id).or_insert_with(|| Broken {
                device,
                fault,
                disks: Vec::new(),
            });
            broken.disks.push((index, disk));
        }
    }
    for broken in all_broken.values() {
        report_broken(report, broken);
    }
}

/// A device that has lost redundancy, and the disks on it in their order.
struct Broken<'a> {
    device: &'a BlockDevice,
    fault: Fault,
    disks: Vec<(usize, &'a Disk)>,
}

const fn at(index: usize) -> FieldPath {
    FieldPath::Image(index, 0, ImageField::Path)
}

/// What is wrong with a device.
enum Fault {
    /// Members of an array are missing.
    Degraded {
        missing: u32,
        members: Option<u32>,
        is_rebuilding: bool,
    },
    /// LVM's word for it.
    Unhealthy(String),
}

/// Devices under a path that have lost redundancy.
fn faults_under<'a>(
    host: &'a HostIndex<'a>,
    path: &str,
) -> Result<Vec<(&'a BlockDevice, Fault)>, Missing> {
    let what = || format!("the devices under {path}");
    let tops = match Context::known(host.block_device(path), what) {
        Ok(Some(device)) => vec![device],
        // A path that is no device, or that nobody looked at, is a file on a file system.
        Ok(None) | Err(_) => {
            let filesystem = Context::known(host.filesystem_of(path), what)?;
            let Some(filesystem) = filesystem else {
                return Ok(Vec::new());
            };
            Context::known(filesystem.devices.as_ref(), what)?;
            host.devices_of(filesystem)
        }
    };
    let mut faults: BTreeMap<&str, (&BlockDevice, Fault)> = BTreeMap::new();
    for top in tops {
        for device in host.walk_down(top) {
            if let Some(fault) = fault_of(device)? {
                faults.entry(&device.id).or_insert((device, fault));
            }
        }
    }
    Ok(faults.into_values().collect())
}

fn fault_of(device: &BlockDevice) -> Result<Option<Fault>, Missing> {
    if let Fact::Known(md) = &device.md {
        let what = || format!("whether {} misses members", device.name());
        // Levels without redundancy have no such number.
        let missing = Context::known(md.degraded.clone(), what)?.unwrap_or(0);
        if missing > 0 {
            let sync = md.sync.as_str().known();
            return Ok(Some(Fault::Degraded {
                missing,
                members: md.raid_disks.clone().known(),
                is_rebuilding: matches!(sync, Some("recover" | "resync" | "reshape")),
            }));
        }
    }
    if let Fact::Known(lvm) = &device.lvm {
        let is_raid = lvm.segtype.as_str().known();
        let is_raid =
            is_raid.is_some_and(|segtype| segtype.starts_with("raid") || segtype == "mirror");
        let what = || format!("the health of {}", device.name());
        let health = match Context::known(lvm.health.as_str(), what) {
            Ok(health) => health,
            // Only a volume with redundancy has some to lose.
            Err(_) if !is_raid => None,
            Err(missing) => return Err(missing),
        };
        if let Some(health) = health.filter(|health| !health.is_empty()) {
            return Ok(Some(Fault::Unhealthy(health.to_owned())));
        }
    }
    Ok(None)
}

fn report_broken(report: &mut Report, broken: &Broken<'_>) {
    let Broken {
        device,
        fault,
        disks,
    } = broken;
    let Some(((index, disk), others)) = disks.split_first() else {
        return;
    };
    let device = device.name();
    let name = disk.name();
    let title = match fault {
        Fault::Degraded {
            missing, members, ..
        } => {
            let of = members.map_or_else(String::new, |members| format!(" of its {members}"));
            let s = if *missing == 1 && of.is_empty() {
                ""
            } else {
                "s"
            };
            format!("{device} under `{name}` runs without {missing}{of} member{s}")
        }
        Fault::Unhealthy(health) => format!("{device} under `{name}` is `{health}`, says LVM"),
    };
    let finding = report.finding(at(*index), title);
    finding.label("one more failure and this is lost");
    for (index, disk) in others {
        finding.related(at(*index), format!("`{}` is on it too", disk.name()));
    }
    match fault {
        Fault::Degraded {
            is_rebuilding: true,
            ..
        } => finding
            .note("it was being rebuilt when the facts were collected, and has no redundancy until that is done")
            .help("wait for the rebuild, see that it succeeds, and collect the facts again"),
        Fault::Degraded { .. } => finding
            .note("the array has no spare that it is rebuilding onto")
            .help("replace the missing drive and add it with mdadm --add; have backups before the rebuild reads every sector"),
        Fault::Unhealthy(_) => finding
            .help("see lvs -o +lv_health_status,devices, replace what is missing and run lvconvert --repair"),
    };
}
