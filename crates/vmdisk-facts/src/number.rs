//! Numbers with a notation of their own: a device's, and a percentage.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::as_text::as_text;

/// A device's number, as `"253:5"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver's number; 0 for filesystems without a device of their own.
    pub major: u32,
    /// The driver's device.
    pub minor: u32,
}

impl DeviceNumber {
    /// Reads `253:5`; `None` when it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim_end().split_once(':')?;
        // `parse` alone would let a sign through.
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if !digits(major) || !digits(minor) {
            return None;
        }
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

as_text!(DeviceNumber, "a device number", "253:5");

/// A percentage in hundredths, so that it can be compared; written as a number (`87.5`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(pub u32);

impl Percent {
    /// Reads what LVM prints (`87.53`); `None` when it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok().and_then(Self::from_float)
    }

    fn from_float(value: f64) -> Option<Self> {
        // Far more than 100 is nonsense, and the bound makes the cast below exact.
        (0.0..=1_000_000.0)
            .contains(&value)
            .then(|| Self((value * 100.0).round() as u32))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, hundredths) = (self.0 / 100, self.0 % 100);
        if hundredths == 0 {
            write!(f, "{whole} %")
        } else {
            write!(f, "{whole}.{hundredths:02} %")
        }
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::from_float(value)
            .ok_or_else(|| D::Error::custom(format_args!("{value} is not a percentage")))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "a percentage", "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_is_two_numbers() {
        assert_eq!(
            DeviceNumber::parse("253:5\n"),
            Some(DeviceNumber {
                major: 253,
                minor: 5
            })
        );
        for bad in ["", ":", "253", "253:", "+1:2", "a:b", "99999999999:1"] {
            assert_eq!(DeviceNumber::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_percentage_keeps_two_digits() {
        let percent = Percent::parse("87.53").unwrap();
        assert_eq!(percent, Percent(8753));
        assert_eq!(serde_json::to_string(&percent).unwrap(), "87.53");
        assert_eq!(percent.to_string(), "87.53 %");
        assert!(serde_json::from_str::<Percent>("-1").is_err());
        assert!(serde_json::from_str::<Percent>("1e300").is_err());
    }
}
