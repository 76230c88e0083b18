//! Where the name of a backing or data file leads, by text alone.

/// Where the name of a backing or data file leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamedFile {
    /// A path from the root on; neither `..` nor links are resolved.
    Path(String),
    /// Another protocol than files, by the word before its colon (`nbd`, `https`).
    Protocol(String),
    /// A tree of QEMU's block devices, `json:`, which can name any file, host or driver.
    Json,
    /// A name that cannot be resolved: not UTF-8, or relative to an image that has no path.
    Unresolvable,
}

/// Returns the file that the image at `image` refers to as `name`.
///
/// QEMU's rules: a colon before the first slash ends a protocol; a relative name starts in the directory of the
/// image that contains it, under the name by which that image was opened.
///
/// ```
/// use vmdisk_facts::{NamedFile, named_file};
///
/// assert_eq!(named_file("/srv/vm/top.qcow2", "../base.img"), NamedFile::Path("/srv/vm/../base.img".to_owned()));
/// assert_eq!(named_file("/srv/vm/top.qcow2", "nbd://host/a"), NamedFile::Protocol("nbd".to_owned()));
/// ```
#[must_use]
pub fn named_file(image: &str, name: &str) -> NamedFile {
    // The collector replaces bytes that are not UTF-8.
    if name.contains('\u{fffd}') || name.is_empty() {
        return NamedFile::Unresolvable;
    }
    if name.starts_with("json:") {
        return NamedFile::Json;
    }
    if let Some(end) = name.find([':', '/'])
        && name.as_bytes()[end] == b':'
    {
        let (scheme, rest) = (&name[..end], &name[end + 1..]);
        return match scheme {
            // A relative one is relative to the working directory of QEMU.
            "file" if rest.starts_with('/') => NamedFile::Path(rest.to_owned()),
            "file" => NamedFile::Unresolvable,
            _ => NamedFile::Protocol(scheme.to_owned()),
        };
    }
    if name.starts_with('/') {
        return NamedFile::Path(name.to_owned());
    }
    match image.rfind('/') {
        Some(slash) if image.starts_with('/') => {
            NamedFile::Path(format!("{}/{name}", &image[..slash]))
        }
        Some(_) | None => NamedFile::Unresolvable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_resolve_as_in_qemu() {
        let path = |text: &str| NamedFile::Path(text.to_owned());
        for (image, name, leads) in [
            ("/a/top", "base", path("/a/base")),
            ("/top", "base", path("/base")),
            ("/a/top", "/b/c:d", path("/b/c:d")),
            ("/a/top", "b/c:d", path("/a/b/c:d")),
            ("/a/top", "file:/b", path("/b")),
            ("/a/top", "file:b", NamedFile::Unresolvable),
            ("/a/top", "a:b/c", NamedFile::Protocol("a".to_owned())),
            ("/a/top", "json:{}", NamedFile::Json),
            ("/a/top", "a\u{fffd}b", NamedFile::Unresolvable),
            ("/a/top", "", NamedFile::Unresolvable),
            ("top", "base", NamedFile::Unresolvable),
        ] {
            assert_eq!(named_file(image, name), leads, "{image} {name}");
        }
    }
}
