//! `data-file-unexpected`

use vmdisk_model::{FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, host};

declare_rule! {
    /// A file for the data is written of an image that has its data in itself.
    ///
    /// ## What it does
    /// Reports `<dataStore>` and `data-file` on qcow2 images whose header names no external data file.
    ///
    /// ## Why it matters
    /// Where the data is was decided when the image was made: QEMU does not start.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/whole.qcow2'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/img/split.raw'/>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/split.qcow2'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/img/split.raw'/>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/whole.qcow2'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/img/split.raw'/>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "data-file-unexpected",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "'data-file' can only be set for images with an external data file",
                source: "block/qcow2.c, qcow2_do_open",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let (Some(_), Some(header)) = (&image.data_file, host::qcow2_header(context, image))
            else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::DataFile);
            let Some(header) = report.require(at, header).flatten() else {
                continue;
            };
            let what = || format!("where the data of `{}` is", disk.name());
            let named = Context::known(header.data_file.as_ref(), what);
            if let Some(None) = report.require(at, named) {
                let of = if depth == 0 { "" } else { "an image below " };
                report
                    .finding(at, format!("{of}`{}` has its data in the image itself", disk.name()))
                    .label("its header names no file for the data")
                    .help("take it away; an image gets such a file when it is made: qemu-img create -o data_file=FILE");
            }
        }
    }
}
