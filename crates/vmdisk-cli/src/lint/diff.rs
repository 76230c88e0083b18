//! The changes of a fix, as a diff that `git apply` accepts.

use std::fmt::Write as _;
use std::path::{Component, Path};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, group_diff_ops};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// A unified diff of one file.
pub(crate) fn unified(path: &Path, before: &str, after: &str) -> String {
    let name = name(path);
    let (old, new) = (lines(before), lines(after));
    let mut out = format!("--- {}\n+++ {}\n", quoted("a", &name), quoted("b", &name));
    for hunk in group_diff_ops(changes(&old, &new), CONTEXT) {
        let _ = writeln!(out, "{}", UnifiedHunkHeader::new(&hunk));
        let slices = hunk
            .iter()
            .flat_map(|change| change.iter_slices(&old, &new));
        for (tag, lines) in slices {
            for line in lines {
                let _ = write!(out, "{tag}{line}");
                if !line.ends_with('\n') {
                    out.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
    }
    out
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The operations that turn the old lines into the new ones. The result is that of `similar::TextDiff` with its default
/// settings, but only one of the algorithms is compiled, which saves 0.7 MB.
fn changes(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff(&mut hook, old, 0..old.len(), new, 0..new.len()) {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
    }
}

/// The path with `/` between its parts, without a root and without `.` parts.
fn name(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            Component::ParentDir => Some("..".to_owned()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect();
    parts.join("/")
}

/// The name as git writes it: quoted as in C if it holds what would end the line or the quotes, and
/// with a tab after it if it contains a space, which would end it otherwise.
fn quoted(side: &str, name: &str) -> String {
    let must_quote =
        |byte: u8| byte < 0x20 || byte == 0x7f || byte >= 0x80 || matches!(byte, b'"' | b'\\');
    if !name.bytes().any(must_quote) {
        let end = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}/{name}{end}");
    }
    let mut out = format!("\"{side}/");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            byte if must_quote(byte) => out.push_str(&format!("\\{byte:03o}")),
            byte => out.push(char::from(byte)),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_git_reads_them() {
        for (path, header) in [
            ("d/web1.xml", "a/d/web1.xml"),
            ("/etc/./web1.xml", "a/etc/web1.xml"),
            ("my web.xml", "a/my web.xml\t"),
            ("ü\"\n.xml", "\"a/\\303\\274\\\"\\n.xml\""),
        ] {
            assert_eq!(quoted("a", &name(Path::new(path))), header);
        }
    }

    #[test]
    fn a_file_without_a_last_line_end_says_so() {
        let diff = unified(Path::new("a.xml"), "<a/>\n<b/>", "<a/>\n<c/>");
        assert_eq!(
            diff,
            "--- a/a.xml\n+++ b/a.xml\n@@ -1,2 +1,2 @@\n <a/>\n-<b/>\n\\ No newline at end of file\n+<c/>\n\\ No newline at end of file\n"
        );
    }
}
