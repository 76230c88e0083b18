//! Inputs that others refer to: pools, volumes, and files of `-readconfig`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use vmdisk::Storage;

use crate::input::inputs::{Input, Origin};
use crate::input::{config_files, read, storage};
use crate::render::message::Message;

/// The inputs as companions of each other. They are searched once, and only if one of them refers to others.
pub(crate) struct Companions<'a> {
    pub(crate) inputs: &'a [Input],
    /// Bytes that were read already, by the number of the input: a pipe can be read only once.
    read_before: &'a BTreeMap<usize, Vec<u8>>,
    storage: OnceLock<Storage>,
    /// Paths of files that command lines name.
    named: OnceLock<BTreeSet<String>>,
}

impl<'a> Companions<'a> {
    pub(crate) fn new(inputs: &'a [Input], read_before: &'a BTreeMap<usize, Vec<u8>>) -> Self {
        Companions {
            inputs,
            read_before,
            storage: OnceLock::new(),
            named: OnceLock::new(),
        }
    }

    /// The bytes of an input.
    pub(crate) fn bytes(&self, number: usize) -> Result<Cow<'a, [u8]>, Box<Message>> {
        match self.read_before.get(&number) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => read::input(&self.inputs[number]).map(Cow::Owned),
        }
    }

    /// Every pool and volume.
    pub(crate) fn storage(&self) -> &Storage {
        let find = || storage::among(self.inputs, self.read_before);
        self.storage.get_or_init(find)
    }

    /// True for a file that was found and that a command line among the inputs names.
    pub(crate) fn is_named(&self, input: &Input, bytes: &[u8]) -> bool {
        let named = || config_files::named_by(self.inputs, self.read_before);
        matches!(input.origin, Origin::Found(_))
            // XML, as nearly all.
            && bytes.first() != Some(&b'<')
            && std::str::from_utf8(bytes).is_ok_and(vmdisk::begins_with_group)
            && self.named.get_or_init(named).contains(&input.path())
    }
}
