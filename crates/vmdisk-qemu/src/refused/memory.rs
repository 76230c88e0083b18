//! Memory of the guest that is not as large as the guest.

use vmdisk_model::Bytes;
use vmdisk_source::ProblemKind;

use crate::object::read::size_of;
use crate::reader::{Reader, is_open};

/// What a guest has that is not told.
const DEFAULT: Bytes = Bytes(128 * Bytes::MIB);

impl Reader<'_> {
    pub(super) fn find_refused_memory(&mut self) {
        let machines = self.of_name("machine").into_iter().chain(self.of_name("M"));
        let named = machines
            .rev()
            .find_map(|(_, machine)| machine.peek("memory-backend"));
        let Some(option) = named.and_then(|name| self.objects.get(name.value.as_str()).copied())
        else {
            return;
        };
        let size = self
            .properties(option)
            .and_then(|object| object.peek("size"));
        let Some(size) = size.filter(|size| !is_open(size.value.as_str())) else {
            return;
        };
        let is_told = self.options.iter().any(|option| option.name == "m");
        let memory = match self.domain.memory {
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
