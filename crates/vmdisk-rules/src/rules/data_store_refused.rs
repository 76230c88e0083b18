//! `data-store-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{FieldPath, Format, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An external data file is configured for an image that cannot have one.
    ///
    /// ## What it reports
    /// Reports a data file (`<dataStore>`) on an image that is not qcow2, a data file that is not raw, and a data file
    /// with a slice.
    ///
    /// ## Why it matters
    /// Only qcow2 supports an external data file, and that file is always raw. libvirt refuses the guest since 10.10;
    /// earlier versions ignore the element.
    ///
    /// ## Use instead
    /// Remove the data file, or use a qcow2 image that was created with one:
    /// `qemu-img create -f qcow2 -o data_file=FILE IMAGE SIZE`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/a.data'/>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.qcow2'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/a.data'/>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.qcow2'>
    ///     <dataStore type='file'>
    ///       <format type='raw'/>
    ///       <source file='/srv/a.raw'>
    ///         <slices><slice type='storage' offset='0' size='1048576'/></slices>
    ///       </source>
    ///     </dataStore>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "data-store-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("<dataStore> feature available only with qcow2 images", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("only 'raw' images supported as <dataStore>", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("slices are not supported for <dataStore>", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Earlier versions ignore the element.
    if context.can(Capability::LibvirtDataStore).is_no() {
        return;
    }
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(data) = &image.data_file else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::DataFile);
            let (what, help): (_, Phrase) = if image.format != Some(Format::Qcow2) {
                let format = FieldPath::Image(index, depth, ImageField::Format);
                (
                    "has an external data file, but its format is not qcow2",
                    phrase!(
                        "remove {data}, or use {qcow2} if the image is qcow2",
                        data = at,
                        qcow2 = setting(format, Format::Qcow2),
                    ),
                )
            } else if data.format.is_some_and(|format| format != Format::Raw) {
                (
                    "has an external data file that is not raw",
                    "use format raw for the data file".into(),
                )
            } else if data.slice.is_some() {
                (
                    "has an external data file with a slice",
                    "remove the slice of the data file".into(),
                )
            } else {
                continue;
            };
            report
                .finding(at, phrase!("{disk} {what}", what))
                .label("not supported here")
                .help(help);
        }
    }
}
