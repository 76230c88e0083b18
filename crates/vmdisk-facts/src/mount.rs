//! Mounts: which filesystem a path shows, with which options.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Reason};
use crate::record::facts;

facts! {
    /// One mount, from a line of `/proc/self/mountinfo`.
    pub struct Mount {
        /// Its local id (`m1`).
        pub id: String,
        /// Where it is mounted.
        pub point: String,
        /// The kernel's name of the filesystem (`ext4`, `fuse.sshfs`).
        pub fstype: Fact<String>,
        /// The mounted device or export, as the mounter wrote it (`/dev/vda1`, `server:/export`).
        pub source: Fact<String>,
        /// The id of the filesystem it shows.
        pub fs: Fact<String>,
        /// Options, of the mount and of the filesystem together. `true` is an option without a value, null an
        /// option that is not set, and a missing key an option that was not collected.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub options: BTreeMap<String, Fact<OptionValue>>,
    }
}

impl Mount {
    /// One option: its value, absent when it is not set, or why that is not known.
    pub fn option(&self, name: &str) -> Fact<&OptionValue> {
        match self.options.get(name) {
            // `"ro": false` is how a person writes that it is not set.
            Some(Fact::Known(OptionValue::Flag(false))) => Fact::Absent,
            Some(fact) => fact.as_ref(),
            None => Fact::NotCollected,
        }
    }

    /// Whether an option is set, whatever its value.
    pub fn has_option(&self, name: &str) -> Fact<bool> {
        match self.option(name) {
            Fact::Known(_) => Fact::Known(true),
            Fact::Absent => Fact::Known(false),
            Fact::Unknown(unknown) => Fact::Unknown(unknown),
            Fact::NotCollected => Fact::NotCollected,
        }
    }

    /// Whether the file system does not tell the drive to empty its write cache (`nobarrier`, `barrier=0`).
    pub fn drops_flushes(&self) -> Fact<bool> {
        let barrier = self.option("barrier");
        let is_off = |value: &&OptionValue| value.is_text("0") || value.is_text("none");
        if barrier.value().is_some_and(is_off) {
            return Fact::Known(true);
        }
        self.has_option("nobarrier")
    }

    /// True for an overlay that ignores fsync(2): `volatile`, which newer kernels print as `fsync=volatile`.
    pub fn drops_fsync(&self) -> bool {
        let fsync = self.option("fsync");
        self.has_option("volatile").is_true()
            || fsync.value().is_some_and(|value| value.is_text("volatile"))
    }

    /// Whether it is mounted read-only.
    pub fn read_only(&self) -> Fact<bool> {
        match (self.has_option("ro"), self.has_option("rw")) {
            (Fact::Known(ro), Fact::Known(rw)) if ro == rw => Fact::unknown(
                Reason::Conflict,
                format!("{}: neither or both of ro and rw", self.point),
            ),
            (Fact::Known(ro), _) => Fact::Known(ro),
            (_, Fact::Known(rw)) => Fact::Known(!rw),
            (ro, _) => ro,
        }
    }
}

/// The value of a mount option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected true, false, a number or text")]
pub enum OptionValue {
    /// An option without a value that is set (`true`) or not (`false`).
    Flag(bool),
    /// A number a person wrote without quotes.
    Number(i64),
    /// The text after `=`.
    Text(String),
}

impl OptionValue {
    /// Whether the option's value is this text.
    pub fn is_text(&self, text: &str) -> bool {
        match self {
            Self::Text(value) => value == text,
            Self::Number(value) => value.to_string() == text,
            Self::Flag(_) => false,
        }
    }

    /// The text, when it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            Self::Flag(_) | Self::Number(_) => None,
        }
    }
}

/// Replaces the kernel's escapes for spaces, tabs, line ends and backslashes in a field of `/proc` (`\040`, `\011`,
/// `\012`, `\134`), as in `mountinfo` and `swaps`; bytes that are not UTF-8 afterwards are replaced.
///
/// ```
/// assert_eq!(vmdisk_facts::mount::unescaped("/srv/a\\040b"), "/srv/a b");
/// ```
pub fn unescaped(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match (first, after) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(options: &[(&str, OptionValue)]) -> Mount {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Fact::Known(value.clone())));
        Mount {
            options: options.collect(),
            ..Mount::default()
        }
    }

    #[test]
    fn a_mount_drops_flushes_without_barriers() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        for (options, expected) in [
            (&[("barrier", text("0"))][..], Some(true)),
            (&[("barrier", text("none"))], Some(true)),
            (&[("barrier", text("1"))], None),
            (&[("nobarrier", OptionValue::Flag(true))], Some(true)),
            (&[("nobarrier", OptionValue::Flag(false))], Some(false)),
        ] {
            assert_eq!(
                mount(options).drops_flushes().known(),
                expected,
                "{options:?}"
            );
        }
    }

    #[test]
    fn a_mount_is_read_only_if_its_options_agree() {
        let with = |options: &[(&'static str, bool)]| {
            let flag = |(name, is_set): &(&'static str, bool)| (*name, OptionValue::Flag(*is_set));
            let options: Vec<_> = options.iter().map(flag).collect();
            mount(&options).read_only().known()
        };
        for (options, expected) in [
            (&[("ro", true), ("rw", false)][..], Some(true)),
            (&[("ro", false), ("rw", true)], Some(false)),
            (&[("ro", true)], Some(true)),
            (&[("rw", true)], Some(false)),
            (&[("ro", true), ("rw", true)], None),
            (&[("ro", false), ("rw", false)], None),
            (&[], None),
        ] {
            assert_eq!(with(options), expected, "{options:?}");
        }
    }

    #[test]
    fn escapes_of_the_kernel_are_undone_and_other_backslashes_stay() {
        assert_eq!(
            unescaped("/srv/sp\\040ace\\011tab\\012end\\134x"),
            "/srv/sp ace\ttab\nend\\x"
        );
        assert_eq!(unescaped("a\\9x\\04"), "a\\9x\\04");
        assert_eq!(unescaped("\\303\\251"), "é");
        assert_eq!(unescaped("\\303"), "\u{fffd}");
    }
}
