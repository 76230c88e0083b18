//! Names in headers, as unmodified bytes.

use std::fmt;

/// A file name, format name or label in an image: bytes in an unknown encoding.
///
/// The bytes are never modified. `Display` is safe: it escapes control characters and bytes that are not UTF-8,
/// so that a hostile image cannot write to a terminal.
///
/// ```
/// use vmdisk_image::Name;
///
/// let name = Name::new(*b"base\x1b[2J.img");
/// assert_eq!(name.to_string(), r"base\x1b[2J.img");
/// assert_eq!(name.as_bytes(), b"base\x1b[2J.img");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Vec<u8>);

impl Name {
    /// Creates a name from bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the unmodified bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name as text, if it is valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns true if the name is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if !character.is_control() {
                    write!(f, "{character}")?;
                } else if character.is_ascii() {
                    write!(f, "\\x{:02x}", u32::from(character))?;
                } else {
                    write!(f, "{}", character.escape_unicode())?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_escaped_and_unmodified() {
        let name = Name::new(vec![b'a', 0xff, b'\n', 0xc2, 0x9b, 0xc3, 0xa9]);
        assert_eq!(name.to_string(), "a\\xff\\x0a\\u{9b}é");
        assert_eq!(name.as_str(), None);
        assert_eq!(name.as_bytes().len(), 7);
    }
}
