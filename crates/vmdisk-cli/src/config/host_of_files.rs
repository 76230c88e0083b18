//! The argument `--host NAME=PATTERN`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// The host that runs the files of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct HostOfFiles {
    name: String,
    pattern: GlobMatcher,
}

/// The host that runs the guest of a file, if an argument gives it.
pub(crate) fn host_of<'a>(hosts: &'a [HostOfFiles], file: &Path) -> Option<&'a str> {
    let file = file.strip_prefix("./").unwrap_or(file);
    let named = hosts.iter().find(|host| host.pattern.is_match(file));
    named.map(|host| host.name.as_str())
}

/// Parses `NAME=PATTERN`. `*` matches within a name, `**` any number of directories.
pub(crate) fn host_of_files(text: &str) -> Result<HostOfFiles, String> {
    let expected = || "expected NAME=PATTERN, such as kvm1='kvm1/*.xml'".to_owned();
    let (name, pattern) = text.split_once('=').ok_or_else(expected)?;
    if name.is_empty() || pattern.is_empty() {
        return Err(expected());
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let pattern = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| error.kind().to_string())?;
    Ok(HostOfFiles {
        name: name.to_owned(),
        pattern: pattern.compile_matcher(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_and_a_valid_pattern() {
        for bad in ["kvm1", "=a.xml", "kvm1=", "kvm1=[", ""] {
            assert!(host_of_files(bad).is_err(), "{bad}");
        }
        let host = host_of_files("kvm1=./guests/*.xml").unwrap();
        assert_eq!(host.name, "kvm1");
        assert!(host.pattern.is_match("guests/a.xml"));
        assert!(!host.pattern.is_match("guests/b/a.xml"));
    }
}
