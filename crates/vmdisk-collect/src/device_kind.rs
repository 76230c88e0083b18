//! The kind of a block device, from its name and its device mapper UUID.

use vmdisk_facts::BlockKind;

/// Returns the kind of a device mapper device from its UUID, which encodes its creator and layer.
///
/// LVM uses `LVM-`, 32 characters of the group's UUID, 32 of the volume's, a dash and the layer.
pub(crate) fn of_mapper(uuid: &str, name: &str, slaves: &[LayerBelow]) -> BlockKind {
    if let Some(rest) = uuid.strip_prefix("LVM-") {
        let layer = rest.get(64..).and_then(|rest| rest.strip_prefix('-'));
        return match layer {
            Some("tpool" | "pool") => BlockKind::LvmThinPool,
            Some("tdata") => BlockKind::LvmThinData,
            Some("tmeta") => BlockKind::LvmThinMetadata,
            Some(_) => BlockKind::LvmPart,
            None if is_hidden(name) => BlockKind::LvmPart,
            // The public volume has no layer; the devices below show its kind.
            None if slaves.contains(&LayerBelow::ThinPool) => BlockKind::LvmThin,
            None if slaves.contains(&LayerBelow::SnapshotStore) => BlockKind::LvmSnapshot,
            None if slaves.contains(&LayerBelow::SnapshotOrigin) => BlockKind::LvmOrigin,
            None => BlockKind::Lvm,
        };
    }
    if uuid.starts_with("CRYPT-LUKS2-") {
        BlockKind::CryptLuks2
    } else if uuid.starts_with("CRYPT-LUKS1-") {
        BlockKind::CryptLuks1
    } else if uuid.starts_with("CRYPT-") {
        BlockKind::Crypt
    } else if uuid.starts_with("mpath-") {
        BlockKind::Multipath
    } else if uuid.strip_prefix("part").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit())
            .starts_with("-mpath-")
    }) {
        BlockKind::MultipathPartition
    } else {
        BlockKind::DeviceMapper
    }
}

/// The layer of an LVM device below another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerBelow {
    ThinPool,
    SnapshotStore,
    SnapshotOrigin,
    Other,
}

impl LayerBelow {
    pub(crate) fn of_uuid(uuid: &str) -> Self {
        match uuid.strip_prefix("LVM-").and_then(|rest| rest.get(64..)) {
            Some("-tpool") => Self::ThinPool,
            Some("-cow") => Self::SnapshotStore,
            Some("-real") => Self::SnapshotOrigin,
            Some(_) | None => Self::Other,
        }
    }
}

/// Returns true for an internal part of another LVM volume, by its name.
fn is_hidden(name: &str) -> bool {
    const PARTS: [&str; 13] = [
        "rimage", "rmeta", "mimage", "mlog", "cdata", "cmeta", "corig", "cvol", "vdata", "vorigin",
        "pmspare", "tdata", "tmeta",
    ];
    let unnumbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let unnumbered = unnumbered.strip_suffix('_').unwrap_or(name);
    PARTS
        .iter()
        .any(|part| unnumbered.rsplit('_').next() == Some(part) && unnumbered.contains('_'))
}

/// Splits a device mapper name into group and volume, whose dashes are doubled; a layer suffix is dropped.
pub(crate) fn group_and_volume(name: &str) -> Option<(String, String)> {
    let mut parts = vec![String::new()];
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '-' if letters.peek() == Some(&'-') => {
                letters.next();
                parts.last_mut()?.push('-');
            }
            '-' => parts.push(String::new()),
            other => parts.last_mut()?.push(other),
        }
    }
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next()) {
        (Some(group), Some(volume)) if !group.is_empty() && !volume.is_empty() => {
            Some((group, volume))
        }
        _ => None,
    }
}

/// Returns the kind of a device by its kernel name, for devices not from the device mapper, partitions or RAID.
pub(crate) fn of_name(name: &str) -> BlockKind {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    if numbered("loop") {
        BlockKind::Loop
    } else if numbered("sr") {
        BlockKind::Cdrom
    } else if numbered("zd") {
        BlockKind::Zvol
    } else if numbered("rbd") {
        BlockKind::Rbd
    } else if numbered("nbd") {
        BlockKind::Nbd
    } else if numbered("drbd") {
        BlockKind::Drbd
    } else if numbered("bcache") {
        BlockKind::Bcache
    } else if numbered("zram") {
        BlockKind::Zram
    } else if numbered("ram") {
        BlockKind::Ram
    } else if name.starts_with("nvme") {
        BlockKind::Nvme
    } else {
        BlockKind::Disk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: &str = "LVM-abcdefghijklmnopqrstuvwxyz012345ABCDEFGHIJKLMNOPQRSTUVWXYZ678901";

    #[test]
    fn the_kind_of_an_lvm_volume_follows_from_its_layers() {
        let kind = |suffix: &str, name: &str, below: &[LayerBelow]| {
            of_mapper(&format!("{VOLUME}{suffix}"), name, below)
        };
        assert_eq!(kind("", "vg-lv", &[LayerBelow::Other]), BlockKind::Lvm);
        assert_eq!(
            kind("", "vg-lv", &[LayerBelow::ThinPool]),
            BlockKind::LvmThin
        );
        assert_eq!(
            kind("", "vg-lv", &[LayerBelow::SnapshotOrigin]),
            BlockKind::LvmOrigin
        );
        assert_eq!(
            kind(
                "",
                "vg-lv",
                &[LayerBelow::SnapshotOrigin, LayerBelow::SnapshotStore]
            ),
            BlockKind::LvmSnapshot
        );
        assert_eq!(kind("-tpool", "vg-pool-tpool", &[]), BlockKind::LvmThinPool);
        assert_eq!(
            kind("-pool", "vg-pool", &[LayerBelow::ThinPool]),
            BlockKind::LvmThinPool
        );
        assert_eq!(kind("-tdata", "vg-pool_tdata", &[]), BlockKind::LvmThinData);
        assert_eq!(kind("-real", "vg-lv-real", &[]), BlockKind::LvmPart);
        assert_eq!(kind("", "vg-lv_rimage_0", &[]), BlockKind::LvmPart);
        assert_eq!(kind("", "vg-my_disk_0", &[]), BlockKind::Lvm);
        assert_eq!(
            LayerBelow::of_uuid(&format!("{VOLUME}-tpool")),
            LayerBelow::ThinPool
        );
        assert_eq!(LayerBelow::of_uuid("LVM-short"), LayerBelow::Other);
    }

    #[test]
    fn other_creators_are_recognized_by_the_uuid() {
        let kind = |uuid| of_mapper(uuid, "x", &[]);
        assert_eq!(kind("CRYPT-LUKS2-0123-c1"), BlockKind::CryptLuks2);
        assert_eq!(kind("CRYPT-PLAIN-c1"), BlockKind::Crypt);
        assert_eq!(kind("mpath-3600"), BlockKind::Multipath);
        assert_eq!(kind("part1-mpath-3600"), BlockKind::MultipathPartition);
        assert_eq!(kind("party-mpath-3600"), BlockKind::DeviceMapper);
        assert_eq!(kind(""), BlockKind::DeviceMapper);
    }

    #[test]
    fn dashes_in_lvm_names_are_doubled() {
        let names = |group: &str, volume: &str| Some((group.to_owned(), volume.to_owned()));
        assert_eq!(group_and_volume("vg-lv"), names("vg", "lv"));
        assert_eq!(group_and_volume("my--vg-my--lv"), names("my-vg", "my-lv"));
        assert_eq!(group_and_volume("vg-pool-tpool"), names("vg", "pool"));
        assert_eq!(group_and_volume("vg-a-----b"), names("vg", "a--"));
        assert_eq!(group_and_volume("plain"), None);
    }

    #[test]
    fn the_kernel_name_identifies_the_driver() {
        assert_eq!(of_name("loop12"), BlockKind::Loop);
        assert_eq!(of_name("nvme0n1"), BlockKind::Nvme);
        assert_eq!(of_name("zd16"), BlockKind::Zvol);
        assert_eq!(of_name("sda"), BlockKind::Disk);
        assert_eq!(of_name("vda"), BlockKind::Disk);
        assert_eq!(of_name("sram"), BlockKind::Disk);
    }
}
