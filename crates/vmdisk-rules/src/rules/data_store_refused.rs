//! `data-store-refused`

use vmdisk_facts::Version;
use vmdisk_model::{FieldPath, Format, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A data file is given to an image that cannot have one.
    ///
    /// ## What it does
    /// Reports `<dataStore>` under another format than qcow2, with another format than raw, with a slice, and with
    /// a backing store or data file of its own.
    ///
    /// ## Why it matters
    /// Only qcow2 keeps its metadata apart from its data, and the data file is raw. libvirt refuses the guest from
    /// 10.10 on; older ones drop the element.
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
    pub(super) static RULE = {
        name: "data-store-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("<dataStore> feature available only with qcow2 images", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("only 'raw' images supported as <dataStore>", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("slices are not supported for <dataStore>", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Older ones drop the element.
    if context.libvirt_is_before(Version(10, 10, 0)) == Some(true) {
        return;
    }
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(data) = &image.data_file else {
                continue;
            };
            let (what, help) = if image.format != Some(Format::Qcow2) {
                (
                    "only a qcow2 image has a data file",
                    "leave <dataStore> out, or write type='qcow2'",
                )
            } else if data.format != Some(Format::Raw) {
                ("the data file is raw", "write <format type='raw'/>")
            } else if data.slice.is_some() {
                (
                    "a data file is a whole file or device",
                    "leave <slices> out of <dataStore>",
                )
            } else {
                continue;
            };
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::DataFile),
                    format!("`{}`: {what}", disk.name()),
                )
                .label("not this one")
                .note("libvirt refuses the guest for it")
                .help(help);
        }
    }
}
