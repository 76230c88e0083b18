//! `network-source-refused`

use vmdisk_facts::Version;
use vmdisk_model::{
    FieldPath, ImageField, NetworkProtocol, NetworkSource, NetworkTransport, Protocol,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A network source has what its protocol does not have, or lacks what it needs.
    ///
    /// ## What it does
    /// Reports protocols that libvirt no longer starts (sheepdog, tftp), names on rbd and gluster that are no
    /// `pool/image`, a name in the certificate of anything but nbd, and an NFS source without exactly one server,
    /// or with its port.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest, and names one member at a time.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='tftp' name='a'>
    ///     <host name='store.example' port='69'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nfs' name='/srv/a.img'>
    ///     <host name='store.example' port='2049'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='https' name='a.iso' query='x=y'>
    ///     <host name='store.example' port='443'/>
    ///   </source>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "network-source-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("'sheepdog' protocol is no longer supported by any hypervisor driver", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("'tftp' protocol is not supported with this QEMU binary", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("can't split path '…' into pool name and image name", "src/conf/domain_conf.c, virDomainDiskSourceNetworkParse"),
            Evidence::refused_by_libvirt("'tlsHostname' field is supported only with NBD disks", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'nfs' protocol requires the usage of exactly one host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("port cannot be specified in 'nfs' protocol host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'nfs' host must use TCP protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 takes it, and the QEMU it starts does not.
    let takes_sheepdog = context.libvirt_is_before(Version(9, 1, 0)) == Some(true);
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let (name, protocol) = (disk.name(), network.protocol);
            for (field, what, help) in wrong(network, takes_sheepdog) {
                report
                    .finding(
                        FieldPath::Image(index, depth, field),
                        format!("`{name}`: {what}"),
                    )
                    .label(format!("not with {protocol}"))
                    .note("libvirt refuses the guest for it")
                    .help(help);
            }
        }
    }
}

/// What is wrong with a source: where, what, and what to write instead.
fn wrong(
    network: &NetworkSource,
    takes_sheepdog: bool,
) -> Vec<(ImageField, &'static str, &'static str)> {
    use NetworkProtocol::{Gluster, Nbd, Nfs, Rbd, Sheepdog, Tftp};
    let protocol = network.protocol;
    let lacks_slash = network
        .name
        .as_deref()
        .is_some_and(|name| name.find('/').unwrap_or_default() == 0);
    let one = match network.hosts.as_slice() {
        [host] => Some(host),
        _ => None,
    };
    [
        (
            protocol == Sheepdog && !takes_sheepdog,
            ImageField::NetworkProtocol,
            "no QEMU that libvirt runs speaks sheepdog",
            "move the disk to other storage",
        ),
        (
            protocol == Tftp,
            ImageField::NetworkProtocol,
            "QEMU dropped tftp in 2.8",
            "serve the image over http",
        ),
        (
            matches!(protocol, Gluster | Rbd) && lacks_slash,
            ImageField::NetworkName,
            "the name has to say where the image is and what it is called",
            "write name='pool/image'",
        ),
        (
            network.tls_hostname.is_some() && protocol != Nbd,
            ImageField::TlsHostname,
            "only nbd can name the server in the certificate",
            "leave tlsHostname out",
        ),
        (
            protocol == Nfs && one.is_none(),
            ImageField::Hosts,
            "nfs has exactly one server",
            "write one <host name='…'/>",
        ),
        (
            protocol == Nfs && one.is_some_and(|host| host.port.is_some()),
            ImageField::Hosts,
            "the port of an nfs server is found, not said",
            "leave port out",
        ),
        (
            protocol == Nfs
                && one.is_some_and(|host| {
                    host.transport
                        .is_some_and(|transport| transport != NetworkTransport::Tcp)
                }),
            ImageField::Hosts,
            "nfs runs over TCP",
            "leave transport out",
        ),
    ]
    .into_iter()
    .filter(|(is_wrong, ..)| *is_wrong)
    .map(|(_, field, what, help)| (field, what, help))
    .collect()
}
