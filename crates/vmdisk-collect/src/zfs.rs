//! Facts that need ZFS's tools: datasets and volumes. Collected only on request.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use vmdisk_facts::blockdev::Zvol;
use vmdisk_facts::filesystem::Zfs;
use vmdisk_facts::{BlockDevice, BlockKind, CollectError, Fact, Filesystem, Reason, Unknown};

use crate::obstacle::shortened;
use crate::process::ProgramQuery;
use crate::root::Root;

const RECORDED: &str = "/vmdisk/zfs-get";

/// Adds the properties of datasets and volumes.
pub(crate) fn complete(
    root: &Root,
    filesystems: &mut [Filesystem],
    devices: &mut [BlockDevice],
    limit: Duration,
    errors: &mut Vec<CollectError>,
) {
    for device in devices.iter_mut() {
        if device.kind == BlockKind::Zvol {
            let dataset = device
                .paths
                .iter()
                .find_map(|path| path.strip_prefix("/dev/zvol/"));
            device.zvol = Fact::Known(Zvol {
                dataset: match dataset {
                    Some(dataset) => Fact::Known(dataset.to_owned()),
                    None => Fact::unknown(Reason::Namespace, "there is no link in /dev/zvol"),
                },
                ..Zvol::default()
            });
        }
    }
    let datasets = filesystems
        .iter()
        .filter_map(|filesystem| filesystem.zfs.value()?.dataset.value());
    let volumes = devices
        .iter()
        .filter_map(|device| device.zvol.value()?.dataset.value());
    let names: BTreeSet<String> = datasets.chain(volumes).cloned().collect();
    if names.is_empty() {
        return;
    }
    // All properties: an older ZFS fails if it does not know a requested one.
    let mut arguments = vec!["get", "-Hp", "-o", "name,property,value", "all"];
    arguments.extend(names.iter().map(String::as_str));
    let asked = ProgramQuery {
        program: "zfs",
        arguments: &arguments,
        recorded: RECORDED,
    }
    .ask(root, limit);
    match asked {
        Ok(text) => {
            let properties = Properties::read(&text);
            for zfs in filesystems.iter_mut().filter_map(of_filesystem) {
                properties.fill_dataset(zfs);
            }
            for zvol in devices.iter_mut().filter_map(of_device) {
                properties.fill_volume(zvol);
            }
        }
        Err(unknown) => {
            for zfs in filesystems.iter_mut().filter_map(of_filesystem) {
                mark_dataset(zfs, &unknown);
            }
            for zvol in devices.iter_mut().filter_map(of_device) {
                mark_volume(zvol, &unknown);
            }
            errors.push(CollectError::of("zfs", unknown));
        }
    }
}

fn of_filesystem(filesystem: &mut Filesystem) -> Option<&mut Zfs> {
    match &mut filesystem.zfs {
        Fact::Known(zfs) => Some(zfs),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
    }
}

fn of_device(device: &mut BlockDevice) -> Option<&mut Zvol> {
    match &mut device.zvol {
        Fact::Known(zvol) => Some(zvol),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
    }
}

fn mark_dataset(zfs: &mut Zfs, unknown: &Unknown) {
    let Zfs {
        dataset: _,
        version: _,
        direct,
        sync,
        recordsize,
        compression,
    } = zfs;
    for text in [direct, sync, compression] {
        *text = Fact::Unknown(unknown.clone());
    }
    *recordsize = Fact::Unknown(unknown.clone());
}

fn mark_volume(zvol: &mut Zvol, unknown: &Unknown) {
    let Zvol {
        dataset: _,
        volblocksize,
        sync,
        compression,
    } = zvol;
    for text in [sync, compression] {
        *text = Fact::Unknown(unknown.clone());
    }
    *volblocksize = Fact::Unknown(unknown.clone());
}

/// Values by dataset and property.
struct Properties<'a>(HashMap<(&'a str, &'a str), &'a str>);

impl<'a> Properties<'a> {
    /// Parses three columns separated by tabs: dataset, property, value.
    fn read(text: &'a str) -> Self {
        let rows = text.lines().filter_map(|line| {
            let mut columns = line.splitn(3, '\t');
            Some(((columns.next()?, columns.next()?), columns.next()?))
        });
        Self(rows.collect())
    }

    /// Returns a property; absent if this ZFS or the dataset does not have it.
    fn text(&self, dataset: &Fact<String>, property: &str) -> Fact<String> {
        dataset
            .as_str()
            .and_then(|dataset| match self.0.get(&(dataset, property)) {
                Some(&"-") | None => Fact::Absent,
                Some(&value) => Fact::Known(value.to_owned()),
            })
    }

    fn number(&self, dataset: &Fact<String>, property: &str) -> Fact<u64> {
        self.text(dataset, property)
            .and_then(|text| match text.parse() {
                Ok(number) => Fact::Known(number),
                Err(_) => Fact::unknown(
                    Reason::Parse,
                    format!("zfs: {property} is `{}`", shortened(&text)),
                ),
            })
    }

    fn fill_dataset(&self, zfs: &mut Zfs) {
        let Zfs {
            dataset,
            version: _,
            direct,
            sync,
            recordsize,
            compression,
        } = zfs;
        *direct = self.text(dataset, "direct");
        *sync = self.text(dataset, "sync");
        *recordsize = self.number(dataset, "recordsize");
        *compression = self.text(dataset, "compression");
    }

    fn fill_volume(&self, zvol: &mut Zvol) {
        let Zvol {
            dataset,
            volblocksize,
            sync,
            compression,
        } = zvol;
        *volblocksize = self.number(dataset, "volblocksize");
        *sync = self.text(dataset, "sync");
        *compression = self.text(dataset, "compression");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of zfs-get(8) with `-Hp`; not from a real ZFS.
    const GET: &str = "tank/img\ttype\tfilesystem\ntank/img\trecordsize\t131072\ntank/img\tsync\tdisabled\n\
                       tank/img\tcompression\tlz4\ntank/img\tvolsize\t-\n\
                       tank/img\tdirect\tstandard\ntank/vm1\tvolblocksize\t16384\ntank/vm1\tsync\tstandard\n";

    #[test]
    fn properties_of_datasets_and_volumes_are_distinguished() {
        let properties = Properties::read(GET);
        let mut zfs = Zfs {
            dataset: Fact::Known("tank/img".to_owned()),
            ..Zfs::default()
        };
        properties.fill_dataset(&mut zfs);
        assert_eq!(zfs.recordsize, Fact::Known(131_072));
        assert_eq!(zfs.direct, Fact::Known("standard".to_owned()));
        assert_eq!(zfs.sync, Fact::Known("disabled".to_owned()));
        let mut zvol = Zvol {
            dataset: Fact::Known("tank/vm1".to_owned()),
            ..Zvol::default()
        };
        properties.fill_volume(&mut zvol);
        assert_eq!(zvol.volblocksize, Fact::Known(16_384));
        assert_eq!(zvol.compression, Fact::Absent);
    }

    #[test]
    fn a_missing_property_is_absent_and_an_invalid_number_is_a_reason() {
        let properties = Properties::read("tank\trecordsize\t128K\n\nbroken\n");
        let mut zfs = Zfs {
            dataset: Fact::Known("tank".to_owned()),
            ..Zfs::default()
        };
        properties.fill_dataset(&mut zfs);
        assert_eq!(zfs.direct, Fact::Absent);
        assert!(zfs.recordsize.is_unknown());
    }
}
