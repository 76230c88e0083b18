//! A version of QEMU, libvirt, the kernel or a machine type.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Three numbers, compared in order; written as an array (`[10, 0, 2]`) in facts.
///
/// ```
/// use vmdisk_facts::Version;
/// assert!("6.12".parse::<Version>()? < Version(6, 12, 77));
/// assert_eq!(Version(10, 0, 0).to_string(), "10.0");
/// # Ok::<(), vmdisk_facts::VersionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

/// A text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a version: write one to three numbers with dots between, as in 10.0 or 6.12.77"
)]
pub struct VersionError(pub String);

impl Version {
    /// The version at the start of a longer text, such as a kernel release (`6.12.77+deb13-amd64`).
    ///
    /// `None` when the text does not start with a number.
    pub fn leading(text: &str) -> Option<Self> {
        let mut numbers = [0_u32; 3];
        let mut rest = text;
        for (place, number) in numbers.iter_mut().enumerate() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            match rest[..digits].parse() {
                Ok(value) => *number = value,
                Err(_) if place == 0 => return None,
                Err(_) => break,
            }
            match rest[digits..].strip_prefix('.') {
                Some(more) => rest = more,
                None => break,
            }
        }
        let [major, minor, micro] = numbers;
        Some(Self(major, minor, micro))
    }

    /// The first two numbers, which name a release with all its updates.
    pub const fn release(self) -> (u32, u32) {
        (self.0, self.1)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || VersionError(text.to_owned());
        let mut numbers = [0_u32; 3];
        let mut parts = text.split('.');
        for number in &mut numbers {
            match parts.next() {
                // `parse` alone would let a sign through.
                Some(part) if part.bytes().all(|b| b.is_ascii_digit()) => {
                    *number = part.parse().map_err(|_| refuse())?
                }
                Some(_) => return Err(refuse()),
                None => break,
            }
        }
        if parts.next().is_some() {
            return Err(refuse());
        }
        let [major, minor, micro] = numbers;
        Ok(Self(major, minor, micro))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, micro) = self;
        if *micro == 0 {
            write!(f, "{major}.{minor}")
        } else {
            write!(f, "{major}.{minor}.{micro}")
        }
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.0, self.1, self.2].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = Vec::<u32>::deserialize(deserializer)?;
        match numbers.as_slice() {
            [major] => Ok(Self(*major, 0, 0)),
            [major, minor] => Ok(Self(*major, *minor, 0)),
            [major, minor, micro] => Ok(Self(*major, *minor, *micro)),
            _ => Err(D::Error::custom(
                "a version is an array of one to three numbers, as in [10, 0, 2]",
            )),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "major, minor, micro",
            "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1, "maxItems": 3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_reads_back_from_its_own_text() {
        for version in [
            Version(0, 0, 0),
            Version(6, 12, 77),
            Version(10, 0, 0),
            Version(7, 3, 0),
        ] {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
    }

    #[test]
    fn text_that_is_not_a_version_is_refused() {
        for text in [
            "",
            ".",
            "6.",
            ".6",
            "6.12.77.1",
            "+6",
            "6.-1",
            "99999999999",
            "6.12-rc1",
            "six",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_kernel_release_starts_with_its_version() {
        assert_eq!(
            Version::leading("6.12.77+deb13-amd64"),
            Some(Version(6, 12, 77))
        );
        assert_eq!(
            Version::leading("5.14.0-503.el9.x86_64"),
            Some(Version(5, 14, 0))
        );
        assert_eq!(Version::leading("7.0-rc3"), Some(Version(7, 0, 0)));
        assert_eq!(Version::leading("9.0.0"), Some(Version(9, 0, 0)));
        assert_eq!(Version::leading("6"), Some(Version(6, 0, 0)));
        assert_eq!(Version::leading("v6"), None);
        assert_eq!(Version::leading("99999999999999.1"), None);
    }

    #[test]
    fn short_arrays_are_filled_with_zero_and_long_ones_refused() {
        assert_eq!(
            serde_json::from_str::<Version>("[10]").unwrap(),
            Version(10, 0, 0)
        );
        assert_eq!(
            serde_json::from_str::<Version>("[10, 2]").unwrap(),
            Version(10, 2, 0)
        );
        assert!(serde_json::from_str::<Version>("[]").is_err());
        assert!(serde_json::from_str::<Version>("[1, 2, 3, 4]").is_err());
        assert!(serde_json::from_str::<Version>("[-1]").is_err());
    }
}
