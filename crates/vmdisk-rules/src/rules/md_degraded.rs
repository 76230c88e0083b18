//! `md-degraded`

use std::collections::BTreeMap;

use vmdisk_facts::verdict::redundancy::ArrayFault;
use vmdisk_facts::{BlockDevice, HostIndex};
use vmdisk_fields::{DiskName, phrase, quoted};
use vmdisk_model::{Device, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The RAID under a disk is degraded: it has lost its redundancy.
    ///
    /// ## What it reports
    /// Checks all devices under an image, down to the drives: a software RAID (md) with missing members, and a logical
    /// volume that LVM reports as unhealthy. An array is reported once, with all disks on it. A rebuilding array is
    /// reported too, because it has no redundancy until the rebuild ends.
    ///
    /// ## Why it matters
    /// The next failing drive destroys the guests' data. The guest does not notice, and no hypervisor checks.
    ///
    /// ## Use instead
    /// Replace the failed drive: `mdadm --manage /dev/mdN --add /dev/NEW` for md, `lvconvert --repair VG/LV` for LVM.
    /// Make a backup first, because the rebuild reads every sector of the other drives. It slows the disks down while
    /// it runs.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-checked,hidden,facts-conditions
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/mirrored'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/plain'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "md-degraded",
    group: Group::DataSafety,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::measured("a raid1 with one member removed shows degraded=1 and array_state=clean, and continues to work", "recorded with mdadm under Linux 6.1.192 and 6.12.117"),
        Evidence::Source("Linux Documentation/admin-guide/md: degraded counts how many devices the array is short of"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut all_broken: BTreeMap<&str, Broken<'_>> = BTreeMap::new();
    for (index, disk, image) in context.images() {
        if !matches!(disk.frontend.effective_device(), Device::Disk | Device::Lun) {
            continue;
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
            broken.disks.push(index);
        }
    }
    for broken in all_broken.values() {
        report_broken(report, broken);
    }
}

/// A device that has lost redundancy, and the disks on it in their order.
struct Broken<'a> {
    device: &'a BlockDevice,
    fault: ArrayFault,
    disks: Vec<usize>,
}

const fn at(index: usize) -> FieldPath {
    FieldPath::Image(index, 0, ImageField::Path)
}

/// Devices under a path that have lost redundancy.
fn faults_under<'a>(
    facts: &'a HostIndex<'a>,
    path: &str,
) -> Result<Vec<(&'a BlockDevice, ArrayFault)>, Missing> {
    let mut faults = Vec::new();
    for device in host::devices_under(facts, path)? {
        if let Some(fault) = ArrayFault::of(device)? {
            faults.push((device, fault));
        }
    }
    Ok(faults)
}

fn report_broken(report: &mut Report, broken: &Broken<'_>) {
    let Broken {
        device,
        fault,
        disks,
    } = broken;
    let Some((first, others)) = disks.split_first() else {
        return;
    };
    let device = device.name();
    let disk = DiskName(*first);
    let title = match fault {
        ArrayFault::Degraded {
            missing, members, ..
        } => {
            let of = members.map_or_else(String::new, |members| format!(" of its {members}"));
            let s = if *missing == 1 && of.is_empty() {
                ""
            } else {
                "s"
            };
            phrase!(
                "{device} under {disk} is degraded: {missing}{of} member{s} missing",
                device = device.to_string(),
                disk,
                missing = *missing,
                of,
                s,
            )
        }
        ArrayFault::Unhealthy(health) => phrase!(
            "LVM reports {device} under {disk} as {health}",
            device = device.to_string(),
            disk,
            health = quoted(health.clone()),
        ),
    };
    let finding = report.finding(at(*first), title);
    finding.label("one more failure destroys this data");
    for index in others {
        finding.related(at(*index), phrase!("{disk} is on it too"));
    }
    match fault {
        ArrayFault::Degraded {
            is_rebuilding: true,
            ..
        } => finding
            .note("it was rebuilding when the facts were collected, and has no redundancy until that ends")
            .help("wait for the rebuild, check that it succeeds, and collect the facts again"),
        ArrayFault::Degraded { .. } => finding
            .note("the array is not rebuilding onto a spare")
            .help("make a backup, replace the missing drive, and add it with `mdadm --add`"),
        ArrayFault::Unhealthy(_) => finding.help(
            "run `lvs -o +lv_health_status,devices`, replace the missing device, and run `lvconvert --repair`",
        ),
    };
}
