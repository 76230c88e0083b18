//! `loop-device-buffered`

use vmdisk_facts::{BlockKind, Fact};
use vmdisk_fields::{command, phrase};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A loop device under a disk caches its file in the memory of the host, although the disk uses `O_DIRECT`.
    ///
    /// ## What it reports
    /// Reports a loop device without direct I/O on its file, as `losetup` creates it by default, under a disk with
    /// `cache='none'`, `'directsync'` or `io='native'`.
    ///
    /// ## Why it matters
    /// `O_DIRECT` bypasses the page cache of the loop device, but the loop driver reads and writes its file through the
    /// page cache. All data is cached in the host's memory once, which `cache='none'` is meant to avoid. Flushes still
    /// reach the drive.
    ///
    /// ## Use instead
    /// Give the file itself to the guest: `<disk type='file'>`. If it must be a device, run
    /// `losetup --direct-io=on DEVICE`; the sectors of the device must then be at least as large as those of the drive under the file (`--sector-size
    /// 4096`).
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "loop-device-buffered",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("64 MiB read with O_DIRECT from a loop device leave 64 MiB of its file in the page cache; 0 with --direct-io=on", "losetup, dd iflag=direct and fincore, ext4, Linux 6.18"),
        Evidence::Source("losetup(8), --direct-io: off is the default"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "the devices under the images";
    for (index, device) in host::devices_of_guest(context, report, what) {
        let Fact::Known(file) = &device.loop_file else {
            continue;
        };
        let is_direct = context.domain.disks[index].backend.is_direct();
        if !is_direct || device.kind != BlockKind::Loop || !file.dio.is_false() {
            continue;
        }
        let name = device.name();
        let finding = report.finding(
            host::image_of(index),
            phrase!(
                "{device} under {disk} caches its file, although the disk uses O_DIRECT",
                device = name.to_string(),
            ),
        );
        finding.label("the data is in the page cache of the host");
        if let Fact::Known(file) = &file.backing_file {
            finding.note(format!("its file is {file}"));
        }
        finding.help(phrase!(
            "use the file as the image, or run {command}",
            command = command("losetup --direct-io=on", &[&name]),
        ));
    }
}
