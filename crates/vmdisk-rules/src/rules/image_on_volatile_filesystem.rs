//! `image-on-volatile-filesystem`

use vmdisk_facts::Filesystem;
use vmdisk_fields::phrase;
use vmdisk_model::{Disk, HostStorage, Image};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image is on tmpfs or ramfs: a restart of the host deletes the disk.
    ///
    /// ## What it reports
    /// Reports a disk that the guest writes and that is not `<transient/>`, whose image is on tmpfs, ramfs or
    /// hugetlbfs.
    ///
    /// ## Why it matters
    /// These file systems are memory of the host. Their files are gone after a restart, a crash, or an unmount, and no
    /// flush of the guest changes that. A full tmpfs also takes the memory of other guests.
    ///
    /// ## Use instead
    /// Move the image to a file system on a drive. For a disk whose data may be lost, mark it with `<transient/>`, or
    /// allow the rule with the reason.
    ///
    /// ## Reported
    /// ```xml,reported,facts-tmpfs
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/run/build/build1.img'/>
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
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/run/build/build1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-on-volatile-filesystem",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Measured {
            figures: "a file is gone after `umount` and `mount` of its tmpfs",
            how: "tmpfs of Linux 6.18",
        },
        Evidence::Source("Linux Documentation/filesystems/tmpfs.rst: if you unmount a tmpfs instance, everything stored therein is lost"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_file =
        |_: &Disk, image: &Image| matches!(image.protocol.on_host(), Some(HostStorage::File(_)));
    let what = "the file systems of the images";
    for (index, .., path, facts) in host::kept_on(context, report, what, is_file) {
        let at = host::image_of(index);
        let what = || format!("the file system of {path}");
        let filesystem = Context::known(facts.filesystem_of(path), what);
        let filesystem = report.require(at, filesystem).flatten();
        if let Some(Filesystem { kind, .. }) = filesystem.filter(|it| it.kind.is_volatile()) {
            report
                .finding(
                    at,
                    phrase!(
                        "the image of {disk} is on {kind}, which is memory",
                        kind = kind.name().into_owned(),
                    ),
                )
                .label("a restart of the host deletes it")
                .help("move it to a file system on a drive, or mark the disk as transient");
        }
    }
}
