//! `multipath-single-path`

use vmdisk_facts::BlockKind;
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A multipath device under a disk has only one working path left.
    ///
    /// ## What it reports
    /// Reports a multipath device under a disk with several paths, of which one or none works. Without a working path, it is an error.
    ///
    /// ## Why it matters
    /// The next failure of a cable, switch or controller stops the disk. The guest does not notice that the redundancy
    /// is gone.
    ///
    /// ## Use instead
    /// Run `multipath -ll` to find the failed paths, repair them, and check `multipathd`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/mapper/mpatha'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/mapper/mpathb'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/mapper/mpatha'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "multipath-single-path",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("Linux drivers/md/dm-mpath.c, multipath_status: `A` for an active path and `F` for a failed one"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "the devices under the images";
    for (index, device) in host::devices_of_guest(context, report, what) {
        if device.kind != BlockKind::Multipath || device.slaves.len() < 2 {
            continue;
        }
        let at = host::image_of(index);
        let what = || format!("the working paths of {}", device.name());
        let up = Context::known(device.paths_up.clone(), what);
        let Some(up) = report.require(at, up).flatten().filter(|up| *up < 2) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "{device} under {disk} has {up} working path{s} of {all}",
                    device = device.name().to_string(),
                    up,
                    s = if up == 1 { "" } else { "s" },
                    all = device.slaves.len(),
                ),
            )
            .label(match up {
                0 => "every request fails or waits",
                _ => "one more failure stops the disk",
            })
            .severity(match up {
                0 => Severity::Error,
                _ => Severity::Warning,
            })
            .help("run `multipath -ll`, repair the failed paths, and collect the facts again");
    }
}
