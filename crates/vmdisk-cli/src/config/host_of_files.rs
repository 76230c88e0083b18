//! The argument `--host NAME=PATTERN`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// The name of the host, as a component of a pattern.
const NAME: &str = "{host}";

/// The host that runs the files of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct HostOfFiles {
    name: HostName,
    pattern: GlobMatcher,
}

#[derive(Clone, Debug)]
enum HostName {
    Given(String),
    /// This component of the path, counted from its beginning, or from its end.
    FromStart(usize),
    FromEnd(usize),
}

impl HostOfFiles {
    fn of<'a>(&'a self, file: &'a Path) -> Option<&'a str> {
        if !self.pattern.is_match(file) {
            return None;
        }
        let component = match self.name {
            HostName::Given(ref name) => return Some(name),
            HostName::FromStart(number) => file.iter().nth(number),
            HostName::FromEnd(number) => file.iter().nth_back(number),
        };
        component?.to_str()
    }
}

/// The host that runs the guest of a file, if an argument gives it.
pub(crate) fn host_of<'a>(hosts: &'a [HostOfFiles], file: &'a Path) -> Option<&'a str> {
    let file = file.strip_prefix("./").unwrap_or(file);
    hosts.iter().find_map(|host| host.of(file))
}

/// Parses `NAME=PATTERN`. `*` matches within a name, `**` any number of directories. The name `{host}` is the component of
/// the path where the pattern has it.
pub(crate) fn host_of_files(text: &str) -> Result<HostOfFiles, String> {
    let expected = || {
        "expected NAME=PATTERN, such as kvm1='kvm1/*.xml' or '{host}=domains/{host}/**'".to_owned()
    };
    let (name, pattern) = text.split_once('=').ok_or_else(expected)?;
    if name.is_empty() || pattern.is_empty() {
        return Err(expected());
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let (name, pattern) = match name {
        NAME => {
            let components: Vec<&str> = Path::new(pattern)
                .iter()
                .filter_map(|it| it.to_str())
                .collect();
            let at = components
                .iter()
                .position(|it| *it == NAME)
                .ok_or_else(expected)?;
            let name = if !components[..at].contains(&"**") {
                HostName::FromStart(at)
            } else if !components[at..].contains(&"**") {
                HostName::FromEnd(components.len() - 1 - at)
            } else {
                return Err("`**` may not stand on both sides of {host}".to_owned());
            };
            (name, pattern.replacen(NAME, "*", 1))
        }
        name => (HostName::Given(name.to_owned()), pattern.to_owned()),
    };
    let pattern = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| error.kind().to_string())?
        .compile_matcher();
    Ok(HostOfFiles { name, pattern })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_and_a_valid_pattern() {
        let bad = [
            "kvm1",
            "=a.xml",
            "kvm1=",
            "kvm1=[",
            "",
            "{host}=a/*.xml",
            "{host}=a/x{host}/*",
            "{host}=**/{host}/**",
        ];
        for bad in bad {
            assert!(host_of_files(bad).is_err(), "{bad}");
        }
        for (pattern, file, host) in [
            ("kvm1=./guests/*.xml", "./guests/a.xml", Some("kvm1")),
            ("kvm1=guests/*.xml", "guests/b/a.xml", None),
            ("{host}=domains/{host}/**", "domains/h1/a.xml", Some("h1")),
            (
                "{host}=./domains/{host}/**",
                "./domains/h1/b/a.xml",
                Some("h1"),
            ),
            ("{host}=domains/{host}/*.xml", "domains/h1/b/a.xml", None),
            (
                "{host}=**/{host}/*.xml",
                "/srv/domains/h1/a.xml",
                Some("h1"),
            ),
            ("{host}=/srv/{host}/**", "/srv/h1/a.xml", Some("h1")),
            ("{host}={host}/**", "a.xml", None),
        ] {
            let hosts = [host_of_files(pattern).unwrap()];
            assert_eq!(host_of(&hosts, Path::new(file)), host, "{pattern} {file}");
        }
    }
}
