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
    storage: storage::Search<'a>,
    /// Paths of files that command lines name.
    named: OnceLock<BTreeSet<String>>,
}

impl<'a> Companions<'a> {
    pub(crate) fn new(inputs: &'a [Input], read_before: &'a BTreeMap<usize, Vec<u8>>) -> Self {
        Companions {
            inputs,
            read_before,
            storage: storage::Search::new(inputs, read_before),
            named: OnceLock::new(),
        }
    }

    /// The bytes of an input. `may_be_old` if those suffice that the search for storage read.
    pub(crate) fn bytes(
        &self,
        number: usize,
        may_be_old: bool,
    ) -> Result<Cow<'_, [u8]>, Box<Message>> {
        let known = self.read_before.get(&number).map(Vec::as_slice);
        let read_ahead = || self.storage.read_ahead(number).filter(|_| may_be_old);
        match known.or_else(read_ahead) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => read::input(&self.inputs[number]).map(Cow::Owned),
        }
    }

    /// The bytes of an input that was checked; `None` if they cannot be read again.
    pub(crate) fn bytes_again(&self, number: usize) -> Option<Cow<'_, [u8]>> {
        read::again(number, &self.inputs[number], self.read_before)
    }

    /// Every pool and volume.
    pub(crate) fn storage(&self) -> &Storage {
        self.storage.storage()
    }

    /// Notes that an input has neither pool nor volume.
    pub(crate) fn skip_storage(&self, number: usize) {
        self.storage.skip(number);
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
