//! Pools and volumes among the inputs, where the disks of the others may be.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use vmdisk::{RootKind, Storage};

use crate::lint::inputs::Input;
use crate::lint::read;

/// Every pool and volume of the inputs. What cannot be read is complained about when it is checked.
pub(crate) fn of(inputs: &[Input], read_before: &BTreeMap<usize, Vec<u8>>) -> Storage {
    let mut storage = Storage::default();
    let mut head = vec![0; HEAD_BYTES];
    for (number, input) in inputs.iter().enumerate() {
        if !read_before.contains_key(&number) && !may_be_storage(&input.file, &mut head) {
            continue;
        }
        let Some(bytes) = read::again(number, input, read_before) else {
            continue;
        };
        add(&mut storage, &bytes);
    }
    storage
}

/// The first bytes of a file, which nearly always hold the start of its first element.
const HEAD_BYTES: usize = 4096;

/// False for a file whose first bytes show that it holds a guest or something else.
///
/// Few files are about storage. To read all others a second time would take as long as a tenth of the run.
fn may_be_storage(path: &Path, head: &mut [u8]) -> bool {
    let Ok(length) = File::open(path).and_then(|mut file| file.read(head)) else {
        return false;
    };
    let text = match std::str::from_utf8(&head[..length]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match vmdisk::sniff(text) {
        RootKind::Pool | RootKind::Volume => true,
        // The first element is further on, or its name is cut.
        RootKind::NotXml | RootKind::Foreign => length == head.len(),
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

/// Adds what the bytes of one file say, if they are about storage.
pub(crate) fn add(storage: &mut Storage, bytes: &[u8]) {
    let is_storage = std::str::from_utf8(bytes)
        .is_ok_and(|text| matches!(vmdisk::sniff(text), RootKind::Pool | RootKind::Volume));
    if is_storage
        && let Ok(document) = vmdisk::read_bytes(bytes)
        && let Some(item) = document.storage()
    {
        storage.add(item.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_about_storage_is_never_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        let mut head = vec![0; HEAD_BYTES];
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
            std::fs::write(&path, &text).unwrap();
            assert_eq!(may_be_storage(&path, &mut head), is_read, "{text:.40}");
        }
        assert!(!may_be_storage(&directory.path().join("gone"), &mut head));
    }
}
