//! Pools and volumes among the inputs, where the disks of the others may be.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use vmdisk::{RootKind, Storage};

use crate::input::bounded::{self, MAX_BYTES};
use crate::input::inputs::Input;
use crate::input::read;
use crate::sanitize;
use crate::stop::Stop;

/// A search for pools and volumes among the inputs, which is made once and only if a disk is on a volume.
pub(crate) struct Search<'a> {
    inputs: &'a [Input],
    /// Bytes that were read already, by the number of the input.
    read_before: &'a BTreeMap<usize, Vec<u8>>,
    /// True for each input that was checked and has neither pool nor volume: it is not read again.
    has_none: Vec<AtomicBool>,
    found: OnceLock<Found>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(inputs: &'a [Input], read_before: &'a BTreeMap<usize, Vec<u8>>) -> Self {
        Search {
            inputs,
            read_before,
            has_none: inputs.iter().map(|_| AtomicBool::new(false)).collect(),
            found: OnceLock::new(),
        }
    }

    /// Every pool and volume.
    pub(crate) fn storage(&self) -> &Storage {
        &self.found.get_or_init(|| self.find()).storage
    }

    /// Notes that an input that is checked has neither pool nor volume.
    pub(crate) fn skip(&self, number: usize) {
        // No other memory depends on it: where it is not seen, a file is read twice.
        self.has_none[number].store(true, Ordering::Relaxed);
    }

    /// The bytes of an input, if the search has read it.
    pub(crate) fn read_ahead(&self, number: usize) -> Option<&[u8]> {
        let whole = &self.found.get()?.whole;
        whole.get(&number).map(Vec::as_slice)
    }

    /// Reads the inputs. What cannot be read is complained about when it is checked.
    fn find(&self) -> Found {
        let mut found = Found::default();
        let mut room = MAX_KEPT;
        for (number, input) in self.inputs.iter().enumerate() {
            if self.has_none[number].load(Ordering::Relaxed) {
                continue;
            }
            let bytes = match self.read_before.get(&number) {
                Some(bytes) => Cow::Borrowed(bytes),
                // A pipe can be read only once, and that is when it is checked.
                None => match bounded::regular(&input.file, MAX_BYTES) {
                    Ok(bytes) => Cow::Owned(bytes),
                    Err(_) => continue,
                },
            };
            if may_be_storage(&bytes) {
                add(&mut found.storage, &bytes);
            }
            if let Cow::Owned(bytes) = bytes
                && bytes.len() <= room
            {
                room -= bytes.len();
                found.whole.insert(number, bytes);
            }
        }
        found
    }
}

/// The result of a search.
#[derive(Debug, Default)]
struct Found {
    /// Every pool and volume.
    storage: Storage,
    /// Files that were read whole, by the number of the input. They need not be opened again.
    whole: BTreeMap<usize, Vec<u8>>,
}

/// The maximum number of bytes of files that are kept after the search.
const MAX_KEPT: usize = 8 * 1024 * 1024;

/// The number of bytes in which nearly every file has its first element.
const HEAD_BYTES: usize = 64 * 1024;

/// False for a file whose first bytes show that it holds a guest or something else.
///
/// Few files are about storage. To parse all others would take as long as a tenth of the run.
fn may_be_storage(bytes: &[u8]) -> bool {
    // What comes before the first element is seldom longer.
    let first = |length: usize| match std::str::from_utf8(&bytes[..bytes.len().min(length)]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let root = match vmdisk::sniff(first(512)) {
        RootKind::NotXml | RootKind::Foreign => vmdisk::sniff(first(HEAD_BYTES)),
        root => root,
    };
    match root {
        RootKind::Pool | RootKind::Volume => true,
        // The first element is further on, or its name is cut.
        RootKind::NotXml | RootKind::Foreign => bytes.len() >= HEAD_BYTES,
        RootKind::OtherLibvirt(_)
        | RootKind::Domain
        | RootKind::DomainStatus
        | RootKind::Devices
        | RootKind::Disk
        | RootKind::DomainSnapshot
        | RootKind::DomainCheckpoint
        | RootKind::DomainBackup => false,
    }
}

/// The pools and volumes in the files of `--storage`.
pub(crate) fn of_files(files: &[PathBuf]) -> Result<Storage, Stop> {
    let mut storage = Storage::default();
    for file in files {
        if !add(&mut storage, &read::file(file)?) {
            let what = "is neither a storage pool nor a volume of libvirt";
            let file = file.display().to_string();
            return Err(Stop::new(format!("{} {what}", sanitize::line(&file))).help(
                "pass the XML that `virsh pool-dumpxml` or `virsh vol-dumpxml` prints to `--storage`",
            ));
        }
    }
    Ok(storage)
}

/// Adds what the bytes of one file say; false if they are not about storage.
fn add(storage: &mut Storage, bytes: &[u8]) -> bool {
    let is_storage = std::str::from_utf8(bytes)
        .is_ok_and(|text| matches!(vmdisk::sniff(text), RootKind::Pool | RootKind::Volume));
    if is_storage
        && let Ok(document) = vmdisk::read_bytes(bytes)
        && let Some(item) = document.storage()
    {
        storage.add(item.clone());
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::inputs::Origin;

    #[test]
    fn a_file_about_storage_is_never_passed_over() {
        let long = "é".repeat(HEAD_BYTES);
        let cut = format!("<!--{}-->", "x".repeat(HEAD_BYTES - 9));
        for (text, is_read) in [
            ("<pool type='dir'/>".to_owned(), true),
            ("<?xml version='1.0'?>\n<volume/>".to_owned(), true),
            (format!("<!-- {long} --><pool/>"), true),
            (format!("{cut}<volume/>"), true),
            ("<domain/>".to_owned(), false),
            (format!("<domain><title>{long}</title></domain>"), false),
            ("<network/>".to_owned(), false),
            ("-drive file=/a".to_owned(), false),
        ] {
            assert_eq!(may_be_storage(text.as_bytes()), is_read, "{text:.40}");
        }
    }

    #[test]
    fn small_files_are_kept_and_pipes_stay_unread() {
        let directory = tempfile::tempdir().unwrap();
        let pool = "<pool type='dir'><name>p</name><target><path>/p</path></target></pool>";
        let name = "a".repeat(HEAD_BYTES / 2);
        let domain = format!("<domain type='kvm'><name>{name}</name></domain>");
        let long = format!("{domain}<!--{}-->", "x".repeat(HEAD_BYTES));
        let texts = [pool, &domain, &long].map(str::to_owned);
        let files = texts.iter().enumerate().map(|(number, text)| {
            let path = directory.path().join(format!("{number}.xml"));
            std::fs::write(&path, text).unwrap();
            path
        });
        let others = ["/dev/zero", "/gone"].map(std::path::PathBuf::from);
        let inputs = files
            .chain(others)
            .map(|file| Input::new(file, Origin::Named));
        let inputs: Vec<Input> = inputs.collect();
        let none = BTreeMap::new();
        let search = Search::new(&inputs, &none);
        assert_eq!(search.read_ahead(1), None);
        assert_eq!(search.storage().pools.len(), 1);
        assert_eq!(search.read_ahead(0), Some(pool.as_bytes()));
        assert_eq!(search.read_ahead(1), Some(domain.as_bytes()));
        assert_eq!(search.read_ahead(2), Some(long.as_bytes()));
        assert!((3..inputs.len()).all(|number| search.read_ahead(number).is_none()));

        let search = Search::new(&inputs, &none);
        search.skip(1);
        assert_eq!(search.storage().pools.len(), 1);
        assert_eq!(search.read_ahead(1), None);

        let many = vec![inputs[1].clone(); MAX_KEPT / domain.len() + 10];
        let kept = Search::new(&many, &none).find().whole;
        let bytes: usize = kept.values().map(Vec::len).sum();
        assert!(
            (MAX_KEPT - HEAD_BYTES..=MAX_KEPT).contains(&bytes),
            "{bytes}"
        );
    }
}
