//! `network-source-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::{Unused, all_of, phrase, unused_members};
use vmdisk_model::{
    FieldPath, ImageField, NetworkProtocol, NetworkSource, NetworkTransport, Protocol,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A network source uses a removed protocol, or a name, server or port that libvirt refuses for its protocol.
    ///
    /// ## What it reports
    /// Reports sheepdog (not for libvirt 9.0, which still accepts it) and tftp; names on rbd and gluster that are not
    /// `POOL/IMAGE`; `tlsHostname` for protocols other than nbd; and NFS sources that do not name exactly one server,
    /// or that set its port or a transport other than TCP.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest, and its message names one mistake at a time.
    ///
    /// ## Use instead
    /// Write `name='POOL/IMAGE'` for rbd, and `name='VOLUME/IMAGE'` for gluster. Serve a tftp image over http, and
    /// copy a sheepdog image to other storage with `qemu-img convert`. For NFS, keep one `<host>` with only a name.
    /// Remove `tlsHostname` for other protocols.
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
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='rbd' name='rbd/a' tlsHostname='store.example'>
    ///     <host name='mon1.example'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nfs' name='/srv/a.img'>
    ///     <host name='store.example' transport='rdma'/>
    ///     <identity user='+1000'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,libvirt-11.3
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='sheepdog' name='a'>
    ///     <host name='store.example' port='7000'/>
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
    /// ```xml,not-reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='gluster' name='v/a.img'>
    ///     <host name='a.example' port='3260'/>
    ///     <timeout seconds='5'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "network-source-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("'sheepdog' protocol is no longer supported by any hypervisor driver", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("'tftp' protocol is not supported with this QEMU binary", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("can't split path '…' into pool name and image name", "src/conf/domain_conf.c, virDomainDiskSourceNetworkParse"),
        Evidence::refused_by_libvirt("'tlsHostname' field is supported only with NBD disks", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'nfs' protocol requires the usage of exactly one host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("port cannot be specified in 'nfs' protocol host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'nfs' host must use TCP protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 accepts it; the QEMU that it starts does not.
    let accepts_sheepdog = context.can(Capability::LibvirtRefusesUnusedSources).is_no();
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let unused = unused_members(network);
            let unused = unused.filter(|member| member.unused == Unused::Refused);
            let unused = unused.map(|member| {
                let protocols = all_of(member.protocols.iter().map(|it| it.as_str()));
                let noun = member.noun;
                let what = phrase!("has {noun}, which only {protocols} uses", noun, protocols);
                let at = FieldPath::Image(index, depth, member.field);
                (member.field, what, phrase!("remove {field}", field = at))
            });
            let mistakes = mistakes(network, accepts_sheepdog)
                .map(|(field, what, help)| (field, what.into(), help.into()));
            for (field, what, help) in mistakes.chain(unused) {
                report
                    .finding(
                        FieldPath::Image(index, depth, field),
                        phrase!("{disk} {what}", what),
                    )
                    .label(format!("refused for {}", network.protocol))
                    .help(help);
            }
        }
    }
}

/// The mistakes in a source: the field, the mistake and the remedy.
fn mistakes(
    network: &NetworkSource,
    accepts_sheepdog: bool,
) -> impl Iterator<Item = (ImageField, &'static str, &'static str)> {
    use NetworkProtocol::{Gluster, Nfs, Rbd, Sheepdog, Tftp};
    let protocol = network.protocol;
    let lacks_slash = network
        .name
        .as_deref()
        .is_some_and(|name| name.find('/').unwrap_or_default() == 0);
    let one = match network.hosts.as_slice() {
        [host] => Some(host),
        _ => None,
    };
    let has_other_transport = one.is_some_and(|host| {
        host.transport
            .is_some_and(|transport| transport != NetworkTransport::Tcp)
    });
    [
        (
            protocol == Sheepdog && !accepts_sheepdog,
            ImageField::NetworkProtocol,
            "is on sheepdog, which libvirt and QEMU no longer support",
            "move the image to other storage",
        ),
        (
            protocol == Tftp,
            ImageField::NetworkProtocol,
            "is on tftp, which QEMU 2.8 removed",
            "serve the image over http",
        ),
        (
            protocol == Rbd && lacks_slash,
            ImageField::NetworkName,
            "does not name the pool of its image",
            "name the source `POOL/IMAGE`",
        ),
        (
            protocol == Gluster && lacks_slash,
            ImageField::NetworkName,
            "does not name the volume of its image",
            "name the source `VOLUME/IMAGE`",
        ),
        (
            protocol == Nfs && one.is_none(),
            ImageField::Hosts,
            "does not name exactly one NFS server",
            "name one server",
        ),
        (
            protocol == Nfs && one.is_some_and(|host| host.port.is_some()),
            ImageField::Hosts,
            "sets the port of an NFS server",
            "remove the port",
        ),
        (
            protocol == Nfs && has_other_transport,
            ImageField::Hosts,
            "uses NFS over another transport than TCP",
            "remove the transport",
        ),
    ]
    .into_iter()
    .filter(|(is_wrong, ..)| *is_wrong)
    .map(|(_, field, what, help)| (field, what, help))
}
