//! `data-file-unexpected`

use vmdisk_fields::phrase;
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// An external data file is configured for an image that does not use one.
    ///
    /// ## What it reports
    /// Reports a data file (`<dataStore>`, or `data-file` on a command line) on qcow2 images whose header names none.
    ///
    /// ## Why it matters
    /// A qcow2 image gets its external data file when it is created. QEMU refuses one for any other image and does not
    /// start.
    ///
    /// ## Use instead
    /// Remove the data file from the configuration. To move the data into a file of its own, create a new image:
    /// `qemu-img convert -O qcow2 -o data_file=FILE IMAGE NEW`. Such an image is two files that must be kept together.
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
    /// Not checked without host facts:
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
    name: "data-file-unexpected",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("'data-file' can only be set for images with an external data file", "block/qcow2.c, qcow2_do_open"),
    ],
    check: Model(check),
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
            let what = || format!("the data file in the header of {}", disk.name());
            let named = Context::known(header.data_file.as_ref(), what);
            if let Some(None) = report.require(at, named) {
                let of = if depth == 0 {
                    ""
                } else {
                    "a backing image of "
                };
                report
                    .finding(
                        at,
                        phrase!(
                            "an external data file is configured for {of}{disk}, which does not use one",
                            of,
                        ),
                    )
                    .label("the image header names no data file")
                    .help(phrase!(
                        "remove {data}, or create a new image that uses one: `qemu-img create -f qcow2 -o data_file=FILE`",
                        data = at,
                    ));
            }
        }
    }
}
