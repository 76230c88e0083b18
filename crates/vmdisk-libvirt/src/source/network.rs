//! `<source protocol='…'>`: network storage.

use vmdisk_fields::image;
use vmdisk_model::{
    Cookie, Fields, ImageField, NetworkHost, NetworkProtocol, NetworkSource, NetworkTransport,
};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use crate::element::Element;
use crate::plain;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::vocabulary::source_of;
use crate::writer::Writer;

const AT: &str = "source";
const HOST: &str = "source/host";
const COOKIES: &str = "source/cookies";
const COOKIE: &str = "source/cookies/cookie";
const IDENTITY: &str = "source/identity";

/// True for a field that has an element with one attribute.
fn is_leaf(field: ImageField) -> bool {
    let place = image(field).libvirt;
    place.is_attribute() && !matches!(place.element(), AT | IDENTITY)
}

/// The place of the elements of such a field below a source, outermost first: the path and the name of each.
fn elements(field: ImageField) -> impl Iterator<Item = (&'static str, &'static str)> {
    let path = image(field).libvirt.element();
    let ends = path.match_indices('/').skip(1).map(|(end, _)| end);
    ends.chain([path.len()]).map(|end| {
        let path = &path[..end];
        (path, path.rsplit('/').next().unwrap_or(path))
    })
}

/// Reads network storage; `None` if its protocol is not known.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<NetworkSource> {
    let protocol = source.take("protocol", NetworkProtocol::from_word)?;
    let mut network = NetworkSource::new(protocol, None, Vec::new());
    plain::read_attributes(source, &mut network);
    if network.name.is_none() && protocol != NetworkProtocol::Nbd {
        let message =
            format!("`name` is missing: set the name of the image on the {protocol} server");
        reader.problem(&MISSING_VALUE, source.at, source.tag, message);
    }
    for node in source.children("host") {
        let mut host = reader.open_child(source, node, source.owner);
        let at = UnmodeledPath {
            nth: network.hosts.len(),
            ..UnmodeledPath::deep(HOST, depth)
        };
        let read = NetworkHost {
            name: host.take_text("name"),
            port: host.take("port", unsigned32),
            transport: host.take("transport", NetworkTransport::from_word),
            socket: host.take_text("socket"),
        };
        check_host(reader, &host, &read);
        network.hosts.push(read);
        kept.note(at, reader.close(host));
    }
    let leaves = NetworkSource::FIELDS
        .iter()
        .filter(|field| is_leaf(**field));
    for field in leaves {
        read_leaf(reader, source, elements(*field), &mut network, depth, kept);
    }
    network.cookies = read_cookies(reader, source, depth, kept);
    read_identity(reader, source, &mut network, depth, kept);
    Some(network)
}

/// Reads an element with one attribute.
fn read_leaf(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    mut elements: impl Iterator<Item = (&'static str, &'static str)>,
    network: &mut NetworkSource,
    depth: usize,
    kept: &mut UnmodeledContent,
) {
    let Some((path, name)) = elements.next() else {
        return;
    };
    let Some(mut element) = reader.child(parent, name) else {
        return;
    };
    plain::read_attributes(&mut element, network);
    read_leaf(reader, &mut element, elements, network, depth, kept);
    kept.note(UnmodeledPath::deep(path, depth), reader.close(element));
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
    let Some(mut element) = reader.child(source, "cookies") else {
        return Vec::new();
    };
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
    network: &mut NetworkSource,
    depth: usize,
    kept: &mut UnmodeledContent,
) {
    let Some(mut element) = reader.child(source, "identity") else {
        return;
    };
    plain::read_attributes(&mut element, network);
    if network.protocol == NetworkProtocol::Ssh {
        if network.username.is_none() {
            let message = "`username` of `<identity>` is missing".to_owned();
            reader.problem(&MISSING_VALUE, element.at, element.tag, message);
        }
        if network.keyfile.is_none() && network.agent_socket.is_none() {
            let message = "`keyfile` or `agentsock` of `<identity>` is missing".to_owned();
            reader.problem(&MISSING_VALUE, element.at, element.tag, message);
        }
    }
    kept.note(UnmodeledPath::deep(IDENTITY, depth), reader.close(element));
}

/// Writes the attributes of a network source.
pub(super) fn write_attributes(writer: &mut Writer<'_>, network: &NetworkSource) {
    writer.attribute("protocol", network.protocol);
    plain::write_attributes(writer, source_of("network"), network, |_| false);
}

/// Writes the child elements of a network source.
pub(super) fn write_children<'k>(
    writer: &mut Writer<'k>,
    network: &NetworkSource,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    for field in NetworkSource::FIELDS {
        match field {
            ImageField::Hosts => write_hosts(writer, &network.hosts, depth, kept),
            ImageField::Cookies => write_cookies(writer, &network.cookies, depth, kept),
            // With the other parts of the identity.
            ImageField::User => write_element(writer, *field, network, depth, kept),
            _ if is_leaf(*field) => write_element(writer, *field, network, depth, kept),
            // An attribute.
            _ => {}
        }
    }
}

/// Writes the element around a field, if an attribute of it is set or parts of it were kept.
fn write_element<'k>(
    writer: &mut Writer<'k>,
    field: ImageField,
    network: &NetworkSource,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let mut spec = source_of("network");
    let mut opened = 0;
    for (path, name) in elements(field) {
        let Some((_, child)) = spec.child(name) else {
            break;
        };
        spec = child.pick.element("network", None);
        let is_set = network.has(field) || plain::has_attribute(spec, network);
        if !is_set && !kept.has_within(path, depth) {
            break;
        }
        writer.start(name, kept.at(UnmodeledPath::deep(path, depth)));
        plain::write_attributes(writer, spec, network, |_| false);
        opened += 1;
    }
    for _ in 0..opened {
        writer.end();
    }
}

fn write_hosts<'k>(
    writer: &mut Writer<'k>,
    hosts: &[NetworkHost],
    depth: usize,
    kept: &'k UnmodeledContent,
) {
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
