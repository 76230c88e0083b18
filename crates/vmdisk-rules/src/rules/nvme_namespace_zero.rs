//! `nvme-namespace-zero`

use vmdisk_model::{FieldPath, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The namespace of an NVMe controller is 0.
    ///
    /// ## What it does
    /// Reports `<source … namespace='0'>`.
    ///
    /// ## Why it matters
    /// Namespaces count from 1. libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='nvme' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source type='pci' managed='yes' namespace='0'>
    ///     <address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='nvme' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source type='pci' managed='yes' namespace='1'>
    ///     <address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "nvme-namespace-zero",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("NVMe namespace can't be zero", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if !matches!(&image.protocol, Protocol::Nvme(source) if source.namespace == 0) {
            continue;
        }
        report
            .finding(
                FieldPath::Image(index, 0, ImageField::Namespace),
                format!("`{}` names namespace 0, and they count from 1", disk.name()),
            )
            .label("there is no namespace 0")
            .note("libvirt refuses the guest for it")
            .help("write namespace='1'");
    }
}
