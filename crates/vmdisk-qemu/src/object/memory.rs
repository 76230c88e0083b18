//! `-m` and `-object memory-backend-…`: guest memory, as far as disks depend on it.

use vmdisk_model::{
    Bytes, DomainField, FieldPath, HugePages, MemoryAccess, MemoryBacking, MemorySource,
};

use crate::argument::QemuOption;
use crate::json::JsonObject;
use crate::key_value::KeyValue;
use crate::writer::Writer;

use super::SHARED_MEMORY;

/// Id of the object that holds the guest's memory.
const MEMORY_ID: &str = "memory";

/// QEMU rounds the size of `-m` up to this (`hw/core/machine.c`), and then requires a backend of that size.
const GRANULE: u64 = 8192;

impl Writer<'_> {
    /// Writes the memory, and returns the id of its object if it has one.
    pub(crate) fn write_memory(&mut self) -> Option<&'static str> {
        let size = self
            .domain()
            .memory
            .map(|Bytes(size)| size.next_multiple_of(GRANULE));
        if let Some(size) = size {
            let text = KeyValue::default().with("size", size_text(size));
            let at = FieldPath::Domain(DomainField::Memory);
            self.push_pairs(QemuOption::Memory, text, at);
        }
        let MemoryBacking {
            huge_pages,
            source,
            access,
            cell_access,
        } = &self.domain().memory_backing;
        let share = if cell_access.is_empty() {
            *access == Some(MemoryAccess::Shared)
        } else {
            self.leave_out(
                FieldPath::Domain(DomainField::MemoryAccess),
                "NUMA cells are not written: the guest gets one node",
            );
            self.domain().memory_backing.is_shared()
        };
        let at = FieldPath::Domain(match (huge_pages, source) {
            (Some(_), _) => DomainField::HugePages,
            (None, Some(_)) => DomainField::MemorySource,
            (None, None) => DomainField::MemoryAccess,
        });
        let object = |qom_type| {
            JsonObject::new()
                .with("qom-type", qom_type)
                .with("id", MEMORY_ID)
        };
        let mut object = match (huge_pages, source) {
            // A memfd supports huge pages of any size without a mount.
            (Some(HugePages { page_sizes }), _) => {
                let mut object = object("memory-backend-memfd").with("hugetlb", true);
                object.push_some("hugetlbsize", page_sizes.first().map(|size| size.0));
                if page_sizes.len() > 1 {
                    let message =
                        "only the first size of huge pages is written: the guest gets one node";
                    self.leave_out(at, message);
                }
                object.with("prealloc", true)
            }
            (None, Some(MemorySource::Memfd)) => object("memory-backend-memfd"),
            (None, Some(MemorySource::File)) => {
                object("memory-backend-file").with("mem-path", SHARED_MEMORY)
            }
            // Only memory with a file descriptor can be shared with other processes.
            (None, Some(MemorySource::Anonymous) | None) if share => object("memory-backend-memfd"),
            (None, Some(MemorySource::Anonymous) | None) => return None,
        };
        let Some(size) = size else {
            self.problem(
                FieldPath::Domain(DomainField::Memory),
                "set the memory size: shared memory, huge pages and files need it",
            );
            return None;
        };
        object.push("size", size);
        object.push("share", share);
        self.object(object, at);
        Some(MEMORY_ID)
    }
}

/// A size in the largest unit of `-m` that divides it.
fn size_text(size: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    UNITS
        .iter()
        .find(|(scale, _)| size != 0 && size.is_multiple_of(*scale))
        .map_or_else(
            || format!("{size}B"),
            |(scale, unit)| format!("{}{unit}", size / scale),
        )
}
