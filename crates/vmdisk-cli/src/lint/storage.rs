//! Pools and volumes among the inputs, where the disks of the others may be.

use std::collections::BTreeMap;

use vmdisk::{RootKind, Storage};

use crate::lint::inputs::Input;
use crate::lint::read;

/// Every pool and volume of the inputs. What cannot be read is complained about when it is checked.
pub(crate) fn of(inputs: &[Input], read_before: &BTreeMap<usize, Vec<u8>>) -> Storage {
    let mut storage = Storage::default();
    for (number, input) in inputs.iter().enumerate() {
        let Some(bytes) = read::again(number, input, read_before) else {
            continue;
        };
        add(&mut storage, &bytes);
    }
    storage
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
