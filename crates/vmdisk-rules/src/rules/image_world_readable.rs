//! `image-world-readable`

use vmdisk_facts::FileKind;
use vmdisk_facts::path::{Directory, Mode};
use vmdisk_fields::{command, phrase};
use vmdisk_model::{Device, Disk, Image};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk can be read or written by every user of the host.
    ///
    /// ## What it reports
    /// Reports an image file that the guest can write and whose permission bits let others read it. If others can also
    /// write it, it is an error. CD and floppy drives are not reported. A file below
    /// a directory that others may not search, such as one with mode 0700, is not reported. A directory such as
    /// `/var/lib/libvirt/images` (0711) that others cannot list still lets them open a file by its name.
    ///
    /// ## Why it matters
    /// Everything in the guest is in the image: password hashes, private keys, databases. Any local account and any
    /// compromised service on the host can copy it. `qemu-img create` and `cp` make images with mode 0644 under the
    /// usual umask, and libvirt changes the owner but not the mode.
    ///
    /// ## Use instead
    /// Run `chmod 600 IMAGE`: libvirt gives the file to QEMU's user before it starts the guest. Create images with
    /// `umask 077`, or as volumes of a pool, which get mode 0600.
    ///
    /// ## Reported
    /// ```xml,reported,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/shown.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// An error, because others can write it too:
    /// ```xml,reported,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/open.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/shown.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/write-only.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-world-readable",
    group: Group::Security,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("`qemu-img create` makes mode 0644 under umask 022", "qemu-img 7.2, qcow2 and raw"),
        Evidence::Source("libvirt src/security/security_dac.c, virSecurityDACSetOwnership: changes owner and group"),
        Evidence::Cve("CVE-2025-13193"),
    ],
    check: Model(check),
}

/// The bit that lets others read, and the bit that lets them write.
const OTHERS_READ: u32 = 0o004;
const OTHERS_WRITE: u32 = 0o002;
/// The bit that lets others open what is in a directory.
const OTHERS_SEARCH: u32 = 0o001;

fn check(context: &Context<'_>, report: &mut Report) {
    let is_disk = |disk: &Disk, image: &Image| {
        let device = disk.frontend.effective_device();
        matches!(device, Device::Disk | Device::Lun) && host::is_file(disk, image)
    };
    let what = "permissions of the images";
    for (index, .., path, facts) in host::kept_on(context, report, what, is_disk) {
        let at = host::image_of(index);
        // Another rule reports an image that does not exist or was not collected.
        let file = facts.file(path).filter(|file| !file.is_missing());
        let Some(file) = file else { continue };
        let mode = Context::known(file.mode.clone(), || format!("permissions of {path}"));
        let Some(Some(Mode(mode))) = report.require(at, mode) else {
            continue;
        };
        let is_regular = file
            .kind
            .value()
            .is_none_or(|kind| *kind == FileKind::Regular);
        let is_closed = |directory: &Directory| {
            let mode = directory.mode.value();
            mode.is_some_and(|Mode(mode)| mode & OTHERS_SEARCH == 0)
        };
        let is_open = mode & (OTHERS_READ | OTHERS_WRITE) != 0;
        if !is_regular || !is_open || facts.directories_above(path).any(is_closed) {
            continue;
        }
        report_open(report, index, path, mode);
    }
}

fn report_open(report: &mut Report, index: usize, path: &str, mode: u32) {
    let can_write = mode & OTHERS_WRITE != 0;
    let what = if can_write { "write" } else { "read" };
    let finding = report.finding(
        host::image_of(index),
        phrase!(
            "every user of the host can {what} the image of {disk}",
            what,
        ),
    );
    if can_write {
        finding.severity(Severity::Error);
    }
    finding
        .label(format!("permissions {}", Mode(mode)))
        .help(phrase!(
            "run {command}",
            command = command("chmod 600", &[path]),
        ));
}
