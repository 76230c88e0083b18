//! `<memoryBacking>`, and the access of NUMA cells in `cpu/numa`.

use vmdisk_model::{
    Bytes, CpuMode, DomainField, FieldPath, HugePages, MemoryAccess, MemoryBacking, MemorySource,
};
use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{scaled, unsigned64};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("memoryBacking");
const HUGEPAGES: UnmodeledPath = UnmodeledPath::path("memoryBacking/hugepages");
const PAGE: &str = "memoryBacking/hugepages/page";
const SOURCE: UnmodeledPath = UnmodeledPath::path("memoryBacking/source");
const ACCESS: UnmodeledPath = UnmodeledPath::path("memoryBacking/access");
const CPU: UnmodeledPath = UnmodeledPath::path("cpu");
const NUMA: UnmodeledPath = UnmodeledPath::path("cpu/numa");
const CELL: &str = "cpu/numa/cell";

/// Reads the memory backing, except NUMA cells.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> MemoryBacking {
    let mut backing = MemoryBacking::default();
    let Some(mut element) = reader.child(domain, "memoryBacking") else {
        return backing;
    };
    if let Some(mut pages) = reader.child(&mut element, "hugepages") {
        backing.huge_pages = Some(read_pages(reader, &mut pages, kept));
        kept.note(HUGEPAGES, reader.close(pages));
    }
    if let Some(mut source) = reader.child(&mut element, "source") {
        backing.source = source.take("type", MemorySource::from_word);
        kept.note(SOURCE, reader.close(source));
    }
    if let Some(mut access) = reader.child(&mut element, "access") {
        backing.access = access.take("mode", MemoryAccess::from_word);
        kept.note(ACCESS, reader.close(access));
    }
    kept.note(AT, reader.close(element));
    backing
}

fn read_pages(
    reader: &mut Reader<'_>,
    pages: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> HugePages {
    let mut page_sizes = Vec::new();
    for node in pages.children("page") {
        let attribute = |name| node.attribute(name);
        let unit = attribute("unit").unwrap_or("KiB");
        let size = attribute("size").and_then(|size| scaled(size, unit));
        let Some(size) = size else {
            if attribute("size").and_then(unsigned64).is_some() {
                let at: FieldPath = pages.at;
                let message = match Bytes::scale(unit) {
                    Ok(_) => "the page size is larger than 2^64 - 1 bytes".to_owned(),
                    Err(error) => error.to_string(),
                };
                let span = node.span();
                reader.problem(&INVALID_VALUE, at, span, message);
            }
            pages.give_back(node);
            continue;
        };
        let mut page = reader.open_child(pages, node, pages.owner);
        page.take_known("size");
        page.take_known("unit");
        kept.note(
            UnmodeledPath::nth(PAGE, page_sizes.len()),
            reader.close(page),
        );
        page_sizes.push(size);
    }
    HugePages { page_sizes }
}

/// Reads the mode of the CPU, and the access mode of each NUMA cell.
pub(crate) fn read_cells(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> (Option<CpuMode>, Vec<Option<MemoryAccess>>) {
    let mut access = Vec::new();
    let Some(node) = domain.child("cpu") else {
        return (None, access);
    };
    reader.record_element(FieldPath::Domain(DomainField::Cpu), node.node);
    let mut cpu = reader.open_child(domain, node, domain.owner);
    let mode = node.attribute("mode").and_then(CpuMode::from_word);
    if mode.is_some() {
        cpu.take_known("mode");
    }
    if let Some(mut numa) = reader.child(&mut cpu, "numa") {
        for node in numa.children("cell") {
            let mut cell = reader.open_child(&numa, node, numa.owner);
            let of_cell = cell.take("memAccess", MemoryAccess::from_word);
            kept.note(UnmodeledPath::nth(CELL, access.len()), reader.close(cell));
            access.push(of_cell);
        }
        kept.note(NUMA, reader.close(numa));
    }
    kept.note(CPU, reader.close(cpu));
    (mode, access)
}

/// Writes the memory backing, except NUMA cells.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    backing: &MemoryBacking,
    kept: &'k UnmodeledContent,
) {
    let MemoryBacking {
        huge_pages,
        source,
        access,
        cell_access: _, // written by `write_cells`
    } = backing;
    let is_set = huge_pages.is_some() || source.is_some() || access.is_some();
    if !is_set && !kept.has_within("memoryBacking", 0) {
        return;
    }
    writer.start("memoryBacking", kept.at(AT));
    if let Some(HugePages { page_sizes }) = huge_pages {
        writer.start("hugepages", kept.at(HUGEPAGES));
        for (nth, Bytes(bytes)) in page_sizes.iter().enumerate() {
            writer.start("page", kept.at(UnmodeledPath::nth(PAGE, nth)));
            if bytes.is_multiple_of(Bytes::KIB) {
                writer.attribute("size", bytes / Bytes::KIB);
                writer.attribute("unit", "KiB");
            } else {
                writer.attribute("size", bytes);
                writer.attribute("unit", "bytes");
            }
            writer.end();
        }
        writer.end();
    }
    if source.is_some() || !kept.at(SOURCE).is_empty() {
        writer.start("source", kept.at(SOURCE));
        writer.optional("type", *source);
        writer.end();
    }
    if access.is_some() || !kept.at(ACCESS).is_empty() {
        writer.start("access", kept.at(ACCESS));
        writer.optional("mode", *access);
        writer.end();
    }
    writer.end();
}

/// Writes the CPU with the NUMA cells. Cells that were not read have no size yet: memory and vCPUs are distributed evenly.
pub(crate) fn write_cells<'k>(
    writer: &mut Writer<'k>,
    cpu: Option<CpuMode>,
    cells: &[Option<MemoryAccess>],
    vcpus: u32,
    memory: Option<Bytes>,
    kept: &'k UnmodeledContent,
) {
    if cpu.is_none() && cells.is_empty() && !kept.has_within("cpu", 0) {
        return;
    }
    writer.start("cpu", kept.at(CPU));
    writer.optional("mode", cpu);
    if !cells.is_empty() || kept.has_within("cpu/numa", 0) {
        writer.start("numa", kept.at(NUMA));
        let count = cells.len() as u64;
        for (nth, access) in cells.iter().enumerate() {
            let parts = kept.at(UnmodeledPath::nth(CELL, nth));
            writer.start("cell", parts);
            if parts.is_empty() {
                let share = |all: u64| (all * nth as u64 / count, all * (nth as u64 + 1) / count);
                writer.attribute("id", nth);
                let (first, next) = share(vcpus.into());
                match next - first {
                    0 => {}
                    1 => writer.attribute("cpus", first),
                    _ => writer.attribute("cpus", format_args!("{first}-{}", next - 1)),
                }
                let kib = memory.map_or(0, |Bytes(bytes)| bytes / Bytes::KIB);
                let part = kib / count;
                let rest = if nth == 0 { kib % count } else { 0 };
                writer.attribute("memory", part + rest);
                writer.attribute("unit", "KiB");
            }
            for name in ["id", "cpus", "memory", "unit"] {
                writer.kept(name);
            }
            writer.optional("memAccess", *access);
            writer.end();
        }
        writer.end();
    }
    writer.end();
}
