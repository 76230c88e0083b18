//! `data-file-missing`

use vmdisk_facts::{NamedFile, named_file};
use vmdisk_model::{FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, host};

declare_rule! {
    /// The data of a qcow2 image lies in another file, which is not there.
    ///
    /// ## What it does
    /// Reports qcow2 images whose header names an external data file that was looked for and does not exist.
    ///
    /// ## Why it matters
    /// The image has the map and the other file the bytes. QEMU does not start without it. Mostly the image was
    /// copied or moved alone.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/split.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/whole.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/split.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "data-file-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Could not open 'split.raw': No such file or directory",
                source: "block/qcow2.c, open_file of data-file",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let (Some(header), Some(path)) = (host::qcow2_header(context, image), image.host_path())
        else {
            continue;
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(header) = report.require(at, header).flatten() else {
            continue;
        };
        let what = || format!("where the data of {path} is");
        let name = Context::known(header.data_file.as_ref(), what);
        let Some(name) = report.require(at, name).flatten() else {
            continue;
        };
        let NamedFile::Path(data) = named_file(path, name) else {
            continue;
        };
        let is_there = || format!("whether {data} is there");
        let Some(file) = report.require(at, host::file(context, &data, is_there)) else {
            continue;
        };
        if file.is_missing() {
            report
                .finding(at, format!("the data of `{}` is in {data}, which does not exist", disk.name()))
                .label(format!("its header names `{name}`"))
                .help("put the file back beside the image, or collect the facts again if it has been made since");
        }
    }
}
