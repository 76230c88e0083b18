//! `network-source-refused`

use vmdisk_model::{
    FieldPath, ImageField, NetworkProtocol, NetworkSource, NetworkTransport, Protocol,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A network source has what its protocol does not have, or lacks what it needs.
    ///
    /// ## What it does
    /// Reports protocols that libvirt no longer starts, members that belong to other protocols (cookies, query,
    /// readahead, ssl, reconnect, tls), names that are no `pool/image`, and the wrong number of servers.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest, and names one member at a time.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='sheepdog' name='a'>
    ///     <host name='store.example' port='7000'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='a' query='x=y'>
    ///     <host name='store.example' port='10809'/>
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
            Evidence::refused_by_libvirt("ssl verification is supported only with HTTPS/FTPS protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("http cookies are supported only with HTTP(S) protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("readahead is supported only with HTTP(S)/FTP(s) protocols", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("timeout is supported only with HTTP(S)/FTP(s) protocols", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("reconnect delay is supported only with NBD protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("query is supported only with HTTP(S) protocols", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'tlsHostname' field is supported only with NBD disks", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'nfs' protocol requires the usage of exactly one host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("port cannot be specified in 'nfs' protocol host", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'nfs' host must use TCP protocol", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let (name, protocol) = (disk.name(), network.protocol);
            for (field, what, help) in wrong(network) {
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
fn wrong(network: &NetworkSource) -> Vec<(ImageField, &'static str, &'static str)> {
    use NetworkProtocol::{Ftp, Ftps, Gluster, Http, Https, Nbd, Nfs, Rbd, Sheepdog, Tftp};
    let protocol = network.protocol;
    let is_http = matches!(protocol, Http | Https);
    let is_curl = is_http || matches!(protocol, Ftp | Ftps);
    let is_secure = matches!(protocol, Https | Ftps);
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
            protocol == Sheepdog,
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
            network.ssl_verify.is_some() && !is_secure,
            ImageField::SslVerify,
            "there is no certificate to verify",
            "leave <ssl/> out, or use https",
        ),
        (
            !network.cookies.is_empty() && !is_http,
            ImageField::Cookies,
            "only web servers take cookies",
            "leave <cookies> out",
        ),
        (
            network.readahead.is_some() && !is_curl,
            ImageField::Readahead,
            "only http and ftp read ahead",
            "leave <readahead/> out",
        ),
        (
            network.timeout.is_some() && !is_curl,
            ImageField::Timeout,
            "only http and ftp have this time limit",
            "leave <timeout/> out",
        ),
        (
            network.reconnect_delay.is_some() && protocol != Nbd,
            ImageField::ReconnectDelay,
            "only nbd waits for its server",
            "leave <reconnect/> out",
        ),
        (
            network.query.is_some() && !is_http,
            ImageField::Query,
            "only URLs of web servers have a query",
            "leave query out",
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
