//! `<source type='unix'>`: the socket of a `VhostUserBackend`.

use vmdisk_model::{StartupPolicy, VhostUserSocket};
use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::vocabulary::{switch_from_yes_no, switch_to_yes_no};
use crate::writer::Writer;
use crate::xml::Node;

const AT: &str = "source";
const RECONNECT: UnmodeledPath = UnmodeledPath::path("source/reconnect");

/// Reads the socket of a disk that is served by a daemon.
pub(super) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    startup_policy: &mut Option<StartupPolicy>,
    kept: &mut UnmodeledContent,
) -> Option<VhostUserSocket> {
    let node = disk.child(AT)?;
    let mut source = reader.open_child(disk, node, disk.owner);
    source.take("type", |word| (word == "unix").then_some(()));
    let path = source.take("path", |path| (!path.is_empty()).then(|| path.to_owned()));
    let mut socket = path.map(VhostUserSocket::new);
    if socket.is_some() {
        *startup_policy = source.take("startupPolicy", StartupPolicy::from_word);
    }
    if let (Some(socket), Some(node)) = (&mut socket, source.child("reconnect")) {
        let mut reconnect = reader.open_child(&source, node, source.owner);
        socket.reconnect = reconnect.take("enabled", switch_from_yes_no);
        socket.reconnect_timeout = reconnect.take("timeout", unsigned32);
        kept.note(RECONNECT, reader.close(reconnect));
    }
    kept.note(UnmodeledPath::path(AT), reader.close(source));
    refuse_images(reader, disk, node.node);
    socket
}

/// Reports options of images, which a daemon's disk does not support, in all locations where libvirt reads them.
fn refuse_images(reader: &mut Reader<'_>, disk: &Element<'_>, source: Node<'_>) {
    for (name, is_read_in_source) in [
        ("backingStore", false),
        ("encryption", true),
        ("auth", true),
    ] {
        let in_source = source.child(name).filter(|_| is_read_in_source);
        let in_disk = disk.children.iter().find(|child| child.is_named(name));
        let Some(node) = in_source.or(in_disk.map(|child| child.node)) else {
            continue;
        };
        let message = format!("a disk that a vhost-user daemon serves does not support `<{name}>`");
        let span = node.span();
        reader.problem(&INVALID_VALUE, disk.at, span, message);
    }
}

/// Writes the `<source>` of a disk that is served by a daemon.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    socket: &VhostUserSocket,
    startup_policy: Option<StartupPolicy>,
    kept: &'k UnmodeledContent,
) {
    let VhostUserSocket {
        path,
        reconnect,
        reconnect_timeout,
        // libvirt cannot express it: it knows only the daemon's socket.
        config_wce: _,
        served: _,
    } = socket;
    writer.start(AT, kept.at(UnmodeledPath::path(AT)));
    writer.attribute("type", "unix");
    writer.attribute("path", path);
    writer.optional("startupPolicy", startup_policy);
    let parts = kept.at(RECONNECT);
    if reconnect.is_some() || reconnect_timeout.is_some() || !parts.is_empty() {
        writer.start("reconnect", parts);
        writer.optional("enabled", reconnect.map(switch_to_yes_no));
        writer.optional("timeout", *reconnect_timeout);
        writer.end();
    }
    writer.end();
}
