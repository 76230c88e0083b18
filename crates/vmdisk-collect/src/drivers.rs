//! Driver-specific facts about devices in sysfs, and NVMe formats, which need root.

use std::time::Duration;

use serde::Deserialize;
use vmdisk_facts::blockdev::{Bcache, Crypt, LbaFormat, Nvme, Queue, Scsi};
use vmdisk_facts::{BlockDevice, BlockKind, CollectError, Fact, Reason, Unknown};

use crate::process::ProgramQuery;
use crate::root::Root;
use crate::sysfs::{directory, flag};

fn word(root: &Root, file: &str) -> Fact<String> {
    root.fact(file, |text| (!text.is_empty()).then(|| text.to_owned()))
}

/// Infers dm-crypt's options from the queues: discards pass through only if they are allowed.
pub(crate) fn crypt(kind: &BlockKind, own: &Queue, below: Option<&Queue>) -> Fact<Crypt> {
    if !kind.is_crypt() {
        return Fact::Absent;
    }
    let allow_discards = match (&own.discard_max, below.map(|queue| &queue.discard_max)) {
        (Fact::Known(1..), _) => Fact::Known(true),
        (Fact::Known(0), Some(Fact::Known(1..))) => Fact::Known(false),
        (Fact::Known(0), _) => Fact::unknown(
            Reason::Undecided,
            "the device below does not support discards, so sysfs does not show it; `dmsetup table` needs root",
        ),
        (other, _) => other.clone().and_then(|_| Fact::NotCollected),
    };
    Fact::Known(Crypt {
        allow_discards,
        ..Crypt::default()
    })
}

pub(crate) fn bcache(root: &Root, name: &str, kind: &BlockKind) -> Fact<Bcache> {
    if *kind != BlockKind::Bcache {
        return Fact::Absent;
    }
    let at = format!("{}/bcache", directory(name));
    let mode = format!("{at}/cache_mode");
    Fact::Known(Bcache {
        // `writethrough [writeback] writearound none`
        mode: root.chosen(&mode),
        state: word(root, &format!("{at}/state")),
    })
}

pub(crate) fn nvme(root: &Root, name: &str, kind: &BlockKind) -> Fact<Nvme> {
    if *kind != BlockKind::Nvme {
        return Fact::Absent;
    }
    let at = directory(name);
    let nsid = format!("{at}/nsid");
    Fact::Known(Nvme {
        transport: word(root, &format!("{at}/device/transport")),
        namespace: root.number(&nsid),
        formats: Fact::NotCollected,
    })
}

/// Returns what the SCSI disk driver reports about a whole disk.
pub(crate) fn scsi(root: &Root, name: &str) -> Fact<Scsi> {
    let device = format!("{}/device", directory(name));
    let disks = format!("{device}/scsi_disk");
    let Ok(address) = root.names(&disks).map(|names| names.into_iter().next()) else {
        return Fact::Absent;
    };
    let Some(address) = address else {
        return Fact::Absent;
    };
    let at = format!("{disks}/{address}");
    let host = address.split(':').next().unwrap_or_default();
    let driver = format!("/sys/class/scsi_host/host{host}/proc_name");
    Fact::Known(Scsi {
        state: word(root, &format!("{device}/state")),
        host: root.fact(&driver, |text| {
            (!text.is_empty() && text != "<NULL>").then(|| text.to_owned())
        }),
        cache_type: word(root, &format!("{at}/cache_type")),
        thin_provisioning: flag(root, &format!("{at}/thin_provisioning")),
        provisioning_mode: word(root, &format!("{at}/provisioning_mode")),
    })
}

/// The relevant part of the output of `nvme id-ns`.
#[derive(Deserialize)]
struct Namespace {
    flbas: u64,
    lbafs: Vec<Format>,
}

#[derive(Deserialize)]
struct Format {
    ms: u64,
    ds: u32,
    rp: u32,
}

/// Adds the supported formats of NVMe namespaces, which need root.
pub(crate) fn complete_nvme(
    root: &Root,
    devices: &mut [BlockDevice],
    limit: Duration,
    errors: &mut Vec<CollectError>,
) {
    for device in devices {
        // The kernel's path is the last one that is not a link by udev.
        let node = device
            .paths
            .iter()
            .find(|path| {
                path.strip_prefix("/dev/nvme")
                    .is_some_and(|rest| !rest.contains('/'))
            })
            .cloned();
        let (Fact::Known(nvme), Some(node)) = (&mut device.nvme, node) else {
            continue;
        };
        let name = node.trim_start_matches("/dev/");
        let recorded = format!("/vmdisk/nvme-{name}.json");
        let asked = ProgramQuery {
            program: "nvme",
            arguments: &["id-ns", &node, "--output-format", "json"],
            recorded: &recorded,
        }
        .ask(root, limit)
        .and_then(|text| formats(&text));
        nvme.formats = match asked {
            Ok(formats) => Fact::Known(formats),
            Err(unknown) => {
                errors.push(CollectError::of(
                    format!("nvme id-ns {node}"),
                    unknown.clone(),
                ));
                Fact::Unknown(unknown)
            }
        };
    }
}

fn formats(text: &str) -> Result<Vec<LbaFormat>, Unknown> {
    let namespace: Namespace = serde_json::from_str(text).map_err(|error| {
        Unknown::new(Reason::Parse, format!("the output of nvme id-ns: {error}"))
    })?;
    let Namespace { flbas, lbafs } = namespace;
    // The upper bits of the number of the format in use are stored separately (NVM command set, FLBAS).
    let in_use = (flbas & 0xf) | ((flbas >> 1) & 0x30);
    let formats = lbafs.into_iter().enumerate();
    // Drives leave unused entries of size 0 in the list.
    let formats = formats.filter(|(_, format)| format.ds >= 9);
    let formats = formats.map(|(number, Format { ms, ds, rp })| LbaFormat {
        block: 1_u64.checked_shl(ds).map_or_else(
            || Fact::unknown(Reason::Parse, format!("2^{ds}")),
            Fact::Known,
        ),
        metadata: Fact::Known(ms),
        performance: Fact::Known(rp & 3),
        in_use: Fact::Known(number as u64 == in_use),
    });
    Ok(formats.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discards_are_allowed_only_if_they_pass_through() {
        let queue = |discard_max: u64| Queue {
            discard_max: Fact::Known(discard_max),
            ..Queue::default()
        };
        let allowed = |own: u64, below: u64| {
            let crypt = crypt(&BlockKind::CryptLuks2, &queue(own), Some(&queue(below)));
            crypt.known().unwrap().allow_discards
        };
        assert_eq!(allowed(4096, 4096), Fact::Known(true));
        assert_eq!(allowed(0, 4096), Fact::Known(false));
        assert!(allowed(0, 0).is_unknown());
        assert_eq!(crypt(&BlockKind::Disk, &queue(0), None), Fact::Absent);
    }

    #[test]
    fn formats_are_listed_with_the_one_in_use() {
        let formats = formats(
            r#"{"nsze":65536,"flbas":4,"lbafs":[{"ms":0,"ds":9,"rp":2},{"ms":8,"ds":9,"rp":3},{"ms":0,"ds":0,"rp":0},
                {"ms":0,"ds":0,"rp":0},{"ms":0,"ds":12,"rp":0}]}"#,
        )
        .unwrap();
        assert_eq!(formats.len(), 3);
        assert_eq!(formats[2].block, Fact::Known(4096));
        assert_eq!(formats[2].in_use, Fact::Known(true));
        assert_eq!(formats[0].performance, Fact::Known(2));
        assert_eq!(formats[0].in_use, Fact::Known(false));
        assert!(super::formats("{}").is_err());
    }

    #[test]
    fn a_size_that_overflows_is_rejected() {
        let formats = formats(r#"{"flbas":0,"lbafs":[{"ms":0,"ds":4000,"rp":0}]}"#).unwrap();
        assert!(formats[0].block.is_unknown());
    }
}
