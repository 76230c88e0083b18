//! `network-server-refused`

use vmdisk_facts::Version;
use vmdisk_model::{
    FieldPath, ImageField, NetworkProtocol, NetworkSource, NetworkTransport, Protocol, Switch,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A network source names servers in a way in which its protocol is not spoken.
    ///
    /// ## What it does
    /// Reports sources on iscsi, nbd, ssh, http and ftp that do not name exactly one server, servers of nbd and
    /// ssh behind a transport that QEMU does not use for them, and TLS asked of a protocol that is not nbd or vxhs.
    ///
    /// ## Why it matters
    /// libvirt takes the definition, and refuses to start the guest: it looks at servers when it writes QEMU's command
    /// line. A guest that was defined months ago fails at its next start.
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
    pub(super) static RULE = {
        name: "network-server-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt_at_start("iSCSI protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetISCSIProps"),
            Evidence::refused_by_libvirt_at_start("nbd protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetNBDProps"),
            Evidence::refused_by_libvirt_at_start("ssh protocol accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetSshProps"),
            Evidence::refused_by_libvirt_at_start("protocol '…' accepts only one host", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetURI"),
            Evidence::refused_by_libvirt_at_start("transport protocol '…' is not yet supported", "src/qemu/qemu_block.c, qemuBlockStorageSourceBuildJSONSocketAddress"),
            Evidence::refused_by_libvirt_at_start("only TCP protocol can be converted to InetSocketAddress", "src/qemu/qemu_block.c, qemuBlockStorageSourceBuildJSONInetSocketAddress"),
            Evidence::refused_by_libvirt_at_start("TLS transport is not supported for disk protocol '…'", "src/qemu/qemu_domain.c, qemuDomainPrepareStorageSourceTLS"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 speaks iSCSI with the first of several servers, and crashes without any.
    let takes_first = context.libvirt_is_before(Version(9, 1, 0)) == Some(true);
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let protocol = network.protocol;
            for (field, what, help) in wrong(network, takes_first) {
                report
                    .finding(
                        FieldPath::Image(index, depth, field),
                        format!("`{}`: {what}", disk.name()),
                    )
                    .label(format!("not with {protocol}"))
                    .note("libvirt takes the guest, and does not start it")
                    .help(help);
            }
        }
    }
}

/// What is wrong with the servers of a source: where, what, and what to write instead.
fn wrong(network: &NetworkSource, takes_first: bool) -> Vec<(ImageField, String, &'static str)> {
    use NetworkProtocol::{
        Ftp, Ftps, Gluster, Http, Https, Iscsi, Nbd, Nfs, Rbd, Sheepdog, Ssh, Tftp, Vxhs,
    };
    let protocol = network.protocol;
    let takes_one = match protocol {
        Iscsi | Nbd | Ssh | Http | Https | Ftp | Ftps => true,
        // NFS is refused when it is defined, and so are tftp and sheepdog; VxHS is not to be had.
        Gluster | Rbd | Nfs | Sheepdog | Tftp | Vxhs => false,
    };
    let has_tls = matches!(protocol, Nbd | Vxhs);
    let mut found = Vec::new();
    let count = network.hosts.len();
    let is_first_taken = takes_first && protocol == Iscsi && count > 1;
    if takes_one && count != 1 && !is_first_taken {
        found.push((
            ImageField::Hosts,
            format!("{protocol} has exactly one server, and this source names {count}"),
            "write one <host name='…'/>",
        ));
    }
    if let (true, [host]) = (takes_one, network.hosts.as_slice()) {
        let wrong = match host.transport {
            Some(NetworkTransport::Rdma) => matches!(protocol, Nbd | Ssh),
            Some(NetworkTransport::Unix) => protocol == Ssh,
            Some(NetworkTransport::Tcp) | None => false,
        };
        if let (true, Some(transport)) = (wrong, host.transport) {
            found.push((
                ImageField::Hosts,
                format!("{protocol} is not spoken over {transport}"),
                "leave transport out",
            ));
        }
    }
    if network.tls == Some(Switch::On) && !has_tls {
        found.push((
            ImageField::Tls,
            format!("{protocol} has no TLS that libvirt can ask for"),
            "leave tls out, and encrypt the way to the server by other means",
        ));
    }
    found
}
