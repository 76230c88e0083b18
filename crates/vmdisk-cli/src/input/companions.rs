//! Inputs that others refer to: pools, volumes, and files of `-readconfig`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use vmdisk::Storage;

use crate::input::inputs::{Input, Origin};
use crate::input::{config_files, read, storage};
use crate::render::message::Message;

/// Bytes that are kept of inputs that are checked later, at most.
const MAX_EARLY: usize = 64 << 20;

/// The inputs as companions of each other. They are searched once, and only if one of them refers to others.
pub(crate) struct Companions<'a> {
    pub(crate) inputs: &'a [Input],
    /// Bytes that were read already, by the number of the input: a pipe can be read only once.
    read_before: &'a BTreeMap<usize, Vec<u8>>,
    /// Inputs that were checked and hold no pool or volume.
    without_storage: Vec<AtomicBool>,
    /// Bytes of inputs that were read while pools and volumes were searched, until these inputs are checked.
    read_early: Mutex<BTreeMap<usize, Vec<u8>>>,
    storage: OnceLock<Storage>,
    /// Paths of files that command lines name.
    named: OnceLock<BTreeSet<String>>,
}

impl<'a> Companions<'a> {
    pub(crate) fn new(inputs: &'a [Input], read_before: &'a BTreeMap<usize, Vec<u8>>) -> Self {
        Companions {
            inputs,
            read_before,
            without_storage: inputs.iter().map(|_| AtomicBool::default()).collect(),
            read_early: Mutex::default(),
            storage: OnceLock::new(),
            named: OnceLock::new(),
        }
    }

    /// The bytes of an input.
    pub(crate) fn bytes(&self, number: usize) -> Result<Cow<'a, [u8]>, Box<Message>> {
        if let Some(bytes) = self.read_before.get(&number) {
            return Ok(Cow::Borrowed(bytes));
        }
        let bytes = match self.early().remove(&number) {
            Some(bytes) => bytes,
            None => read::input(&self.inputs[number])?,
        };
        if !storage::is_storage(&bytes) {
            self.without_storage[number].store(true, Ordering::Relaxed);
        }
        Ok(Cow::Owned(bytes))
    }

    fn early(&self) -> MutexGuard<'_, BTreeMap<usize, Vec<u8>>> {
        self.read_early
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Every pool and volume.
    pub(crate) fn storage(&self) -> &Storage {
        self.storage.get_or_init(|| self.find_storage())
    }

    /// Looks into each input that was not checked yet, or has storage. What is read of others is kept for their check.
    fn find_storage(&self) -> Storage {
        let mut found = Storage::default();
        let mut kept = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            if self.without_storage[number].load(Ordering::Relaxed) {
                continue;
            }
            let Some(bytes) = read::again(number, input, self.read_before) else {
                continue;
            };
            let is_storage = storage::add(&mut found, &bytes);
            if let (false, Cow::Owned(bytes)) = (is_storage, bytes) {
                kept += bytes.len();
                if kept < MAX_EARLY {
                    self.early().insert(number, bytes);
                }
            }
        }
        found
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
