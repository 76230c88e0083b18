//! Checking and reading values.

use vmdisk_model::Bytes;

use crate::suggest::suggest;
use crate::vocabulary::Value;

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueFault {
    /// What was expected, as the end of a sentence.
    pub(crate) expected: String,
    /// The one word that was most likely meant.
    pub(crate) meant: Option<&'static str>,
}

impl Value {
    /// Checks a value.
    pub(crate) fn check(self, text: &str) -> Result<(), ValueFault> {
        let fault = |expected: &str| {
            Err(ValueFault {
                expected: expected.to_owned(),
                meant: None,
            })
        };
        match self {
            Value::Text => Ok(()),
            Value::Words(words) => check_words(text, words, &[]),
            Value::WordsAnd(words, others) => check_words(text, words, others),
            Value::Unsigned32 if unsigned32(text).is_none() => {
                fault("expected a number from 0 to 4294967295")
            }
            Value::Unsigned64 if unsigned64(text).is_none() => {
                fault("expected a number from 0 to 18446744073709551615")
            }
            Value::AnyBase if any_base(text).is_none() => {
                fault("expected a number from 0 to 0xffffffff")
            }
            Value::Unsigned32 | Value::Unsigned64 | Value::AnyBase => Ok(()),
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
    let mut expected = String::from(if words.len() + others.len() == 1 {
        "expected "
    } else {
        "expected one of "
    });
    for (at, word) in words.iter().chain(others).enumerate() {
        if at > 0 {
            expected.push_str(", ");
        }
        expected.push('`');
        expected.push_str(word);
        expected.push('`');
    }
    Err(ValueFault {
        expected,
        meant: suggest(text, words.iter().chain(others).copied()),
    })
}

/// What C's `strtoul` skips before a number; libvirt takes it, and nothing after the number.
fn skip_space_and_plus(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    text.strip_prefix('+').unwrap_or(text)
}

fn unsigned(text: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` would take a further sign.
    if text.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(text, radix).ok()
}

/// A decimal number, as libvirt reads it.
pub(crate) fn unsigned64(text: &str) -> Option<u64> {
    unsigned(skip_space_and_plus(text), 10)
}

/// A decimal number, as libvirt reads it.
pub(crate) fn unsigned32(text: &str) -> Option<u32> {
    unsigned64(text)?.try_into().ok()
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

/// A number of units; `None` if the number, the unit or the product is none.
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
        let fault = Value::Words(&["none", "writeback"])
            .check("writebak")
            .unwrap_err();
        assert_eq!(fault.expected, "expected one of `none`, `writeback`");
        assert_eq!(fault.meant, Some("writeback"));
    }
}
