//! `<iotune>`: throttling, one element per limit.

use vmdisk_model::{Iotune, IotuneLimits};

use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned64;
use crate::writer::Writer;

const AT: KeptAt = KeptAt::path("iotune");

/// Every limit with its element, in libvirt's order.
fn limits(iotune: &mut Iotune) -> [(&'static str, &mut Option<u64>); 19] {
    let Iotune {
        bytes,
        iops,
        size_iops,
        group: _, // a name, not a number
    } = iotune;
    let IotuneLimits {
        total,
        read,
        write,
        total_max,
        read_max,
        write_max,
        total_max_length,
        read_max_length,
        write_max_length,
    } = bytes;
    let IotuneLimits {
        total: total_iops,
        read: read_iops,
        write: write_iops,
        total_max: total_iops_max,
        read_max: read_iops_max,
        write_max: write_iops_max,
        total_max_length: total_iops_max_length,
        read_max_length: read_iops_max_length,
        write_max_length: write_iops_max_length,
    } = iops;
    [
        ("total_bytes_sec", total),
        ("read_bytes_sec", read),
        ("write_bytes_sec", write),
        ("total_iops_sec", total_iops),
        ("read_iops_sec", read_iops),
        ("write_iops_sec", write_iops),
        ("total_bytes_sec_max", total_max),
        ("read_bytes_sec_max", read_max),
        ("write_bytes_sec_max", write_max),
        ("total_iops_sec_max", total_iops_max),
        ("read_iops_sec_max", read_iops_max),
        ("write_iops_sec_max", write_iops_max),
        ("size_iops_sec", size_iops),
        ("total_bytes_sec_max_length", total_max_length),
        ("read_bytes_sec_max_length", read_max_length),
        ("write_bytes_sec_max_length", write_max_length),
        ("total_iops_sec_max_length", total_iops_max_length),
        ("read_iops_sec_max_length", read_iops_max_length),
        ("write_iops_sec_max_length", write_iops_max_length),
    ]
}

/// Where libvirt has the name of the group among the limits.
const GROUP_BEFORE: &str = "total_bytes_sec_max_length";

/// Reads the limits of a disk.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    kept: &mut KeptInside,
) -> Option<Iotune> {
    let node = disk.child("iotune")?;
    let mut element = reader.open_child(disk, node, disk.whose);
    let iotune = read_limits(reader, &mut element, 0, kept);
    kept.note(AT, reader.close(element));
    Some(iotune)
}

/// Reads the limits that stand in an element; `nth` tells it from others of its kind.
pub(crate) fn read_limits(
    reader: &mut Reader<'_>,
    element: &mut Element<'_, '_>,
    nth: usize,
    kept: &mut KeptInside,
) -> Iotune {
    let mut iotune = Iotune::default();
    for (name, limit) in limits(&mut iotune) {
        let Some(node) = element.child(name) else {
            continue;
        };
        match unsigned64(crate::tree::text(node).0.trim()) {
            Some(number) => {
                let inner = reader.open_child(element, node, element.whose);
                kept.note(KeptAt::nth(name, nth), reader.close(inner));
                *limit = Some(number);
            }
            // Reported when the element is closed, and kept.
            None => element.give_back(node),
        }
    }
    if let Some(node) = element.child("group_name") {
        let inner = reader.open_child(element, node, element.whose);
        iotune.group = Some(inner.content()).filter(|name| !name.is_empty());
        kept.note(KeptAt::nth("group_name", nth), reader.close(inner));
    }
    iotune
}

/// Writes the limits of a disk.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, iotune: Option<&Iotune>, kept: &'k KeptInside) {
    let Some(iotune) = iotune else {
        return;
    };
    writer.start("iotune", kept.at(AT));
    write_limits(writer, iotune, 0, kept);
    writer.end();
}

/// Writes the limits that are set.
pub(crate) fn write_limits<'k>(
    writer: &mut Writer<'k>,
    iotune: &Iotune,
    nth: usize,
    kept: &'k KeptInside,
) {
    let mut iotune = iotune.clone();
    let group = iotune.group.take();
    for (name, limit) in limits(&mut iotune) {
        if name == GROUP_BEFORE {
            let parts = kept.at(KeptAt::nth("group_name", nth));
            writer.text_element("group_name", group.as_ref(), parts);
        }
        writer.text_element(name, *limit, kept.at(KeptAt::nth(name, nth)));
    }
}
