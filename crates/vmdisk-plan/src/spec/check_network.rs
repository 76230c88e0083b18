//! Checks network backends: name, servers and the options of each protocol.
//!
//! Which member a protocol has, and how many servers: libvirt's `qemuDomainValidateStorageSource`, its parser
//! `virDomainDiskSourceNetworkParse`, and what QEMU's own drivers refuse.

use core::net::Ipv6Addr;

use vmdisk_fields::{Unused, image};
use vmdisk_model::{FieldValue, Fields, Format, ImageField, NetworkProtocol};

use super::SpecPath;
use super::access::DeviceAccess;
use super::check_direct::check_secret;
use super::check_path::{check_path, check_socket_length};
use super::faults::Faults;
use super::network::{
    AuthenticationSpec, NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, PROTOCOLS,
};
use super::node::shortened;
use super::section::{all_of, list_of};
use super::value::Word;

use NetworkProtocol::{Gluster, Iscsi, Nbd, Nfs, Rbd, Ssh};

/// Checks a disk behind a server.
pub(super) fn check_network(network: &NetworkSpec, at: &SpecPath, faults: &mut Faults) {
    let NetworkSpec {
        tls, tls_hostname, ..
    } = network;
    let protocol = network.protocol;
    if !PROTOCOLS.contains(&protocol) {
        let message = format!("current QEMU does not support {protocol}");
        faults.refuse(at.key("protocol"), message).help = Some(format!(
            "supported protocols: {}",
            list_of(NetworkProtocol::ALL_WORDS)
        ));
        return;
    }
    let name = network.name.as_deref();
    check_name(protocol, name, at, faults);
    let hosts = network.hosts.as_deref().unwrap_or_default();
    check_hosts(protocol, hosts, at, faults);
    check_members(network, at, faults);
    if let Some(size) = network.readahead {
        let message = "readahead must be a multiple of 512 bytes";
        let is_fit = size.0 > 0 && size.0.is_multiple_of(512);
        faults.refuse_unless(is_fit, at.key("readahead"), message);
    }
    faults.refuse_unless(
        network
            .timeout
            .is_none_or(|seconds| (1..=10_000).contains(&seconds)),
        at.key("timeout"),
        "timeout must be 1 to 10000 seconds",
    );
    if tls_hostname.is_some() && *tls != Some(true) {
        let message = "without `tls` the server's certificate is not checked";
        faults.refuse(at.key("tls-hostname"), message).help = Some("add `tls: true`".to_owned());
    }
    if *tls == Some(true) && tls_hostname.is_none() && hosts.iter().any(|host| host.name.is_none())
    {
        let message = "for a UNIX socket the host name of the certificate must be set";
        faults.refuse(at.key("tls"), message).help = Some("add `tls-hostname`".to_owned());
    }
    if let Some(identity) = &network.identity {
        check_identity(protocol, identity, &at.key("identity"), faults);
    }
    if let Some(auth) = &network.auth {
        check_login(auth, &at.key("auth"), faults);
    }
    if let (None, Some(named)) = (network.format, format_in_name(name)) {
        let message = format!(
            "the name ends as names of `{named}` images do, but without a format it is read as raw"
        );
        faults.refuse(at.key("name"), message).help =
            Some(format!("set `format` to `{named}`, or to `raw`"));
    }
    let format = network.format.unwrap_or(Format::Raw);
    if !is_network_format(format) {
        let message = format!("network disks do not support format `{format}`");
        faults.refuse(at.key("format"), message).help =
            Some("an ISO or another plain image is `raw`".to_owned());
    }
    if network.access == Some(DeviceAccess::Lun) {
        let message = "only a unit of an iscsi target supports SCSI commands";
        faults.refuse_unless(protocol == Iscsi, at.key("as"), message);
        let message = "a SCSI device cannot have a format";
        faults.refuse_unless(format == Format::Raw, at.key("format"), message);
    }
}

/// The format that the end of a name promises: `qcow2` for `images/debian-12.qcow2`.
///
/// A guest that reads such an image as raw sees the header of the image instead of its disk.
pub(super) fn format_in_name(name: Option<&str>) -> Option<Format> {
    let (_, extension) = name?.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "qcow2" => Some(Format::Qcow2),
        "qcow" => Some(Format::Qcow),
        "qed" => Some(Format::Qed),
        "vmdk" => Some(Format::Vmdk),
        "vdi" => Some(Format::Vdi),
        "vhd" | "vpc" => Some(Format::Vpc),
        // libvirt's word for VHDX is `vhd`.
        "vhdx" => Some(Format::Vhd),
        _ => None,
    }
}

/// True for formats that QEMU reads and writes wherever they are.
const fn is_network_format(format: Format) -> bool {
    // QEMU can only read bochs, cloop and dmg; luks is encryption, and the others are not separate formats.
    matches!(
        format,
        Format::Raw
            | Format::Qcow2
            | Format::Qcow
            | Format::Qed
            | Format::Vmdk
            | Format::Vdi
            | Format::Vhd
            | Format::Vpc
            | Format::Ploop
    )
}

/// The form of a disk's name on a server.
const fn shape(protocol: NetworkProtocol) -> &'static str {
    match protocol {
        Rbd => "`pool/image`",
        Iscsi => "`target/unit`",
        Gluster => "`volume/path`",
        Nfs => "`/directory/file`",
        Nbd => "by its export",
        _ => "by its path",
    }
}

fn check_name(protocol: NetworkProtocol, name: Option<&str>, at: &SpecPath, faults: &mut Faults) {
    let shape = shape(protocol);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        if protocol != Nbd {
            let message = format!("`name` is missing: a disk on {protocol} is named {shape}");
            faults.refuse(at.clone(), message);
        }
        return;
    };
    let at = at.key("name");
    let parts: Vec<&str> = name.split('/').collect();
    let is_fit = match protocol {
        // `NBD_MAX_STRING_SIZE`.
        Nbd => name.len() <= 4096,
        Rbd => (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty()),
        Gluster => parts.len() >= 2 && !parts[0].is_empty() && !name.ends_with('/'),
        Iscsi => {
            let is_unit = |unit: &&str| unit.bytes().all(|byte| byte.is_ascii_digit());
            !parts[0].is_empty()
                && parts.len() <= 2
                && parts[1..]
                    .iter()
                    .all(|unit| is_unit(unit) && unit.parse::<u32>().is_ok())
        }
        Nfs => name.starts_with('/') && !name.ends_with('/'),
        _ => true,
    };
    if !is_fit {
        let message = format!(
            "a disk on {protocol} is named {shape}, not `{}`",
            shortened(name)
        );
        faults.refuse(at, message);
    } else if protocol == Rbd && name.contains('@') {
        let message = "the part after an @ is a snapshot";
        faults.refuse(at, message).help = Some("use `snapshot` in addition to `name`".to_owned());
    }
}

fn check_hosts(
    protocol: NetworkProtocol,
    hosts: &[NetworkHostSpec],
    at: &SpecPath,
    faults: &mut Faults,
) {
    match (protocol, hosts) {
        (Rbd, _) | (Gluster, [_, ..]) | (_, [_]) => {}
        (_, []) => {
            let message = format!("`hosts` is missing: a disk on {protocol} needs a server");
            faults.refuse(at.clone(), message).help =
                Some("write `hosts: [NAME]` or `hosts: [NAME:PORT]`".to_owned());
        }
        (_, [_, _, ..]) => {
            let message = format!(
                "a disk on {protocol} needs one server, but there are {}",
                hosts.len()
            );
            faults.refuse(at.key("hosts"), message);
        }
    }
    for (nth, host) in hosts.iter().enumerate() {
        check_host(protocol, host, &at.key("hosts").index(nth), faults);
    }
}

fn check_host(
    protocol: NetworkProtocol,
    host: &NetworkHostSpec,
    at: &SpecPath,
    faults: &mut Faults,
) {
    let NetworkHostSpec { name, port, socket } = host;
    match (name, socket) {
        (None, None) => {
            let message = "a server has a `name`, or a `socket`";
            faults.refuse(at.clone(), message);
        }
        (Some(_), Some(_)) => {
            let message = "a server has a name or a socket, not both";
            faults.refuse(at.key("socket"), message);
        }
        (Some(name), None) => check_host_name(name, at, faults),
        (None, Some(socket)) => {
            check_path(socket, at.key("socket"), faults);
            check_socket_length(socket, at.key("socket"), faults);
            let message = format!("{protocol} runs over TCP, not over a UNIX socket");
            let takes_sockets = matches!(protocol, Nbd | Gluster);
            faults.refuse_unless(takes_sockets, at.key("socket"), message);
            let message = "a UNIX socket has no port";
            faults.refuse_unless(port.is_none(), at.key("port"), message);
            return;
        }
    }
    let Some(port) = port else { return };
    if protocol == Nfs {
        let message = "the port of an nfs server cannot be set";
        faults.refuse(at.key("port"), message);
    } else {
        let message = format!("a port is a number from 1 to 65535, not {port}");
        faults.refuse_unless((1..=65535).contains(port), at.key("port"), message);
    }
}

fn check_host_name(name: &str, at: &SpecPath, faults: &mut Faults) {
    let is_fit = if name.contains(':') {
        // An address may say through which interface it is reached.
        let address = name.split_once('%').map_or(name, |(address, _)| address);
        address.parse::<Ipv6Addr>().is_ok()
    } else {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c))
    };
    if is_fit {
        return;
    }
    let help = match name.split_once(':') {
        Some(_) if name.starts_with('[') => "write the address without brackets",
        Some(_) => "write the port as `port`",
        None => "write a name such as store.example, or an address",
    };
    let message = format!("`{}` is not a valid server name", shortened(name));
    faults.refuse(at.key("name"), message).help = Some(help.to_owned());
}

/// Checks the members that are paths, and refuses those of another protocol.
fn check_members(network: &NetworkSpec, at: &SpecPath, faults: &mut Faults) {
    let protocol = network.protocol;
    let single = NetworkSpec::FIELDS.iter().copied();
    let set = single.filter(|field| match field {
        // A switch that is off says what is the case anyway.
        ImageField::Tls => network.tls == Some(true),
        _ => network.has(*field),
    });
    let identity = network.identity.as_ref().map(|_| ImageField::Identity);
    let login = network.auth.as_ref().map(|_| ImageField::Authentication);
    for field in set.chain(identity).chain(login) {
        let row = image(field);
        let Some(key) = row.spec else { continue };
        if let (true, Some(FieldValue::Text(path))) = (row.is_path, network.get(field)) {
            check_path(&path, at.key(key), faults);
        }
        let (owners, _) = row.protocols.unwrap_or((&PROTOCOLS, Unused::Refused));
        if !owners.contains(&protocol) {
            let owners = owners.iter().filter(|owner| PROTOCOLS.contains(owner));
            let owners: Vec<&str> = owners.map(|owner| owner.as_str()).collect();
            let message = format!("{protocol} has no `{key}`");
            faults.refuse(at.key(key), message).help =
                Some(format!("it belongs to {}", all_of(&owners)));
        }
    }
}

fn check_identity(
    protocol: NetworkProtocol,
    identity: &NetworkIdentitySpec,
    at: &SpecPath,
    faults: &mut Faults,
) {
    for field in NetworkIdentitySpec::FIELDS {
        let (row, Some(value)) = (image(*field), identity.get(*field)) else {
            continue;
        };
        let (Some(key), Some((owners, _))) = (row.spec, row.protocols) else {
            continue;
        };
        // Other protocols have no identity.
        if !owners.contains(&protocol) && [Nfs, Ssh].contains(&protocol) {
            let owner = owners[0];
            let message = format!("{protocol} has no `{key}`, which belongs to {owner}");
            faults.refuse(at.key(key), message);
        }
        if row.is_path {
            check_path(&value.to_string(), at.key(key), faults);
        }
    }
    let NetworkIdentitySpec {
        user,
        group,
        username,
        keyfile,
        agent_socket,
    } = identity;
    if protocol == Nfs && user.is_none() && group.is_none() {
        faults.refuse(at.clone(), "the owner is missing: set `user` or `group`");
    }
    if protocol == Ssh {
        let message = "`username` is missing";
        faults.refuse_unless(username.is_some(), at.clone(), message);
        let message = "libvirt requires a key: set `keyfile` or `agent-socket`";
        let has_key = keyfile.is_some() || agent_socket.is_some();
        faults.refuse_unless(has_key, at.clone(), message);
    }
}

fn check_login(auth: &AuthenticationSpec, at: &SpecPath, faults: &mut Faults) {
    let AuthenticationSpec { username, secret } = auth;
    faults.refuse_unless(
        !username.is_empty(),
        at.key("username"),
        "expected a name, found none",
    );
    check_secret(secret, &at.key("secret"), faults);
}
