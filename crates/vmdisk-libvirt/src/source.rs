//! `<source>`: where the bytes of an image are, or which daemon serves the disk.

use vmdisk_model::{
    BackendSource, Device, DevicePath, DiskField, FieldPath, Image, OtherSource, Protocol, Switch,
    VhostUserSocket,
};
use vmdisk_source::ProblemKind;

use crate::backing_store;
use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::vocabulary::{switch_from_yes_no, switch_to_yes_no};
use crate::writer::Writer;

const RECONNECT: KeptAt = KeptAt::path("source/reconnect");

/// Reads what a disk opens; its format is read with the driver element.
pub(crate) fn read<'t>(
    reader: &mut Reader<'t>,
    disk: &mut Element<'t, '_>,
    device: Device,
    kept: &mut KeptInside,
) -> BackendSource {
    let source = match disk.peek("type").unwrap_or("file") {
        "vhostuser" => read_socket(reader, disk, kept).map(BackendSource::VhostUser),
        _ => read_protocol(reader, disk, 0, kept).map(|protocol| match protocol {
            Protocol::Other(source_type) => BackendSource::Other(OtherSource {
                source_type,
                format: None,
            }),
            Protocol::File { .. } | Protocol::HostDevice { .. } => BackendSource::Image(Image {
                format: None,
                protocol,
                backing: backing_store::read(reader, disk, kept),
                creation: None,
            }),
        }),
    };
    if let Some(source) = source {
        disk.take_text("type");
        return source;
    }
    let may_be_empty = match device {
        Device::Cdrom | Device::Floppy => true,
        Device::Disk | Device::Lun => false,
    };
    let source_type = disk.peek("type").unwrap_or("file");
    let attribute = match source_type {
        "block" => "dev",
        "vhostuser" => "path",
        _ => "file",
    };
    // An empty drive is of no concern, but a daemon's socket must be named whatever the device.
    if !may_be_empty || source_type == "vhostuser" {
        let at = FieldPath::Disk(disk.whose.index, DiskField::Source);
        let span = reader.map.place(at).map_or(disk.tag, |place| place.span);
        let message = format!("the disk has no source: `<source {attribute}=…>` is missing");
        reader.problem(ProblemKind::MissingValue, at, span, message);
    }
    BackendSource::Empty
}

/// Reads the `<source>` of a disk or backing store; `None` if it names nothing.
///
/// The caller takes the `type` of the parent if it gets something.
pub(crate) fn read_protocol(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_, '_>,
    depth: usize,
    kept: &mut KeptInside,
) -> Option<Protocol> {
    let source_type = parent.peek("type").unwrap_or("file").to_owned();
    let mut path = None;
    if let Some(node) = parent.child("source") {
        let mut source = reader.open_child(parent, node, parent.whose);
        let attribute = match source_type.as_str() {
            "file" => Some("file"),
            "block" => Some("dev"),
            _ => None,
        };
        // libvirt takes an empty path for none at all.
        path = attribute
            .and_then(|name| source.take(name, |path| (!path.is_empty()).then(|| path.to_owned())));
        kept.note(KeptAt::deep("source", depth), reader.close(source));
    }
    match source_type.as_str() {
        "file" => path.map(|path| Protocol::File { path }),
        "block" => path.map(|path| Protocol::HostDevice {
            path: DevicePath::new(path),
        }),
        _ => Some(Protocol::Other(source_type)),
    }
}

fn read_socket(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    kept: &mut KeptInside,
) -> Option<VhostUserSocket> {
    let node = disk.child("source")?;
    let mut source = reader.open_child(disk, node, disk.whose);
    source.take("type", |word| (word == "unix").then_some(()));
    let path = source.take("path", |path| (!path.is_empty()).then(|| path.to_owned()));
    let mut socket = path.map(VhostUserSocket::new);
    if let (Some(socket), Some(node)) = (&mut socket, source.child("reconnect")) {
        let mut reconnect = reader.open_child(&source, node, source.whose);
        socket.reconnect = reconnect.take("enabled", switch_from_yes_no);
        socket.reconnect_timeout = reconnect.take("timeout", unsigned32);
        kept.note(RECONNECT, reader.close(reconnect));
    }
    kept.note(KeptAt::deep("source", 0), reader.close(source));
    socket
}

/// The word for `disk/@type` or `backingStore/@type`.
pub(crate) fn type_of_protocol(protocol: &Protocol) -> &str {
    match protocol {
        Protocol::File { .. } => "file",
        Protocol::HostDevice { .. } => "block",
        Protocol::Other(word) => word,
    }
}

/// Writes the `<source>` of an image.
pub(crate) fn write_protocol<'k>(
    writer: &mut Writer<'k>,
    protocol: &Protocol,
    depth: usize,
    kept: &'k KeptInside,
) {
    writer.start("source", kept.at(KeptAt::deep("source", depth)));
    match protocol {
        Protocol::File { path } => writer.attribute("file", path),
        Protocol::HostDevice { path } => writer.attribute("dev", &path.0),
        // All of it has been kept.
        Protocol::Other(_) => {}
    }
    writer.end();
}

/// Writes the `<source>` of a disk that is served by a daemon.
pub(crate) fn write_socket<'k>(
    writer: &mut Writer<'k>,
    socket: &VhostUserSocket,
    kept: &'k KeptInside,
) {
    let VhostUserSocket {
        path,
        reconnect,
        reconnect_timeout,
    } = socket;
    writer.start("source", kept.at(KeptAt::deep("source", 0)));
    writer.attribute("type", "unix");
    writer.attribute("path", path);
    let parts = kept.at(RECONNECT);
    if reconnect.is_some() || reconnect_timeout.is_some() || !parts.is_empty() {
        writer.start("reconnect", parts);
        writer.optional(
            "enabled",
            reconnect.map(|switch: Switch| switch_to_yes_no(switch)),
        );
        writer.optional("timeout", *reconnect_timeout);
        writer.end();
    }
    writer.end();
}

/// Writes what is kept of a `<source>` that names nothing the model covers.
pub(crate) fn write_kept<'k>(writer: &mut Writer<'k>, is_needed: bool, kept: &'k KeptInside) {
    let parts = kept.at(KeptAt::deep("source", 0));
    if is_needed || !parts.is_empty() {
        writer.start("source", parts);
        writer.end();
    }
}
