//! Pools and volumes among the inputs, where the disks of the others may be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use vmdisk::{RootKind, Storage};

use crate::input::inputs::Input;
use crate::input::read;
use crate::sanitize;
use crate::stop::Stop;

/// Every pool and volume among the inputs. `read_before` has bytes that were read already, by the number of the input. What
/// cannot be read is complained about when it is checked.
pub(crate) fn among(inputs: &[Input], read_before: &BTreeMap<usize, Vec<u8>>) -> Storage {
    let mut storage = Storage::default();
    let all = inputs.iter().enumerate();
    for bytes in all.filter_map(|(number, input)| read::again(number, input, read_before)) {
        add(&mut storage, &bytes);
    }
    storage
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
pub(crate) fn add(storage: &mut Storage, bytes: &[u8]) -> bool {
    if is_storage(bytes)
        && let Ok(document) = vmdisk::read_bytes(bytes)
        && let Some(item) = document.storage()
    {
        storage.add(item.clone());
        return true;
    }
    false
}

/// True for a pool or a volume.
pub(crate) fn is_storage(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|text| matches!(vmdisk::sniff(text), RootKind::Pool | RootKind::Volume))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::inputs::Origin;

    #[test]
    fn pools_are_found_wherever_they_begin_and_pipes_stay_unread() {
        let directory = tempfile::tempdir().unwrap();
        let pool = |name: &str| {
            format!("<pool type='dir'><name>{name}</name><target><path>/p</path></target></pool>")
        };
        let comment = format!("<!--{}-->", "é".repeat(100_000));
        let texts = [
            pool("a"),
            format!("<?xml version='1.0'?>\n{comment}{}", pool("b")),
            "<domain type='kvm'><name>c</name></domain>".to_owned(),
            format!("<network>{}</network>", pool("d")),
            "-drive file=/a".to_owned(),
        ];
        let files = texts.iter().enumerate().map(|(number, text)| {
            let path = directory.path().join(format!("{number}.xml"));
            std::fs::write(&path, text).unwrap();
            path
        });
        let others = ["/dev/zero", "/gone", "/read/before"].map(PathBuf::from);
        let inputs = files
            .chain(others)
            .map(|file| Input::new(file, Origin::Named));
        let inputs: Vec<Input> = inputs.collect();
        let read_before = BTreeMap::from([(7, pool("e").into_bytes())]);
        assert_eq!(among(&inputs, &read_before).pools.len(), 3);
    }
}
