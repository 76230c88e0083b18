//! URIs of documents.

use std::path::PathBuf;

use fluent_uri::Uri;

/// The path of a document; for a document that is not a file, its URI.
pub(crate) fn path_of(uri: &str) -> PathBuf {
    let path = Uri::parse(uri).ok().filter(|uri| {
        uri.scheme().as_str().eq_ignore_ascii_case("file")
            && uri
                .authority()
                .is_none_or(|authority| authority.as_str().is_empty())
    });
    match path {
        Some(uri) => PathBuf::from(os_string(uri.path().decode().into_bytes().into_owned())),
        None => PathBuf::from(uri),
    }
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> std::ffi::OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_path_and_everything_else_its_uri() {
        for (uri, path) in [
            ("file:///srv/a.xml", "/srv/a.xml"),
            ("file:///srv/a%20b/%C3%BC%23.xml", "/srv/a b/ü#.xml"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
            ("file://host/a.xml", "file://host/a.xml"),
            ("no uri at all\u{0}", "no uri at all\u{0}"),
            ("", ""),
        ] {
            assert_eq!(path_of(uri), PathBuf::from(path), "{uri}");
        }
    }
}
