//! `network-server-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::{Phrase, image, phrase};
use vmdisk_model::{
    FieldPath, ImageField, NetworkProtocol, NetworkSource, NetworkTransport, Protocol, Switch,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A network source has the wrong number of servers, or a transport or TLS that its protocol does not support.
    ///
    /// ## What it reports
    /// Reports sources on iscsi, nbd, ssh, http, https, ftp and ftps that do not name exactly one server; the
    /// transport `rdma` for nbd and ssh, and `unix` for ssh; and TLS for protocols other than nbd and vxhs. libvirt
    /// 9.0 uses the first of several iSCSI servers; with that target they are not reported.
    ///
    /// ## Why it matters
    /// libvirt accepts the definition, and refuses to start the guest: it checks the servers only when it builds
    /// QEMU's command line. A guest that was defined months ago fails at its next start.
    ///
    /// ## Use instead
    /// Keep one `<host>`, and remove `transport`. For several paths to an iSCSI target, let the host log in with
    /// `iscsiadm --mode node --targetname IQN --portal SERVER --login` once per path, and use the multipath device.
    /// Use https and ftps instead of http and ftp with `tls='yes'`. For other protocols, remove `tls`, and encrypt the
    /// connection outside QEMU.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='a'>
    ///     <host name='store1.example' port='10809'/>
    ///     <host name='store2.example' port='10809'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1' tls='yes'>
    ///     <host name='store.example' port='3260'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='ssh' name='/srv/a.img'>
    ///     <host name='a.example'/>
    ///     <host name='b.example'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='rbd' name='pool/image'>
    ///     <host name='store1.example' port='6789'/>
    ///     <host name='store2.example' port='6789'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2026-11.example:a/1'>
    ///     <host name='a.example' port='3260'/>
    ///     <host name='b.example' port='3260'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2026-11.example:a/1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2026-11.example:a/1'>
    ///     <host name='a.example' port='3260'/>
    ///     <host name='b.example' port='3260'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='ssh' name='/srv/a.img'>
    ///     <host transport='unix' socket='/run/a'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "network-server-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("iSCSI protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetISCSIProps"),
        Evidence::refused_by_libvirt_at_start("nbd protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetNBDProps"),
        Evidence::refused_by_libvirt_at_start("ssh protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetSshProps"),
        Evidence::refused_by_libvirt_at_start("protocol '…' accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetURI"),
        Evidence::refused_by_libvirt_at_start("transport protocol '…' is not yet supported", "src/qemu/qemu_block.c, qemuBlockStorageSourceBuildJSONSocketAddress"),
        Evidence::refused_by_libvirt_at_start("only TCP protocol can be converted to InetSocketAddress", "src/qemu/qemu_block.c, qemuBlockStorageSourceBuildJSONInetSocketAddress"),
        Evidence::refused_by_libvirt_at_start("TLS transport is not supported for disk protocol '…'", "src/qemu/qemu_domain.c, qemuDomainPrepareStorageSourceTLS"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 connects to the first of several iSCSI servers, and crashes without any.
    let uses_first = context.can(Capability::LibvirtRefusesUnusedSources).is_no();
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let at = |field| FieldPath::Image(index, depth, field);
            for mistake in mistakes(network, uses_first) {
                let (field, what, help) = mistake.texts(network.protocol, at(ImageField::Tls));
                report
                    .finding(at(field), phrase!("{disk} {what}", what))
                    .label(format!("not supported for {}", network.protocol))
                    .note("libvirt accepts the definition, but does not start the guest")
                    .help(help);
            }
        }
    }
}

/// A mistake in the servers of a source.
enum Mistake {
    /// The source names this many servers instead of one.
    ServerCount(usize),
    /// The protocol does not run over this transport.
    Transport(NetworkTransport),
    /// The protocol has no TLS that libvirt can enable.
    Tls,
}

impl Mistake {
    /// The field, the mistake and the remedy.
    fn texts(&self, protocol: NetworkProtocol, tls: FieldPath) -> (ImageField, String, Phrase) {
        match self {
            Mistake::ServerCount(count) => (
                ImageField::Hosts,
                format!("needs exactly one {protocol} server, but names {count}"),
                "name one server".into(),
            ),
            Mistake::Transport(transport) => (
                ImageField::Hosts,
                format!("uses {protocol} over {transport}"),
                "remove the transport; the default is TCP".into(),
            ),
            Mistake::Tls => (
                ImageField::Tls,
                format!("enables TLS for {protocol}"),
                match protocol {
                    NetworkProtocol::Http => phrase!("remove {tls}, and use https", tls),
                    NetworkProtocol::Ftp => phrase!("remove {tls}, and use ftps", tls),
                    NetworkProtocol::Https | NetworkProtocol::Ftps => {
                        phrase!(
                            "remove {tls}; {protocol} always uses TLS",
                            tls,
                            protocol = protocol.to_string()
                        )
                    }
                    _ => {
                        phrase!("remove {tls}, and encrypt the connection outside QEMU", tls)
                    }
                },
            ),
        }
    }
}

/// The mistakes in the servers of a source.
fn mistakes(network: &NetworkSource, uses_first: bool) -> Vec<Mistake> {
    use NetworkProtocol::{
        Ftp, Ftps, Gluster, Http, Https, Iscsi, Nbd, Nfs, Rbd, Sheepdog, Ssh, Tftp, Vxhs,
    };
    let protocol = network.protocol;
    let needs_one = match protocol {
        Iscsi | Nbd | Ssh | Http | Https | Ftp | Ftps => true,
        // libvirt refuses the definition of NFS, tftp and sheepdog sources; VxHS is no longer in QEMU.
        Gluster | Rbd | Nfs | Sheepdog | Tftp | Vxhs => false,
    };
    let has_tls = image(ImageField::Tls).is_of(protocol);
    let mut found = Vec::new();
    let count = network.hosts.len();
    let is_first_used = uses_first && protocol == Iscsi && count > 1;
    if needs_one && count != 1 && !is_first_used {
        found.push(Mistake::ServerCount(count));
    }
    if let (true, [host]) = (needs_one, network.hosts.as_slice()) {
        match host.transport {
            Some(NetworkTransport::Rdma) if matches!(protocol, Nbd | Ssh) => {
                found.push(Mistake::Transport(NetworkTransport::Rdma));
            }
            Some(NetworkTransport::Unix) if protocol == Ssh => {
                found.push(Mistake::Transport(NetworkTransport::Unix));
            }
            _ => {}
        }
    }
    if network.tls == Some(Switch::On) && !has_tls {
        found.push(Mistake::Tls);
    }
    found
}
