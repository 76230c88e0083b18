//! `<source protocol='…'>`: network storage.

use vmdisk_model::{
    Bytes, Cookie, NetworkHost, NetworkIdentity, NetworkProtocol, NetworkSource, NetworkTransport,
};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use super::{read_attribute, text, write_attribute};
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{unsigned32, unsigned64};
use crate::vocabulary::{switch_from_yes_no, switch_to_yes_no};
use crate::writer::Writer;

const HOST: &str = "source/host";
const COOKIES: &str = "source/cookies";
const COOKIE: &str = "source/cookies/cookie";
const IDENTITY: &str = "source/identity";
const INITIATOR: &str = "source/initiator";

/// The child elements with one attribute.
struct Leaves {
    snapshot: (UnmodeledPath, &'static str),
    config_file: (UnmodeledPath, &'static str),
    ssl_verify: (UnmodeledPath, &'static str),
    readahead: (UnmodeledPath, &'static str),
    timeout: (UnmodeledPath, &'static str),
    reconnect_delay: (UnmodeledPath, &'static str),
    known_hosts: (UnmodeledPath, &'static str),
    initiator: (UnmodeledPath, &'static str),
}

const fn leaves(depth: usize) -> Leaves {
    Leaves {
        snapshot: (UnmodeledPath::deep("source/snapshot", depth), "name"),
        config_file: (UnmodeledPath::deep("source/config", depth), "file"),
        ssl_verify: (UnmodeledPath::deep("source/ssl", depth), "verify"),
        readahead: (UnmodeledPath::deep("source/readahead", depth), "size"),
        timeout: (UnmodeledPath::deep("source/timeout", depth), "seconds"),
        reconnect_delay: (UnmodeledPath::deep("source/reconnect", depth), "delay"),
        known_hosts: (UnmodeledPath::deep("source/knownHosts", depth), "path"),
        initiator: (UnmodeledPath::deep("source/initiator/iqn", depth), "name"),
    }
}

/// Reads network storage; `None` if its protocol is not known.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<NetworkSource> {
    let protocol = source.take("protocol", NetworkProtocol::from_wire)?;
    let mut network = NetworkSource::new(protocol, source.take_text("name"), Vec::new());
    if network.name.is_none() && protocol != NetworkProtocol::Nbd {
        let message =
            format!("`name` is missing: set the name of the image on the {protocol} server");
        reader.problem(&MISSING_VALUE, source.at, source.tag, message);
    }
    network.query = source.take_text("query");
    network.tls = source.take("tls", switch_from_yes_no);
    network.tls_hostname = source.take_text("tlsHostname");
    for node in source.children("host") {
        let mut host = reader.open_child(source, node, source.owner);
        let at = UnmodeledPath {
            nth: network.hosts.len(),
            ..UnmodeledPath::deep(HOST, depth)
        };
        let read = NetworkHost {
            name: host.take_text("name"),
            port: host.take("port", unsigned32),
            transport: host.take("transport", NetworkTransport::from_wire),
            socket: host.take_text("socket"),
        };
        check_host(reader, &host, &read);
        network.hosts.push(read);
        kept.note(at, reader.close(host));
    }
    let Leaves {
        snapshot,
        config_file,
        ssl_verify,
        readahead,
        timeout,
        reconnect_delay,
        known_hosts,
        initiator,
    } = leaves(depth);
    network.snapshot = read_attribute(reader, source, snapshot, kept, text);
    network.config_file = read_attribute(reader, source, config_file, kept, text);
    if let Some(node) = source.child("initiator") {
        let mut element = reader.open_child(source, node, source.owner);
        network.initiator = read_attribute(reader, &mut element, initiator, kept, text);
        kept.note(UnmodeledPath::deep(INITIATOR, depth), reader.close(element));
    }
    network.ssl_verify = read_attribute(reader, source, ssl_verify, kept, switch_from_yes_no);
    network.cookies = read_cookies(reader, source, depth, kept);
    network.readahead = read_attribute(reader, source, readahead, kept, unsigned64).map(Bytes);
    network.timeout = read_attribute(reader, source, timeout, kept, unsigned64);
    network.identity = read_identity(reader, source, protocol, depth, kept);
    network.known_hosts = read_attribute(reader, source, known_hosts, kept, text);
    network.reconnect_delay = read_attribute(reader, source, reconnect_delay, kept, unsigned32);
    Some(network)
}

/// Reports a server whose address is invalid.
fn check_host(reader: &mut Reader<'_>, element: &Element<'_>, host: &NetworkHost) {
    let (rule, message) = match host.transport.unwrap_or(NetworkTransport::Tcp) {
        NetworkTransport::Unix if host.socket.is_none() => {
            let message = "`socket` is missing: set the path of the server's UNIX socket";
            (&MISSING_VALUE, message)
        }
        NetworkTransport::Tcp | NetworkTransport::Rdma if host.socket.is_some() => {
            let message = "a server with a `socket` has the transport `unix`";
            (&INVALID_VALUE, message)
        }
        NetworkTransport::Tcp | NetworkTransport::Rdma if host.name.is_none() => {
            let message = "`name` of `<host>` is missing";
            (&MISSING_VALUE, message)
        }
        NetworkTransport::Unix | NetworkTransport::Tcp | NetworkTransport::Rdma => return,
    };
    reader.problem(rule, element.at, element.tag, message.to_owned());
}

fn read_cookies(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Vec<Cookie> {
    let Some(node) = source.child("cookies") else {
        return Vec::new();
    };
    let mut element = reader.open_child(source, node, source.owner);
    let mut cookies = Vec::new();
    for node in element.children("cookie") {
        if node.attribute("name").is_none() {
            element.give_back(node);
            continue;
        }
        let mut cookie = reader.open_child(&element, node, element.owner);
        let at = UnmodeledPath {
            nth: cookies.len(),
            ..UnmodeledPath::deep(COOKIE, depth)
        };
        let read = Cookie {
            name: cookie.take_text("name").unwrap_or_default(),
            value: cookie.content(),
        };
        check_cookie(reader, &cookie, &read);
        cookies.push(read);
        kept.note(at, reader.close(cookie));
    }
    kept.note(UnmodeledPath::deep(COOKIES, depth), reader.close(element));
    cookies
}

/// Reports a cookie with characters that libvirt refuses (`virStorageSourceNetCookieValidate`).
fn check_cookie(reader: &mut Reader<'_>, element: &Element<'_>, cookie: &Cookie) {
    let is_in = |forbidden: &str, text: &str| {
        text.chars()
            .any(|character| character.is_control() || forbidden.contains(character))
    };
    let name = &cookie.name;
    let (rule, message) = if is_in("()<>@,;:\\\"/[]?={} ", name) {
        let message = format!("`{name}` has characters that the name of a cookie cannot have");
        (&INVALID_VALUE, message)
    } else if cookie.value.is_empty() {
        let message = format!("the cookie `{name}` has no value");
        (&MISSING_VALUE, message)
    } else if is_in(" \",;\\", unquoted(&cookie.value)) {
        let message = format!("the cookie `{name}` has characters that no value can have");
        (&INVALID_VALUE, message)
    } else {
        return;
    };
    reader.problem(rule, element.at, element.tag, message);
}

/// The value without the quotes that libvirt accepts around it.
fn unquoted(value: &str) -> &str {
    value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value)
}

fn read_identity(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    protocol: NetworkProtocol,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<NetworkIdentity> {
    let node = source.child("identity")?;
    let mut element = reader.open_child(source, node, source.owner);
    let identity = NetworkIdentity {
        user: element.take_text("user"),
        group: element.take_text("group"),
        username: element.take_text("username"),
        keyfile: element.take_text("keyfile"),
        agent_socket: element.take_text("agentsock"),
    };
    if protocol == NetworkProtocol::Ssh {
        if identity.username.is_none() {
            let message = "`username` of `<identity>` is missing".to_owned();
            reader.problem(&MISSING_VALUE, element.at, element.tag, message);
        }
        if identity.keyfile.is_none() && identity.agent_socket.is_none() {
            let message = "`keyfile` or `agentsock` of `<identity>` is missing".to_owned();
            reader.problem(&MISSING_VALUE, element.at, element.tag, message);
        }
    }
    kept.note(UnmodeledPath::deep(IDENTITY, depth), reader.close(element));
    Some(identity)
}

/// Writes the attributes of a network source.
pub(super) fn write_attributes(writer: &mut Writer<'_>, network: &NetworkSource) {
    writer.attribute("protocol", network.protocol);
    writer.optional("name", network.name.as_ref());
    writer.optional("query", network.query.as_ref());
    writer.optional("tls", network.tls.map(switch_to_yes_no));
    writer.optional("tlsHostname", network.tls_hostname.as_ref());
}

/// Writes the child elements of a network source.
pub(super) fn write_children<'k>(
    writer: &mut Writer<'k>,
    network: &NetworkSource,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let NetworkSource {
        protocol: _, // an attribute, as the name and those named `_` below
        name: _,
        query: _,
        hosts,
        snapshot,
        config_file,
        initiator,
        tls: _,
        tls_hostname: _,
        ssl_verify,
        cookies,
        readahead,
        timeout,
        reconnect_delay,
        identity,
        known_hosts,
    } = network;
    let at = leaves(depth);
    for (nth, host) in hosts.iter().enumerate() {
        let NetworkHost {
            name,
            port,
            transport,
            socket,
        } = host;
        let place = UnmodeledPath {
            nth,
            ..UnmodeledPath::deep(HOST, depth)
        };
        writer.start("host", kept.at(place));
        writer.optional("name", name.as_ref());
        writer.optional("port", *port);
        writer.optional("transport", *transport);
        writer.optional("socket", socket.as_ref());
        writer.end();
    }
    write_attribute(writer, at.snapshot, snapshot.as_ref(), kept);
    write_attribute(writer, at.config_file, config_file.as_ref(), kept);
    if initiator.is_some() || kept.has_within(INITIATOR, depth) {
        writer.start("initiator", kept.at(UnmodeledPath::deep(INITIATOR, depth)));
        write_attribute(writer, at.initiator, initiator.as_ref(), kept);
        writer.end();
    }
    write_attribute(
        writer,
        at.ssl_verify,
        ssl_verify.map(switch_to_yes_no),
        kept,
    );
    write_cookies(writer, cookies, depth, kept);
    let readahead = readahead.map(|size| size.0);
    write_attribute(writer, at.readahead, readahead, kept);
    write_attribute(writer, at.timeout, *timeout, kept);
    if let Some(identity) = identity {
        let NetworkIdentity {
            user,
            group,
            username,
            keyfile,
            agent_socket,
        } = identity;
        writer.start("identity", kept.at(UnmodeledPath::deep(IDENTITY, depth)));
        writer.optional("user", user.as_ref());
        writer.optional("group", group.as_ref());
        writer.optional("username", username.as_ref());
        writer.optional("keyfile", keyfile.as_ref());
        writer.optional("agentsock", agent_socket.as_ref());
        writer.end();
    }
    write_attribute(writer, at.known_hosts, known_hosts.as_ref(), kept);
    write_attribute(writer, at.reconnect_delay, *reconnect_delay, kept);
}

fn write_cookies<'k>(
    writer: &mut Writer<'k>,
    cookies: &[Cookie],
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    if cookies.is_empty() && !kept.has_within(COOKIES, depth) {
        return;
    }
    writer.start("cookies", kept.at(UnmodeledPath::deep(COOKIES, depth)));
    for (nth, cookie) in cookies.iter().enumerate() {
        let Cookie { name, value } = cookie;
        let place = UnmodeledPath {
            nth,
            ..UnmodeledPath::deep(COOKIE, depth)
        };
        writer.start("cookie", kept.at(place));
        writer.attribute("name", name);
        writer.end_with_text(Some(value.clone()));
    }
    writer.end();
}
