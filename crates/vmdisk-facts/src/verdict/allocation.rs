//! How much of a file is allocated.

use crate::fact::Fact;
use crate::path::File;

/// The allocated part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// What is allocated, in bytes.
    pub allocated: u64,
    /// The whole size in bytes: the virtual one, if the header of an image says it.
    pub size: u64,
}

impl Allocation {
    /// True if it grows as the guest writes. File systems round sizes: 1 % less still counts as all.
    pub const fn is_sparse(&self) -> bool {
        self.allocated < self.size - self.size / 100
    }
}

impl File {
    /// How much of the file is allocated.
    pub fn allocation(&self) -> Fact<Allocation> {
        let header = self.image.as_ref();
        let in_header = header.and_then(|header| header.virtual_size.clone());
        in_header.or(self.size.clone()).and_then(|size| {
            let alloc = self.alloc.clone();
            alloc.map(|allocated| Allocation { allocated, size })
        })
    }
}
