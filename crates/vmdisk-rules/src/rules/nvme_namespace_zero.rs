//! `nvme-namespace-zero`

use vmdisk_fields::phrase;
use vmdisk_model::{FieldPath, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The namespace of an NVMe source is 0.
    ///
    /// ## What it reports
    /// Reports `namespace='0'` in the source of a disk with `type='nvme'`.
    ///
    /// ## Why it matters
    /// NVMe namespaces are numbered from 1. libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Use the number of the namespace on the host: `nvme list-ns /dev/nvme0` lists them. The first is 1.
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
    name: "nvme-namespace-zero",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("NVMe namespace can't be zero", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, image) in context.images() {
        if !matches!(&image.protocol, Protocol::Nvme(source) if source.namespace == 0) {
            continue;
        }
        report
            .finding(
                FieldPath::Image(index, 0, ImageField::Namespace),
                phrase!("{disk} uses namespace 0 of an NVMe controller"),
            )
            .label("namespaces are numbered from 1")
            .help("use the number of the namespace on the host; the first is 1");
    }
}
