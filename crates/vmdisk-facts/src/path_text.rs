//! Paths as text: compared and climbed without looking at any disk.

use std::borrow::Cow;

/// A path without doubled slashes, `/./` and a slash at the end. `..` stays, because its meaning depends on links.
pub(crate) fn tidy(path: &str) -> Cow<'_, str> {
    // Nearly every path, each asked for often.
    if !path.contains("//") && !path.contains("/./") && !path.ends_with("/.") {
        return Cow::Borrowed(without_slash(path));
    }
    let mut tidied = String::with_capacity(path.len());
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if !tidied.is_empty() || path.starts_with('/') {
            tidied.push('/');
        }
        tidied.push_str(part);
    }
    if tidied.is_empty() && path.starts_with('/') {
        tidied.push('/');
    }
    Cow::Owned(tidied)
}

pub(crate) fn without_slash(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if !path.is_empty() => "/",
        trimmed => trimmed,
    }
}

/// A path and every directory above it, nearest first.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rfind('/') {
        Some(0) if path.len() > 1 => Some("/"),
        Some(0) | None => None,
        Some(slash) => Some(&path[..slash]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_slashes_and_lone_dots_mean_nothing() {
        for (given, tidied) in [
            ("/a//b", "/a/b"),
            ("./.", ""),
            ("/a/./b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("/a/.", "/a"),
            ("//", "/"),
            ("/", "/"),
            ("/a/../b", "/a/../b"),
            ("a//b", "a/b"),
            ("", ""),
        ] {
            assert_eq!(tidy(given), tidied, "{given}");
        }
    }

    #[test]
    fn climbing_ends_at_the_root() {
        assert_eq!(ancestors("/a/b").collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("/").collect::<Vec<_>>(), ["/"]);
        assert_eq!(ancestors("a/b").collect::<Vec<_>>(), ["a/b", "a"]);
    }
}
