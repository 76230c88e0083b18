//! Checks and parses values.

use vmdisk_model::{Bytes, Format};
use vmdisk_source::nearest;

use crate::vocabulary::ValueSpec;

/// A mistake in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueFault {
    /// The expected values, as the end of a sentence.
    pub(crate) expected: String,
    /// The only plausible intended word.
    pub(crate) meant: Option<&'static str>,
    /// A possibly intended word.
    pub(crate) perhaps: Option<&'static str>,
}

impl ValueSpec {
    /// Checks a value.
    pub(crate) fn check(self, text: &str) -> Result<(), ValueFault> {
        let fault = |expected: &str| {
            Err(ValueFault {
                expected: expected.to_owned(),
                meant: None,
                perhaps: None,
            })
        };
        match self {
            ValueSpec::Text => Ok(()),
            ValueSpec::Words(words) => check_words(text, words, &[]),
            ValueSpec::WordsAnd(words, others) => check_words(text, words, others),
            ValueSpec::Unsigned32 if unsigned32(text).is_none() => {
                fault("expected a number from 0 to 4294967295")
            }
            ValueSpec::Positive32 if unsigned32(text).is_none_or(|number| number == 0) => {
                fault("expected a number from 1 to 4294967295")
            }
            ValueSpec::Port if unsigned32(text).is_none_or(|port| port > 0xffff) => {
                fault("expected a number from 0 to 65535")
            }
            ValueSpec::PoolPort if text.trim_start().parse::<i32>().is_err() => {
                fault("expected a number from 0 to 65535")
            }
            ValueSpec::Unsigned64 if unsigned64(text).is_none() => {
                fault("expected a number from 0 to 18446744073709551615")
            }
            ValueSpec::AnyBase if any_base(text).is_none() => {
                fault("expected a number from 0 to 0xffffffff")
            }
            ValueSpec::Uuid if !is_uuid(text) => fault("expected a UUID of 32 digits of base 16"),
            _ => Ok(()),
        }
    }
}

fn check_words(
    text: &str,
    words: &'static [&'static str],
    others: &'static [&'static str],
) -> Result<(), ValueFault> {
    if words.contains(&text) || others.contains(&text) {
        return Ok(());
    }
    let all = || words.iter().chain(others).copied();
    let mut expected = String::from(match words.len() + others.len() {
        1 => "expected ",
        _ => "expected one of ",
    });
    for (at, word) in all().enumerate() {
        if at == MAX_WORDS {
            expected.push_str(", …");
            break;
        }
        if at > 0 {
            expected.push_str(", ");
        }
        expected.push('`');
        expected.push_str(word);
        expected.push('`');
    }
    // `img` is one letter from `dmg`, and `qcow3` contains `qcow`.
    let format = Format::of_common_word(text).map(Format::as_str);
    let format = format.filter(|_| words == Format::WORDS);
    if format.is_some() {
        return Err(ValueFault {
            expected,
            meant: None,
            perhaps: format,
        });
    }
    let mut containing = all().filter(|word| {
        let (shorter, longer) = if text.len() < word.len() {
            (text, *word)
        } else {
            (*word, text)
        };
        shorter.len() >= 4 && longer.contains(shorter)
    });
    let perhaps = containing.next().filter(|_| containing.next().is_none());
    // The bus is `scsi`; virtio-scsi is a model of its controller.
    let scsi = || words.iter().copied().find(|word| *word == "scsi");
    let perhaps = perhaps.or_else(|| (text == "virtio-scsi").then(scsi).flatten());
    Err(ValueFault {
        expected,
        meant: nearest(text, all()).or_else(|| synonym(text, words)),
        perhaps,
    })
}

/// The maximum number of words that an error lists.
const MAX_WORDS: usize = 20;

/// QEMU's words for values that libvirt calls differently: a word that only this list has, the word, and libvirt's.
const QEMU_WORDS: &[(&str, &str, &str)] = &[
    ("directsync", "off", "none"),
    ("unmap", "on", "unmap"),
    ("unmap", "off", "ignore"),
    ("lun", "cd", "cdrom"),
    ("lun", "hd", "disk"),
];

/// Common spellings of a switch and QEMU's words, mapped to the words of the list.
fn synonym(text: &str, words: &'static [&'static str]) -> Option<&'static str> {
    let of_qemu = QEMU_WORDS.iter().find(|(owner, theirs, meant)| {
        *theirs == text && words.contains(owner) && words.contains(meant)
    });
    if let Some((_, _, meant)) = of_qemu {
        return Some(meant);
    }
    let meant = match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "on" | "enable" | "enabled" => ["on", "yes"],
        "no" | "false" | "0" | "off" | "disable" | "disabled" => ["off", "no"],
        _ => return None,
    };
    words.iter().find(|word| meant.contains(word)).copied()
}

/// The prefix that C's `strtoul` skips before a number, as libvirt does; text after the number is refused.
fn skip_space_and_plus(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    text.strip_prefix('+').unwrap_or(text)
}

fn unsigned(text: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` would accept another sign.
    if text.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(text, radix).ok()
}

/// True for the forms that libvirt's `virUUIDParse` accepts: 16 bytes of two digits, with dashes and blanks between
/// bytes.
fn is_uuid(text: &str) -> bool {
    let mut digits = 0;
    for character in text.trim().chars() {
        match character {
            '-' | ' ' if digits % 2 == 0 => {}
            _ if character.is_ascii_hexdigit() => digits += 1,
            _ => return false,
        }
    }
    digits == 32
}

/// A decimal number, as libvirt reads it.
pub(crate) fn unsigned64(text: &str) -> Option<u64> {
    unsigned(skip_space_and_plus(text), 10)
}

/// A decimal number, as libvirt reads it.
pub(crate) fn unsigned32(text: &str) -> Option<u32> {
    unsigned64(text)?.try_into().ok()
}

/// The largest number of a part of a PCI address.
pub(crate) fn pci_max(name: &str) -> u32 {
    match name {
        "domain" => 0xffff,
        "bus" => 0xff,
        "slot" => 0x1f,
        _ => 7,
    }
}

/// A number in base 10, 16 (`0x`) or 8 (`0`), as libvirt reads PCI addresses.
pub(crate) fn any_base(text: &str) -> Option<u32> {
    let text = skip_space_and_plus(text);
    let value = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        unsigned(hex, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        unsigned(&text[1..], 8)
    } else {
        unsigned(text, 10)
    };
    value?.try_into().ok()
}

/// A number with a unit; `None` if the number or the unit is invalid, or the product is too large.
pub(crate) fn scaled(number: &str, unit: &str) -> Option<Bytes> {
    let scale = Bytes::scale(unit).ok()?;
    unsigned64(number)?.checked_mul(scale).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_libvirt_reads_them() {
        for (text, number) in [
            ("4", Some(4)),
            (" 4", Some(4)),
            ("+4", Some(4)),
            ("4 ", None),
            ("-4", None),
            ("+-4", None),
            ("", None),
            ("0x4", None),
            ("4294967296", None),
            ("４", None),
        ] {
            assert_eq!(unsigned32(text), number, "{text}");
        }
        for (text, number) in [
            ("0x1F", Some(31)),
            ("017", Some(15)),
            ("08", None),
            ("0", Some(0)),
            ("10", Some(10)),
            ("0x", None),
        ] {
            assert_eq!(any_base(text), number, "{text}");
        }
    }

    #[test]
    fn a_size_is_its_number_times_its_unit() {
        assert_eq!(scaled("2", "MiB"), Some(Bytes(2 << 20)));
        assert_eq!(scaled("2", "KB"), Some(Bytes(2000)));
        assert_eq!(scaled("2", "furlongs"), None);
        assert_eq!(scaled("18446744073709551615", "KiB"), None);
    }

    #[test]
    fn a_wrong_word_is_told_what_was_expected_and_what_was_meant() {
        let fault = ValueSpec::Words(&["none", "writeback"])
            .check("writebak")
            .unwrap_err();
        assert_eq!(fault.expected, "expected one of `none`, `writeback`");
        assert_eq!(fault.meant, Some("writeback"));
        let meant = |value: ValueSpec, text| value.check(text).unwrap_err().meant;
        let switch = ValueSpec::Words(&["on", "off"]);
        assert_eq!(meant(switch, "yes"), Some("on"));
        assert_eq!(meant(switch, "FALSE"), Some("off"));
        assert_eq!(meant(ValueSpec::Words(&["yes", "no"]), "on"), Some("yes"));
        let modes = ValueSpec::Words(&["threads", "native", "io_uring"]);
        let fault = modes.check("uring").unwrap_err();
        assert_eq!((fault.meant, fault.perhaps), (None, Some("io_uring")));
    }
}
