//! The values of a field that libvirt, QEMU and specs accept: a column of its row.

use vmdisk_model::FieldValue;

/// What 0 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// A number like others.
    Number,
    /// Nothing: the field is not set.
    Unset,
    /// Nothing for libvirt, which passes no value on; QEMU itself refuses it.
    UnsetForLibvirt,
}

/// The characters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// What libvirt takes for safe in a serial number.
    Safe,
    /// Printable characters of ASCII.
    Printable,
}

impl Letters {
    /// The characters as a class of a regular expression.
    pub const fn class(self) -> &'static str {
        match self {
            Letters::Safe => "[-a-zA-Z0-9_.+ ]",
            Letters::Printable => "[ -~]",
        }
    }

    /// What is wrong with a character.
    fn refusal(self, letter: char) -> Option<String> {
        match self {
            Letters::Safe => {
                let is_safe = letter.is_ascii_alphanumeric() || " -_.+".contains(letter);
                (!is_safe).then(|| format!("{letter:?} is not allowed"))
            }
            Letters::Printable => (!(' '..='~').contains(&letter))
                .then(|| "only printable characters are allowed".to_owned()),
        }
    }
}

/// The values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLimits {
    /// Whatever its kind has.
    Any,
    /// Numbers in a range. libvirt does not look at them, and QEMU refuses others.
    Number {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
        /// True if it is a power of two.
        is_power_of_two: bool,
        /// What 0 says.
        zero: Zero,
    },
    /// Texts. libvirt refuses others, and QEMU takes any.
    Text {
        /// The most characters.
        most: usize,
        /// The characters.
        letters: Letters,
    },
    /// World wide names: 16 hexadecimal digits. libvirt refuses others.
    Wwn,
}

impl ValueLimits {
    /// The numbers of a range.
    pub(crate) const fn numbers(least: u32, most: u32, zero: Zero) -> Self {
        ValueLimits::Number {
            least,
            most,
            is_power_of_two: false,
            zero,
        }
    }

    /// The powers of two of a range.
    pub(crate) const fn powers(least: u32, most: u32, zero: Zero) -> Self {
        ValueLimits::Number {
            least,
            most,
            is_power_of_two: true,
            zero,
        }
    }

    /// The numbers, as the object of a sentence: `a power of two from 4 to 1024`.
    pub fn expected(&self) -> String {
        match *self {
            ValueLimits::Any => "any value".to_owned(),
            ValueLimits::Number {
                least,
                most: u32::MAX,
                ..
            } => format!("{least} or more"),
            ValueLimits::Number {
                least,
                most,
                is_power_of_two,
                ..
            } => {
                let what = if is_power_of_two {
                    "a power of two from "
                } else {
                    ""
                };
                format!("{what}{least} to {most}")
            }
            ValueLimits::Text { most, .. } => format!("at most {most} characters"),
            ValueLimits::Wwn => "16 hexadecimal digits".to_owned(),
        }
    }

    /// What 0 says.
    pub const fn zero(&self) -> Zero {
        match self {
            ValueLimits::Number { zero, .. } => *zero,
            _ => Zero::Number,
        }
    }

    /// Why a value is refused where libvirt may be in between; `None` if it is accepted, or says that nothing is set.
    ///
    /// ```
    /// use vmdisk_fields::disk;
    /// use vmdisk_model::{DiskField, FieldValue};
    ///
    /// let sizes = disk(DiskField::QueueSize).values;
    /// assert_eq!(sizes.refusal(&FieldValue::Number(256)), None);
    /// assert_eq!(sizes.refusal(&FieldValue::Number(0)), None);
    /// assert_eq!(sizes.refusal(&FieldValue::Number(3)).unwrap(), "expected a power of two from 4 to 1024, found 3");
    /// ```
    pub fn refusal(&self, value: &FieldValue) -> Option<String> {
        match (*self, value) {
            (ValueLimits::Any, _) => None,
            (ValueLimits::Number { zero, .. }, _) => {
                let number = match value {
                    FieldValue::Number(number) => u64::from(*number),
                    FieldValue::Count(count) => *count,
                    FieldValue::Size(size) => size.0,
                    _ => return None,
                };
                let is_unset = number == 0 && zero != Zero::Number;
                let is_fit = is_unset || self.has(number);
                (!is_fit).then(|| format!("expected {}, found {number}", self.expected()))
            }
            (ValueLimits::Text { most, letters }, FieldValue::Text(text)) => {
                let count = text.chars().count();
                if count > most {
                    return Some(format!("{count} characters; at most {most} are allowed"));
                }
                text.chars().find_map(|letter| letters.refusal(letter))
            }
            (ValueLimits::Wwn, FieldValue::Text(text)) => {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                let is_fit =
                    digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                (!is_fit).then(|| format!("expected {}", self.expected()))
            }
            (ValueLimits::Text { .. } | ValueLimits::Wwn, _) => None,
        }
    }

    /// True for a number of the range.
    pub fn has(&self, number: u64) -> bool {
        match *self {
            ValueLimits::Number {
                least,
                most,
                is_power_of_two,
                ..
            } => {
                (u64::from(least)..=most.into()).contains(&number)
                    && (!is_power_of_two || number.is_power_of_two())
            }
            _ => true,
        }
    }

    /// True if QEMU refuses what [`ValueLimits::refusal`] refuses, and not libvirt alone, which counts a boot order from 1.
    pub const fn are_of_qemu(&self) -> bool {
        !matches!(self.zero(), Zero::Number)
    }

    /// The pattern of a text, as a regular expression.
    pub fn pattern(&self) -> Option<String> {
        match self {
            ValueLimits::Text { most, letters } => {
                let count = match *most {
                    usize::MAX => "+".to_owned(),
                    most => format!("{{1,{most}}}"),
                };
                Some(format!("^{}{count}$", letters.class()))
            }
            ValueLimits::Wwn => Some("^(0x)?[0-9a-fA-F]{16}$".to_owned()),
            ValueLimits::Any | ValueLimits::Number { .. } => None,
        }
    }
}
