//! `<blockio>`: the block sizes that the guest sees.

use vmdisk_model::Frontend;

use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::writer::Writer;

const AT: KeptAt = KeptAt::path("blockio");

/// Reads the block sizes.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    frontend: &mut Frontend,
    kept: &mut KeptInside,
) {
    let Some(node) = disk.child("blockio") else {
        return;
    };
    let mut element = reader.open_child(disk, node, disk.whose);
    frontend.logical_block_size = element.take("logical_block_size", unsigned32);
    frontend.physical_block_size = element.take("physical_block_size", unsigned32);
    frontend.discard_granularity = element.take("discard_granularity", unsigned32);
    kept.note(AT, reader.close(element));
}

/// Writes the block sizes that are set.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    logical: Option<u32>,
    physical: Option<u32>,
    granularity: Option<u32>,
    kept: &'k KeptInside,
) {
    let parts = kept.at(AT);
    if logical.is_none() && physical.is_none() && granularity.is_none() && parts.is_empty() {
        return;
    }
    writer.start("blockio", parts);
    writer.optional("logical_block_size", logical);
    writer.optional("physical_block_size", physical);
    writer.optional("discard_granularity", granularity);
    writer.end();
}
