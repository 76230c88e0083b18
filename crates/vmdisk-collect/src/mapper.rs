//! Facts that need the tables of the device mapper: options of dm-crypt and thin pools, paths of multipath devices.
//! Collected only on request; needs root.

use std::collections::HashMap;
use std::time::Duration;

use vmdisk_facts::blockdev::{Crypt, Lvm, Percent};
use vmdisk_facts::{BlockDevice, BlockKind, CollectError, Fact, Unknown};

use crate::process::ProgramQuery;
use crate::root::Root;

const TABLE: ProgramQuery = ProgramQuery {
    program: "dmsetup",
    arguments: &["table"],
    recorded: "/vmdisk/dmsetup-table",
};

const STATUS: ProgramQuery = ProgramQuery {
    program: "dmsetup",
    // Without this option the kernel first commits a thin pool's metadata.
    arguments: &["status", "--noflush"],
    recorded: "/vmdisk/dmsetup-status",
};

/// Adds the facts in the tables to the devices of the device mapper.
pub(crate) fn complete(
    root: &Root,
    devices: &mut [BlockDevice],
    limit: Duration,
    errors: &mut Vec<CollectError>,
) {
    if !devices.iter().any(|device| device.kind.is_device_mapper()) {
        return;
    }
    let asked = TABLE
        .ask(root, limit)
        .and_then(|table| Ok((table, STATUS.ask(root, limit)?)));
    match asked {
        Ok((table, status)) => Tables::new(&table, &status).fill(devices),
        Err(unknown) => {
            for device in devices.iter_mut() {
                if let Fact::Known(crypt) = &mut device.crypt {
                    mark(crypt, &unknown);
                }
            }
            errors.push(CollectError::of("dmsetup", unknown));
        }
    }
}

fn mark(crypt: &mut Crypt, unknown: &Unknown) {
    let Crypt {
        allow_discards,
        cipher,
        options,
    } = crypt;
    if !allow_discards.is_settled() {
        *allow_discards = Fact::Unknown(unknown.clone());
    }
    *cipher = Fact::Unknown(unknown.clone());
    *options = Fact::Unknown(unknown.clone());
}

/// The first target of each device, by device name: its type and arguments.
struct Tables<'a> {
    table: HashMap<String, Vec<&'a str>>,
    status: HashMap<String, Vec<&'a str>>,
}

impl<'a> Tables<'a> {
    fn new(table: &'a str, status: &'a str) -> Self {
        Self {
            table: by_name(table),
            status: by_name(status),
        }
    }

    fn fill(&self, devices: &mut [BlockDevice]) {
        let mut pools: HashMap<String, Lvm> = HashMap::new();
        for device in devices.iter_mut() {
            let Fact::Known(dm) = &device.dm else {
                continue;
            };
            let Fact::Known(name) = &dm.name else {
                continue;
            };
            let (table, status) = (self.table.get(name), self.status.get(name));
            match table.and_then(|words| words.split_first()) {
                Some((&"crypt", rest)) => device.crypt = Fact::Known(crypt(rest)),
                Some((&"thin-pool", rest)) => {
                    let pool = pool(rest, status.map_or(&[], Vec::as_slice));
                    pools.insert(device.id.clone(), pool);
                }
                Some((&"multipath", _)) => {
                    if let Some(status) = status {
                        device.paths_up = Fact::Known(active_paths(status));
                    }
                }
                Some(_) | None => {}
            }
        }
        // Volumes on a pool get its properties, as in `lvs`.
        for _ in 0..2 {
            for device in devices.iter_mut() {
                let of = pools.get(&device.id).or_else(|| {
                    let is_on_pool =
                        matches!(device.kind, BlockKind::LvmThin | BlockKind::LvmThinPool);
                    let mut below = device.slaves.iter().filter(|_| is_on_pool);
                    below.find_map(|slave| pools.get(slave))
                });
                let Some(of) = of.cloned() else {
                    continue;
                };
                if let Fact::Known(lvm) = &mut device.lvm {
                    inherit(lvm, &of);
                }
                pools.entry(device.id.clone()).or_insert(of);
            }
        }
    }
}

/// Copies facts from a pool that are still missing.
fn inherit(lvm: &mut Lvm, pool: &Lvm) {
    fn one<T: Clone>(mine: &mut Fact<T>, pool: &Fact<T>) {
        if !mine.is_settled() {
            mine.clone_from(pool);
        }
    }
    one(&mut lvm.chunk, &pool.chunk);
    one(&mut lvm.zero, &pool.zero);
    one(&mut lvm.discards, &pool.discards);
    one(&mut lvm.data_percent, &pool.data_percent);
    one(&mut lvm.metadata_percent, &pool.metadata_percent);
    one(&mut lvm.when_full, &pool.when_full);
}

/// Parses lines `NAME: START LENGTH TYPE …`; only the first segment of a device is used.
fn by_name(text: &str) -> HashMap<String, Vec<&str>> {
    let mut found = HashMap::new();
    for line in text.lines() {
        // Names cannot contain a space, which is written \x20, so `: ` ends the name.
        if let Some((name, rest)) = line.split_once(": ") {
            let words: Vec<&str> = rest.split_whitespace().skip(2).collect();
            found.entry(plain(name)).or_insert(words);
        }
    }
    found
}

/// Decodes `\xNN` in a name, as in sysfs.
fn plain(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend(before.as_bytes());
        match after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses `CIPHER KEY IV-OFFSET DEVICE OFFSET [COUNT OPTION…]`.
fn crypt(words: &[&str]) -> Crypt {
    let options: Vec<String> = words
        .get(6..)
        .unwrap_or_default()
        .iter()
        .map(|&option| option.to_owned())
        .collect();
    Crypt {
        allow_discards: Fact::Known(options.iter().any(|option| option == "allow_discards")),
        cipher: words
            .first()
            .map_or(Fact::Absent, |&cipher| Fact::Known(cipher.to_owned())),
        options: Fact::Known(options),
    }
}

/// Parses `METADATA DATA CHUNK-SECTORS LOW-WATER COUNT FEATURE…`, and the status `TRANSACTION USED/ALL USED/ALL …`.
fn pool(words: &[&str], status: &[&str]) -> Lvm {
    let features = words.get(5..).unwrap_or_default();
    let has = |feature: &str| features.contains(&feature);
    let percent = |place: usize| match status.get(place).and_then(|word| fullness(word)) {
        Some(percent) => Fact::Known(percent),
        None => Fact::NotCollected,
    };
    Lvm {
        chunk: words
            .get(2)
            .and_then(|sectors| sectors.parse::<u64>().ok()?.checked_mul(512))
            .map_or(Fact::NotCollected, Fact::Known),
        zero: Fact::Known(!has("skip_block_zeroing")),
        discards: Fact::Known(
            if has("ignore_discard") {
                "ignore"
            } else if has("no_discard_passdown") {
                "nopassdown"
            } else {
                "passdown"
            }
            .to_owned(),
        ),
        // The first word is the type.
        metadata_percent: percent(2),
        data_percent: percent(3),
        when_full: Fact::Known(
            if has("error_if_no_space") {
                "error"
            } else {
                "queue"
            }
            .to_owned(),
        ),
        ..Lvm::default()
    }
}

/// Converts `9/50` to 18 %, in hundredths.
fn fullness(word: &str) -> Option<Percent> {
    let (used, all) = word.split_once('/')?;
    let (used, all): (u64, u64) = (used.parse().ok()?, all.parse().ok()?);
    let hundredths = used.checked_mul(10_000)?.checked_div(all)?;
    u32::try_from(hundredths).ok().map(Percent)
}

/// Counts the active paths of a multipath device: a device number followed by `A`.
fn active_paths(status: &[&str]) -> u32 {
    let is_number = |word: &str| {
        word.split_once(':').is_some_and(|(major, minor)| {
            major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()
        })
    };
    let active = status
        .windows(2)
        .filter(|pair| is_number(pair[0]) && pair[1] == "A");
    u32::try_from(active.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use vmdisk_facts::blockdev::Dm;

    use super::*;

    /// Lines from real hosts.
    const TABLE: &str = "\
secrets: 0 1015808 crypt aes-xts-plain64 :64:logon:cryptsetup:1111-d0 0 254:32 32768 2 allow_discards sector_size:4096
closed: 0 1015808 crypt aes-xts-plain64 :64:logon:cryptsetup:2222-d0 0 254:48 32768
vg0-pool4m: 0 409600 linear 253:7 0
vg0-pool4m-tpool: 0 409600 thin-pool 253:5 253:6 8192 0 1 skip_block_zeroing
vg0-thin4m: 0 1048576 thin 253:7 1
my\\x20disk: 0 8 linear 8:0 0
mpatha: 0 524288 multipath 0 0 1 1 round-robin 0 2 1 8:32 1 8:48 1
";
    const STATUS: &str = "\
vg0-pool4m-tpool: 0 409600 thin-pool 1 112/1024 9/50 - rw discard_passdown queue_if_no_space - 256
mpatha: 0 524288 multipath 2 0 0 0 1 1 A 0 2 1 8:32 A 0 1 8:48 F 1 1
";

    fn device(id: &str, name: &str, kind: BlockKind, slaves: &[&str]) -> BlockDevice {
        BlockDevice {
            id: id.to_owned(),
            lvm: if kind.is_lvm() {
                Fact::Known(Lvm::default())
            } else {
                Fact::Absent
            },
            kind,
            dm: Fact::Known(Dm {
                name: Fact::Known(name.to_owned()),
            }),
            slaves: slaves.iter().map(|&slave| slave.to_owned()).collect(),
            ..BlockDevice::default()
        }
    }

    #[test]
    fn a_table_adds_facts_that_sysfs_does_not_have() {
        let mut devices = [
            device("b1", "secrets", BlockKind::CryptLuks2, &[]),
            device("b2", "closed", BlockKind::CryptLuks2, &[]),
            device("b3", "vg0-pool4m-tpool", BlockKind::LvmThinPool, &[]),
            device("b4", "vg0-thin4m", BlockKind::LvmThin, &["b3"]),
            device("b5", "mpatha", BlockKind::Multipath, &[]),
            device("b6", "vg0-thick", BlockKind::Lvm, &["b3"]),
        ];
        Tables::new(TABLE, STATUS).fill(&mut devices);
        let crypt = |place: usize| devices[place].crypt.value().unwrap();
        assert_eq!(crypt(0).allow_discards, Fact::Known(true));
        assert_eq!(crypt(0).options.value().unwrap().len(), 2);
        assert_eq!(crypt(0).cipher, Fact::Known("aes-xts-plain64".to_owned()));
        assert_eq!(crypt(1).allow_discards, Fact::Known(false));
        for place in [2, 3] {
            let lvm = devices[place].lvm.value().unwrap();
            assert_eq!(lvm.zero, Fact::Known(false));
            assert_eq!(lvm.chunk, Fact::Known(4 << 20));
            assert_eq!(lvm.data_percent, Fact::Known(Percent(1800)));
            assert_eq!(lvm.metadata_percent, Fact::Known(Percent(1093)));
            assert_eq!(lvm.when_full, Fact::Known("queue".to_owned()));
            assert_eq!(lvm.discards, Fact::Known("passdown".to_owned()));
        }
        assert_eq!(devices[4].paths_up, Fact::Known(1));
        assert!(devices[5].lvm.value().unwrap().zero.is_not_collected());
    }

    #[test]
    fn escaped_names_are_decoded() {
        assert_eq!(plain("my\\x20disk"), "my disk");
        assert_eq!(plain("a\\xzz\\x"), "a\\xzz\\x");
        assert!(by_name(TABLE).contains_key("my disk"));
    }

    #[test]
    fn invalid_lines_are_ignored() {
        let mut devices = [device("b1", "x", BlockKind::LvmThinPool, &[])];
        Tables::new("x: 0\nnonsense\nx", "x: 0 8 thin-pool 1 1/0 x/y").fill(&mut devices);
        assert!(devices[0].lvm.value().unwrap().zero.is_not_collected());
        Tables::new("x: 0 8 thin-pool 1", "x: 0 8 thin-pool 1 1/0 x/y").fill(&mut devices);
        assert!(
            devices[0]
                .lvm
                .value()
                .unwrap()
                .data_percent
                .is_not_collected()
        );
    }
}
