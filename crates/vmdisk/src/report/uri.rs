//! Paths as URIs.

use std::path::Path;

/// A path as a URI: relative if the path is, percent-encoded, with `/` between its parts.
pub fn of_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut out = String::with_capacity(bytes.len() + 8);
    if path.is_absolute() {
        out.push_str("file://");
    }
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => out.push('/'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_uri_would_misread_is_encoded() {
        for (path, uri) in [
            ("a/b.xml", "a/b.xml"),
            ("a b/ü#?%.xml", "a%20b/%C3%BC%23%3F%25.xml"),
            // A colon in the first part would read as a scheme.
            ("c:x.xml", "c%3Ax.xml"),
            ("../x.xml", "../x.xml"),
        ] {
            assert_eq!(of_path(Path::new(path)), uri);
        }
        if cfg!(unix) {
            assert_eq!(of_path(Path::new("/etc/a.xml")), "file:///etc/a.xml");
        }
    }
}
