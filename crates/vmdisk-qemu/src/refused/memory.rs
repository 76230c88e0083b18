//! Memory of the guest that is not as large as the guest.

use vmdisk_model::Bytes;
use vmdisk_source::ProblemKind;

use super::check::Check;
use crate::object::read_memory::memory_of_machine;
use crate::syntax::value::{is_open, size_of};

/// What a guest has that is not told.
const DEFAULT: Bytes = Bytes(128 * Bytes::MIB);

impl Check<'_> {
    pub(super) fn find_refused_memory(&mut self) {
        let named = memory_of_machine(self.index);
        let Some(option) = named.and_then(|name| self.index.object(name.value.as_str())) else {
            return;
        };
        let size = self
            .index
            .properties(option)
            .and_then(|object| object.peek("size"));
        let Some(size) = size.filter(|size| !is_open(size.value.as_str())) else {
            return;
        };
        let is_told = self.index.has("m");
        let memory = match self.lowered.domain().memory {
            Some(memory) => memory,
            None if is_told => return,
            None => DEFAULT,
        };
        let Some(bytes) = size_of(size.value.as_str(), 1) else {
            return;
        };
        if bytes != memory {
            let message = format!("the memory object has {bytes}, and the guest {memory}");
            let help = "write the same size for both";
            self.refuse(
                ProblemKind::MemorySizeMismatch,
                option,
                size.span,
                message,
                help,
            );
        }
    }
}
