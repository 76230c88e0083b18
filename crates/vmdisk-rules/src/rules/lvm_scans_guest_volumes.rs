//! `lvm-scans-guest-volumes`

use vmdisk_fields::phrase;
use vmdisk_model::{Disk, Image, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// LVM of the host scans logical volumes, so it finds and activates the volume groups of guests.
    ///
    /// ## What it reports
    /// Reports a disk on a logical volume of a host with `scan_lvs = 1` in its LVM configuration.
    ///
    /// ## Why it matters
    /// A guest that uses LVM has a volume group inside its disk. With `scan_lvs=1`, the host sees it, and
    /// `vgchange -ay` or autoactivation at boot opens the guest's volumes on the host. While they are active, the
    /// volume below them cannot be resized or removed. A repair or a mount on the host writes to a disk that the guest
    /// has open. Two guests from one template have volume groups with the same name and UUID, and the host's LVM then
    /// refuses commands.
    ///
    /// ## Use instead
    /// Set `scan_lvs = 0` in the section `devices` of `/etc/lvm/lvm.conf`, which is the default since LVM 2.02.182. If
    /// the host itself has a physical volume on a logical volume, list its devices instead: `use_devicesfile = 1`
    /// with `lvmdevices --adddev`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-nearly-full
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "lvm-scans-guest-volumes",
    group: Group::DataSafety,
    severity: Severity::Warning,
    is_about_host: true,
    evidence: &[
        Evidence::Source("lvm.conf, devices/scan_lvs: when 1, LVM detects PVs on LVs, and the host must not access a volume group from a guest image"),
        Evidence::measured("scan_lvs=0 and use_devicesfile=0 in a new installation", "lvmconfig --type full, LVM 2.03.16"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_device = |_: &Disk, image: &Image| matches!(image.protocol, Protocol::HostDevice { .. });
    let what = "the configuration of LVM";
    for (index, .., path, facts) in host::kept_on(context, report, what, is_device) {
        let at = host::image_of(index);
        let device = Context::known(facts.block_device(path), || format!("what {path} is"));
        let Some(Some(device)) = report.require(at, device) else {
            continue;
        };
        if !device.kind.is_lvm() {
            continue;
        }
        let lvm = &facts.facts().lvm_config;
        if lvm.use_devicesfile.is_true() {
            continue;
        }
        let scans = Context::known(lvm.scan_lvs.clone(), || "scan_lvs of LVM".to_owned());
        if report.require(at, scans).flatten() != Some(true) {
            continue;
        }
        report
            .finding(
                at,
                phrase!("LVM of the host looks for volume groups of the guest on {disk}"),
            )
            .label("the host scans this volume")
            .note("the host has scan_lvs=1, and can activate and change what the guest has open")
            .help("set `scan_lvs = 0` in /etc/lvm/lvm.conf, and deactivate volume groups of guests on the host");
    }
}
