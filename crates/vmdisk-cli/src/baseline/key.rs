//! The keys of findings in a baseline.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};

use vmdisk::Diagnostic;
use vmdisk::model::Domain;
use vmdisk::report::DocumentReport;

use crate::baseline::file::Entry;
use crate::input::absolute::absolute;
use crate::render::uri;
use crate::report::input::InputReport;
use vmdisk::report::digest;

/// The subjects of findings in the files around a baseline.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The absolute directory of the baseline.
    directory: PathBuf,
    /// A guest without disks, in which every field has the same name whatever the guest is.
    nobody: Domain,
}

impl Keys {
    /// The keys of a baseline at a path.
    pub(crate) fn new(baseline: &Path) -> Self {
        let directory = match baseline.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        Keys {
            directory: absolute(directory),
            nobody: Domain::default(),
        }
    }

    /// The name of an input in the baseline.
    pub(crate) fn file(&self, checked: &InputReport) -> String {
        // The text of a path lacks its bytes that are not UTF-8; the URI has them.
        let is_text = !checked.path.contains(char::REPLACEMENT_CHARACTER);
        let path = match is_text {
            true => PathBuf::from(&checked.path),
            false => checked.file.clone(),
        };
        relative(&absolute(&path), &self.directory)
    }

    /// True if a file of the baseline is there.
    pub(crate) fn exists(&self, file: &str) -> bool {
        let is_there = |name: &Path| self.directory.join(name).symlink_metadata().is_ok();
        is_there(Path::new(file)) || is_there(&unescaped(file))
    }

    /// The key of a finding in a file.
    pub(crate) fn of(&self, file: &str, finding: &Diagnostic) -> u128 {
        let (disk, field) = self.subject(finding);
        key(file, finding.rule.name, disk.as_deref(), &field)
    }

    /// The disk and the field that a finding is about.
    fn subject(&self, finding: &Diagnostic) -> (Option<String>, String) {
        let crumb = vmdisk::breadcrumb(&self.nobody, finding.at);
        let Some(disk) = &finding.disk else {
            return (None, crumb);
        };
        let name = match &disk.target {
            Some(target) => target.clone(),
            None => format!("#{}", disk.index),
        };
        let field = crumb.split_once(" › ").map_or("disk", |(_, field)| field);
        (Some(name), field.to_owned())
    }

    /// The entries of all findings of a report, in their order.
    pub(crate) fn entries(&self, checked: &InputReport, report: &DocumentReport) -> Vec<Entry> {
        let file = self.file(checked);
        let mut entries: Vec<Entry> = Vec::new();
        let mut known: HashMap<u128, usize> = HashMap::new();
        for finding in &report.findings {
            match known.get(&self.of(&file, finding)) {
                Some(nth) => {
                    let count = &mut entries[*nth].count;
                    *count = count.saturating_add(1);
                }
                None => {
                    let (disk, field) = self.subject(finding);
                    known.insert(self.of(&file, finding), entries.len());
                    entries.push(Entry {
                        file: file.clone(),
                        rule: finding.rule.name.to_owned(),
                        disk,
                        field,
                        count: NonZeroU32::MIN,
                    });
                }
            }
        }
        entries
    }
}

/// The key of an entry.
pub(crate) fn key_of(entry: &Entry) -> u128 {
    key(
        &entry.file,
        &entry.rule,
        entry.disk.as_deref(),
        &entry.field,
    )
}

/// The key of a file.
pub(crate) fn key_of_file(file: &str) -> u128 {
    digest(&[file])
}

fn key(file: &str, rule: &str, disk: Option<&str>, field: &str) -> u128 {
    digest(&[file, rule, disk.unwrap_or_default(), field])
}

/// An absolute path from a directory, with `/` between names.
fn relative(path: &Path, directory: &Path) -> String {
    let is_common = |(one, other): &(Component<'_>, Component<'_>)| one == other;
    let common = path
        .components()
        .zip(directory.components())
        .take_while(is_common)
        .count();
    let up = directory.components().skip(common).map(|_| "..".to_owned());
    let down = path.components().skip(common);
    let down = down.map(|name| escaped(name.as_os_str().as_encoded_bytes()));
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// A name as text: bytes that are not UTF-8 are written as `\xff`.
fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter();
        invalid.for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// The path of a name with escaped bytes.
fn unescaped(name: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(name.len());
    let mut parts = name.split("\\x");
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let byte = part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte.filter(|byte| !byte.is_ascii()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    uri::path_of_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_directory_of_the_baseline() {
        for (path, directory, expected) in [
            ("/r/domains/a.xml", "/r", "domains/a.xml"),
            ("/r/a.xml", "/r/ci", "../a.xml"),
            ("/other/a.xml", "/r/ci", "../../other/a.xml"),
        ] {
            assert_eq!(relative(Path::new(path), Path::new(directory)), expected);
        }
    }

    #[test]
    fn names_that_differ_in_bytes_that_are_not_utf_8_differ() {
        let directory = Path::new("/r");
        for (name, expected) in [
            (&b"a\xff.xml"[..], r"a\xff.xml"),
            (b"a\xfe.xml", r"a\xfe.xml"),
            (b"\xc3\xa9\xc3.xml", r"\u{e9}\xc3.xml"),
            // Text stays unchanged.
            ("ü\u{fffd}.xml".as_bytes(), "ü\u{fffd}.xml"),
            (br"a\x41.xml", r"a\x41.xml"),
        ] {
            let expected = expected.replace(r"\u{e9}", "é");
            let path = directory.join(uri::path_of_bytes(name.to_vec()));
            assert_eq!(relative(&path, directory), expected);
            assert_eq!(unescaped(&expected), uri::path_of_bytes(name.to_vec()));
        }
    }
}
