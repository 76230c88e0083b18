//! `/proc/self/mountinfo`: the mount of a path.

use std::collections::HashMap;
use std::path::Path;

use vmdisk_facts::DeviceNumber;
use vmdisk_facts::mount::unescaped;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// The STATX_MNT_ID of statx(2); it differs from the unique id of later kernels.
    pub(crate) id: u64,
    pub(crate) device: DeviceNumber,
    /// The directory of the filesystem that is mounted.
    pub(crate) root: String,
    pub(crate) point: String,
    /// Options of the mount, then of the filesystem.
    pub(crate) options: Vec<(String, Option<String>)>,
    pub(crate) fstype: String,
    pub(crate) source: String,
}

impl MountLine {
    /// Returns true if accesses depend on a server or a program, and can hang.
    pub(crate) fn can_hang(&self) -> bool {
        let local = [
            "btrfs", "tmpfs", "ramfs", "devtmpfs", "overlay", "zfs", "bcachefs",
        ];
        self.device.major == 0 && !local.contains(&self.fstype.as_str())
    }
}

/// All mounts in the kernel's order: a mount follows the mount it covers.
#[derive(Clone, Debug, Default)]
pub(crate) struct MountTable {
    pub(crate) lines: Vec<MountLine>,
    by_id: HashMap<u64, usize>,
}

impl MountTable {
    /// Parses the table; invalid lines are skipped and returned.
    pub(crate) fn parse(text: &str) -> (Self, Vec<String>) {
        let mut table = Self::default();
        let mut rejected = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match parse_line(line) {
                Some(mount) => {
                    table.by_id.insert(mount.id, table.lines.len());
                    table.lines.push(mount);
                }
                None => rejected.push(line.to_owned()),
            }
        }
        (table, rejected)
    }

    /// Returns the index of the mount with an id.
    pub(crate) fn by_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Returns the index of the mount of a path without links: the nearest mount point, and the last mount on it.
    pub(crate) fn covering(&self, path: &Path) -> Option<usize> {
        let covers = |mount: &MountLine| path.starts_with(&mount.point);
        let depth = |mount: &MountLine| Path::new(&mount.point).components().count();
        // `max_by_key` returns the last of equal elements, which is the topmost mount.
        let covering = self
            .lines
            .iter()
            .enumerate()
            .filter(|(_, mount)| covers(mount));
        covering
            .max_by_key(|(_, mount)| depth(mount))
            .map(|(place, _)| place)
    }
}

fn parse_line(line: &str) -> Option<MountLine> {
    // Any number of optional fields is between the sixth field and the dash.
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ');
    let id = head.next()?.parse().ok()?;
    let _parent: u64 = head.next()?.parse().ok()?;
    let device = DeviceNumber::parse(head.next()?)?;
    let root = unescaped(head.next()?);
    let point = unescaped(head.next()?);
    let mut options = split_options(head.next()?);
    let mut tail = tail.split(' ');
    let fstype = unescaped(tail.next()?);
    let source = unescaped(tail.next()?);
    // Some filesystems have no options.
    options.extend(split_options(tail.next().unwrap_or_default()));
    Some(MountLine {
        id,
        device,
        root,
        point,
        options,
        fstype,
        source,
    })
}

fn split_options(text: &str) -> Vec<(String, Option<String>)> {
    text.split(',')
        .filter(|option| !option.is_empty())
        .map(|option| match option.split_once('=') {
            Some((name, value)) => (unescaped(name), Some(unescaped(value))),
            None => (unescaped(option), None),
        })
        .collect()
}

/// Checks invariants for any bytes; names are chosen by users.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_invariants(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (table, rejected) = MountTable::parse(&text);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(table.lines.len() + rejected.len(), lines, "{text:?}");
    let mut length = 0;
    for (place, line) in table.lines.iter().enumerate() {
        let MountLine {
            id,
            device: _,
            root,
            point,
            options,
            fstype,
            source,
        } = line;
        assert!(table.by_id(*id).is_some_and(|found| found >= place));
        let covering = table.covering(Path::new(point));
        let is_absolute = point.starts_with('/');
        assert!(!is_absolute || covering.is_some_and(|found| found < table.lines.len()));
        let _ = line.can_hang();
        let words = [root, point, fstype, source].map(String::len);
        length += words.iter().sum::<usize>();
        for (name, value) in options {
            length += name.len() + value.as_ref().map_or(0, String::len);
        }
    }
    // An escape of four characters becomes a byte, and an invalid byte becomes three.
    assert!(length <= text.len(), "{text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
60 22 0:44 / /srv/img rw,relatime shared:5 master:2 - btrfs /dev/loop1 rw,compress=zstd:3,subvolid=5,subvol=/
61 22 7:2 /u /srv/sp\\040ace\\134tab\\011x rw - ext4 /dev/loop2 rw
70 22 0:44 /sv1 /srv/bind rw - btrfs /dev/loop1 rw
71 70 7:3 / /srv/bind ro - ext4 /dev/loop3 rw
80 22 0:50 / /mnt rw - tmpfs none
broken line
81 x 0:50 / /x rw - tmpfs none rw
";

    fn table() -> MountTable {
        let (table, rejected) = MountTable::parse(TABLE);
        assert_eq!(
            rejected,
            ["broken line", "81 x 0:50 / /x rw - tmpfs none rw"]
        );
        table
    }

    #[test]
    fn optional_fields_and_missing_options_are_skipped() {
        let table = table();
        let btrfs = &table.lines[1];
        assert_eq!(
            (btrfs.id, btrfs.fstype.as_str(), btrfs.source.as_str()),
            (60, "btrfs", "/dev/loop1")
        );
        assert!(
            btrfs
                .options
                .contains(&("compress".to_owned(), Some("zstd:3".to_owned())))
        );
        assert_eq!(table.lines[5].options, [("rw".to_owned(), None)]);
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(table().lines[2].point, "/srv/sp ace\\tab\tx");
        assert_eq!(table().lines[2].root, "/u");
    }

    #[test]
    fn a_path_is_covered_by_the_nearest_and_topmost_mount() {
        let table = table();
        let point = |path: &str| {
            table
                .covering(Path::new(path))
                .map(|place| table.lines[place].id)
        };
        assert_eq!(point("/srv/img/a.raw"), Some(60));
        assert_eq!(
            point("/srv/image"),
            Some(22),
            "a common prefix is not a common directory"
        );
        assert_eq!(
            point("/srv/bind/x"),
            Some(71),
            "the later of two mounts covers the earlier"
        );
        assert_eq!(point("/"), Some(22));
        assert_eq!(point("relative"), None);
    }

    #[test]
    fn an_id_identifies_its_line() {
        let table = table();
        assert_eq!(
            table
                .by_id(70)
                .map(|place| table.lines[place].root.as_str()),
            Some("/sv1")
        );
        assert_eq!(table.by_id(2_147_483_730), None);
    }

    #[test]
    fn recorded_and_invalid_tables_are_read_to_the_end() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fuzz/mountinfo");
        let mut files: Vec<_> = std::fs::read_dir(corpus)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(files.len() >= 6, "{files:?}");
        // The mutations are the same in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        };
        const LIKELY: &[u8] = b" \\/:,=-\n01234567\xff\xc3";
        for file in files {
            let whole = std::fs::read(&file).unwrap();
            check_invariants(&whole);
            for _ in 0..500 {
                let mut changed = whole.clone();
                for _ in 0..=next(4) {
                    let (at, byte) = (next(changed.len() + 1), LIKELY[next(LIKELY.len())]);
                    match next(3) {
                        0 => changed.insert(at, byte),
                        1 if at < changed.len() => changed[at] = byte,
                        _ => changed.truncate(at.max(changed.len() / 2)),
                    }
                }
                check_invariants(&changed);
            }
        }
    }
}
