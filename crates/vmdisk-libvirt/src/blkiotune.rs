//! `<blkiotune>`: the guest's share of the host's disks.

use vmdisk_model::{BlkioDevice, Blkiotune};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{unsigned32, unsigned64};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("blkiotune");
const WEIGHT: UnmodeledPath = UnmodeledPath::path("blkiotune/weight");
const DEVICE: &str = "blkiotune/device";
const PATH: &str = "blkiotune/device/path";
const DEVICE_WEIGHT: &str = "blkiotune/device/weight";
const READ_IOPS: &str = "blkiotune/device/read_iops_sec";
const WRITE_IOPS: &str = "blkiotune/device/write_iops_sec";
const READ_BYTES: &str = "blkiotune/device/read_bytes_sec";
const WRITE_BYTES: &str = "blkiotune/device/write_bytes_sec";

/// Reads the shares of a guest.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Option<Blkiotune> {
    let mut element = reader.child(domain, "blkiotune")?;
    let mut tune = Blkiotune {
        weight: read_number(reader, &mut element, "weight", WEIGHT, unsigned32, kept),
        ..Blkiotune::default()
    };
    for node in element.children("device") {
        let nth = tune.devices.len();
        let mut device = reader.open_child(&element, node, element.owner);
        let outer = &mut device;
        let at = |path| UnmodeledPath::nth(path, nth);
        let path = reader.child(outer, "path").and_then(|inner| {
            let path = inner.content();
            kept.note(at(PATH), reader.close(inner));
            Some(path).filter(|path| !path.is_empty())
        });
        let mut small = |name, path| read_number(reader, outer, name, at(path), unsigned32, kept);
        let weight = small("weight", DEVICE_WEIGHT);
        let read_iops_sec = small("read_iops_sec", READ_IOPS);
        let write_iops_sec = small("write_iops_sec", WRITE_IOPS);
        let mut large = |name, path| read_number(reader, outer, name, at(path), unsigned64, kept);
        tune.devices.push(BlkioDevice {
            path,
            weight,
            read_iops_sec,
            write_iops_sec,
            read_bytes_sec: large("read_bytes_sec", READ_BYTES),
            write_bytes_sec: large("write_bytes_sec", WRITE_BYTES),
        });
        kept.note(UnmodeledPath::nth(DEVICE, nth), reader.close(device));
    }
    kept.note(AT, reader.close(element));
    Some(tune)
}

/// Reads a child whose text is a number; an invalid one is kept, and reported when the parent is closed.
fn read_number<N>(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    name: &str,
    at: UnmodeledPath,
    parse: impl FnOnce(&str) -> Option<N>,
    kept: &mut UnmodeledContent,
) -> Option<N> {
    let node = parent.child(name)?;
    let number = parse(node.text().0.trim());
    if number.is_some() {
        let inner = reader.open_child(parent, node, parent.owner);
        kept.note(at, reader.close(inner));
    } else {
        parent.give_back(node);
    }
    number
}

/// Writes the shares of a guest.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    tune: Option<&Blkiotune>,
    kept: &'k UnmodeledContent,
) {
    let Some(Blkiotune { weight, devices }) = tune else {
        return;
    };
    writer.start("blkiotune", kept.at(AT));
    writer.text_element("weight", *weight, kept.at(WEIGHT));
    for (nth, device) in devices.iter().enumerate() {
        let BlkioDevice {
            path,
            weight,
            read_iops_sec,
            write_iops_sec,
            read_bytes_sec,
            write_bytes_sec,
        } = device;
        let at = |path| kept.at(UnmodeledPath::nth(path, nth));
        writer.start("device", at(DEVICE));
        writer.text_element("path", path.as_ref(), at(PATH));
        writer.text_element("weight", *weight, at(DEVICE_WEIGHT));
        writer.text_element("read_iops_sec", *read_iops_sec, at(READ_IOPS));
        writer.text_element("write_iops_sec", *write_iops_sec, at(WRITE_IOPS));
        writer.text_element("read_bytes_sec", *read_bytes_sec, at(READ_BYTES));
        writer.text_element("write_bytes_sec", *write_bytes_sec, at(WRITE_BYTES));
        writer.end();
    }
    writer.end();
}
