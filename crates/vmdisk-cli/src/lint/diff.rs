//! The changes of a fix, as a diff that `git apply` accepts.

use std::path::{Component, Path};

use similar::TextDiff;

/// A unified diff of one file.
pub(crate) fn unified(path: &Path, before: &str, after: &str) -> String {
    let name = name(path);
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&quoted("a", &name), &quoted("b", &name))
        .to_string()
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
