//! Reads the backing of the guest's memory.

use vmdisk_model::{
    Bytes, DomainField, FieldPath, HugePages, MemoryAccess, MemoryBacking, MemorySource,
};

use crate::index::Index;
use crate::members::Members;
use crate::notes::Notes;
use crate::syntax::properties::Property;
use crate::syntax::value::{is_on, size_of};

use super::SHARED_MEMORY;

/// The option that names the object with all of the guest's memory; of several machine options the last one counts.
pub(crate) fn memory_of_machine<'a>(index: &Index<'a>) -> Option<(Members<'a>, &'a Property)> {
    let mut machines = index.machines().rev();
    machines.find_map(|(_, machine)| Some((machine, machine.get("memory-backend")?)))
}

/// The size of the object with all of the guest's memory, which the guest has without `-m`.
pub(crate) fn size_of_memory(index: &Index<'_>) -> Option<Bytes> {
    let (_, name) = memory_of_machine(index)?;
    let object = index.properties(index.object(name.value.as_str())?)?;
    size_of(object.get("size")?.value.as_str(), 1)
}

/// Reads the backing of the guest's memory.
pub(crate) fn read_memory_backing(index: &Index<'_>, notes: &mut Notes<'_>) -> MemoryBacking {
    let mut backing = MemoryBacking::default();
    if let Some((machine, name)) = memory_of_machine(index) {
        // One that is written, and the last that counts.
        if index.object(name.value.as_str()).is_some() {
            machine.accept_value(name);
        }
        if let Some(access) = read_memory_object(index, name, &mut backing, notes) {
            backing.access = access;
        }
        return backing;
    }
    for (_, numa) in index.of_name("numa") {
        if let Some(name) = numa.get("memdev")
            && let Some(access) = read_memory_object(index, name, &mut backing, notes)
        {
            numa.accept_value(name);
            backing.cell_access.push(access);
        }
    }
    backing
}

/// Reads one memory object, and returns its access mode.
fn read_memory_object(
    index: &Index<'_>,
    name: &Property,
    backing: &mut MemoryBacking,
    notes: &mut Notes<'_>,
) -> Option<Option<MemoryAccess>> {
    let option = index.object(name.value.as_str())?;
    let properties = index.properties(option)?;
    let at = FieldPath::Domain;
    notes.slots_mut().memory.push(option);
    notes.record_option(at(DomainField::MemoryBacking), option);
    let kind = properties.take("qom-type")?;
    properties.accept(&["size"]);
    let path = properties.value("mem-path");
    if path == Some(SHARED_MEMORY) {
        properties.accept(&["mem-path"]);
    }
    let has_huge_pages = is_on(properties.take("hugetlb"))
        || path.is_some_and(|path| path.contains("hugepages") || path.contains("hugetlbfs"));
    if has_huge_pages {
        let size = properties.take_text("hugetlbsize");
        let size = size.and_then(|size| size_of(size, 1));
        let sizes = backing.huge_pages.get_or_insert_with(HugePages::default);
        if let Some(size) = size.filter(|size| !sizes.page_sizes.contains(size)) {
            sizes.page_sizes.push(size);
        }
    }
    match kind.value.as_str() {
        "memory-backend-memfd" => backing.source = Some(MemorySource::Memfd),
        "memory-backend-file" if !has_huge_pages => backing.source = Some(MemorySource::File),
        _ => {}
    }
    notes.record(at(DomainField::MemorySource), kind);
    if kind.value.as_str() == "memory-backend-shm" {
        properties.accept(&["share"]);
        return Some(Some(MemoryAccess::Shared));
    }
    let share = properties.take("share");
    if let Some(share) = share {
        notes.record(at(DomainField::MemoryAccess), share);
    }
    // QEMU backends/hostmem-memfd.c: shared unless set.
    let by_default = kind.value.as_str() == "memory-backend-memfd";
    let by_default = by_default.then_some(MemoryAccess::Shared);
    Some(share.map_or(by_default, |share| {
        Some(match is_on(Some(share)) {
            true => MemoryAccess::Shared,
            false => MemoryAccess::Private,
        })
    }))
}
