//! `data-file-missing`

use vmdisk_facts::{NamedFile, named_file};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The external data file of a qcow2 image does not exist.
    ///
    /// ## What it reports
    /// Reports qcow2 images whose header names an external data file that does not exist on the host.
    ///
    /// ## Why it matters
    /// The image holds only the metadata; the data file holds the data. QEMU does not start without it. Usually the
    /// image was copied or moved without its data file.
    ///
    /// ## Use instead
    /// Restore the data file at the path that the header names. To avoid the problem, move both files together, or
    /// merge them while both exist: `qemu-img convert -O qcow2 IMAGE MERGED`. The merged image needs space for all the
    /// data.
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/split.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "data-file-missing",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("Could not open 'split.raw': No such file or directory", "block/qcow2.c, qcow2_do_open, which opens the child data-file"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image) in context.images() {
        let (Some(header), Some(path)) = (host::qcow2_header(context, image), image.host_path())
        else {
            continue;
        };
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let Some(header) = report.require(at, header).flatten() else {
            continue;
        };
        let what = || format!("the data file of {path}");
        let name = Context::known(header.data_file.as_ref(), what);
        let Some(name) = report.require(at, name).flatten() else {
            continue;
        };
        let NamedFile::Path(data) = named_file(path, name) else {
            continue;
        };
        let exists = || format!("whether {data} exists");
        let Some(file) = report.require(at, host::file(context, &data, exists)) else {
            continue;
        };
        if file.is_missing() {
            report
                .finding(
                    at,
                    phrase!(
                        "the data file of {disk} does not exist: {data}",
                        data = quoted(data),
                    ),
                )
                .label(phrase!(
                    "the header of this image names {name}",
                    name = quoted(name.clone())
                ))
                .help("restore the data file, or collect the facts again if it exists by now");
        }
    }
}
