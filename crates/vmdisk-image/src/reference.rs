//! Names in a header, classified by their syntax; nothing is followed.

use crate::bytes::until_nul;
use crate::name::Name;

/// A reference to another file in an image: a backing file, a data file, an extent, a parent.
///
/// Classified like in QEMU (`path_has_protocol`, `path_is_absolute`): a colon before the first slash makes a protocol,
/// so that QEMU does not consider `a:b` a local file either.
///
/// ```
/// use vmdisk_image::BackingReference;
///
/// assert!(matches!(BackingReference::from_bytes(b"base.img"), BackingReference::Relative(_)));
/// assert!(matches!(BackingReference::from_bytes(b"/srv/a:b.img"), BackingReference::Absolute(_)));
/// assert!(matches!(BackingReference::from_bytes(b"json:{\"driver\":\"qcow2\"}"), BackingReference::Json(_)));
/// let remote = BackingReference::from_bytes(b"nbd+tcp://example.org:6000/blah");
/// assert!(matches!(&remote, BackingReference::Protocol { scheme, .. } if scheme.as_bytes() == b"nbd+tcp"));
/// assert_eq!(remote.name().as_bytes(), b"nbd+tcp://example.org:6000/blah");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackingReference {
    /// A path without a leading `/`, relative to the directory of the referencing image.
    Relative(Name),
    /// A path with a leading `/`.
    Absolute(Name),
    /// `json:` with a QEMU block device tree, which can name any file, host or driver.
    Json(Name),
    /// A name with a colon before its first slash: `nbd://…`, `http://…`, `file:…`, `fat:…`.
    Protocol {
        /// The part before the colon.
        scheme: Name,
        /// The whole name, including the scheme.
        name: Name,
    },
}

impl BackingReference {
    /// Classifies a name.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let name = Name::from(bytes);
        if bytes.starts_with(b"json:") {
            return Self::Json(name);
        }
        match bytes.iter().position(|byte| matches!(byte, b':' | b'/')) {
            Some(at) if bytes[at] == b':' => Self::Protocol {
                scheme: Name::from(&bytes[..at]),
                name,
            },
            Some(0) => Self::Absolute(name),
            Some(_) | None => Self::Relative(name),
        }
    }

    /// Classifies the name before the first NUL, as QEMU opens it; `None` if there is none.
    pub(crate) fn until_nul(bytes: &[u8]) -> Option<Self> {
        let name = until_nul(bytes);
        (!name.is_empty()).then(|| Self::from_bytes(name))
    }

    /// Returns the whole name, unchanged.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Self::Relative(name)
            | Self::Absolute(name)
            | Self::Json(name)
            | Self::Protocol { scheme: _, name } => name,
        }
    }
}

impl std::fmt::Display for BackingReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.name().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_counts_only_before_the_first_slash() {
        assert!(matches!(
            BackingReference::from_bytes(b"dir/a:b"),
            BackingReference::Relative(_)
        ));
        assert!(matches!(
            BackingReference::from_bytes(b"a:b/c"),
            BackingReference::Protocol { .. }
        ));
        assert!(matches!(
            BackingReference::from_bytes(b":"),
            BackingReference::Protocol { .. }
        ));
        assert!(matches!(
            BackingReference::from_bytes(b""),
            BackingReference::Relative(_)
        ));
        assert!(matches!(
            BackingReference::from_bytes(b"JSON:{}"),
            BackingReference::Protocol { .. }
        ));
    }
}
