//! The changes of a fix, as a diff that `git apply` accepts.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, group_diff_ops};
use vmdisk_source::{Edit, LineIndex, Span, apply_edits};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// A unified diff of one file.
pub(crate) fn unified(path: &Path, before: &str, after: &str) -> String {
    let mut out = header(path);
    hunks(&mut out, before, after, [0, 0]);
    out
}

/// A unified diff of what edits change in a text, with `shown` applied to the parts that are compared. `None` if the edits
/// cannot be applied, or lines are too long to be read.
pub(crate) fn of_edits(
    path: &Path,
    text: &str,
    lines: &LineIndex,
    edits: &[Edit],
    shown: fn(&str) -> Cow<'_, str>,
) -> Option<String> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let mut parts: Vec<(Range<usize>, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        let around = lines_around(text, edit.span)?;
        match parts.last_mut() {
            Some((part, members)) if around.start <= part.end => {
                part.end = part.end.max(around.end);
                members.push(edit);
            }
            Some(_) | None => parts.push((around, vec![edit])),
        }
    }
    let mut out = header(path);
    let mut shift = 0;
    for (part, edits) in parts {
        let start = part.start;
        let before = text.get(part)?;
        let here = edits.into_iter().map(|edit| Edit {
            span: Span::new(edit.span.start - start, edit.span.end - start),
            ..edit.clone()
        });
        let after = apply_edits(before, &here.collect::<Vec<_>>()).ok()?;
        let above = lines.position(text, start).line - 1;
        let (before, after) = (shown(before), shown(&after));
        let new_above = above.saturating_add_signed(shift);
        hunks(&mut out, &before, &after, [above, new_above]);
        let [before, after] = [before, after].map(|text| text.matches('\n').count());
        shift += after.cast_signed() - before.cast_signed();
    }
    Some(out)
}

/// Bytes before and after an edit that are compared too.
const AROUND: usize = 4096;

/// Bytes of a line that are searched for its start or its end.
const MAX_LINE: usize = 32 * 1024;

/// The whole lines around a place; `None` if they are too long.
fn lines_around(text: &str, span: Span) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let first = span.start.saturating_sub(AROUND);
    let from = first.saturating_sub(MAX_LINE);
    let start = match bytes[from..first].iter().rposition(|byte| *byte == b'\n') {
        Some(at) => from + at + 1,
        None if from == 0 => 0,
        None => return None,
    };
    let last = span.end.saturating_add(AROUND).min(text.len());
    let to = last.saturating_add(MAX_LINE).min(text.len());
    let end = match bytes[last..to].iter().position(|byte| *byte == b'\n') {
        Some(at) => last + at + 1,
        None if to == text.len() => to,
        None => return None,
    };
    Some(start..end)
}

fn header(path: &Path) -> String {
    let name = name(path);
    format!("--- {}\n+++ {}\n", quoted("a", &name), quoted("b", &name))
}

/// Adds the hunks between two texts, which begin after so many lines of the old and the new file.
fn hunks(out: &mut String, before: &str, after: &str, above: [usize; 2]) {
    let (old, new) = (lines(before), lines(after));
    for hunk in group_diff_ops(changes(&old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            range(above[0], first.old_range().start, last.old_range().end),
            range(above[1], first.new_range().start, last.new_range().end)
        );
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
}

/// Lines of a file as the head of a hunk has them: the first, which counts from 1, and their number unless it is 1.
fn range(above: usize, start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{},0", above + start),
        1 => format!("{}", above + start + 1),
        number => format!("{},{number}", above + start + 1),
    }
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
fn name(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.as_bytes()),
            Component::ParentDir => Some(&b".."[..]),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect();
    parts.join(&b'/')
}

/// The name as git writes it: quoted as in C if it holds what would end the line or the quotes, and
/// with a tab after it if it contains a space, which would end it otherwise.
fn quoted(side: &str, name: &[u8]) -> String {
    let must_quote =
        |byte: u8| byte < 0x20 || byte == 0x7f || byte >= 0x80 || matches!(byte, b'"' | b'\\');
    if !name.iter().copied().any(must_quote) {
        let end = if name.contains(&b' ') { "\t" } else { "" };
        return format!("{side}/{}{end}", String::from_utf8_lossy(name));
    }
    let mut out = format!("\"{side}/");
    for byte in name.iter().copied() {
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
    use std::ffi::OsStr;

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
        let bytes = Path::new(OsStr::from_bytes(b"d/\xff.xml"));
        assert_eq!(quoted("a", &name(bytes)), "\"a/d/\\377.xml\"");
    }

    fn unchanged(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }

    #[test]
    fn a_diff_of_edits_is_the_diff_of_the_whole_texts() {
        let text: String = (0..4000).map(|number| format!("line {number}\n")).collect();
        let at = |part: &str| {
            let start = text.find(part).unwrap();
            Span::new(start, start + part.len())
        };
        let edit = |span: Span, text: &str| Edit {
            span,
            text: text.to_owned(),
        };
        let first = edit(Span::empty(0), "new\n");
        let removed = edit(at("line 100\nline 101\nline 102\n"), "");
        let near = edit(at("line 105\n"), "x\ny\n");
        let far = edit(at("line 2000"), "z");
        let last = edit(at("line 3999\n"), "end");
        let index = LineIndex::new(&text);
        for edits in [
            vec![far.clone()],
            vec![first.clone(), far.clone(), last.clone()],
            vec![removed.clone(), far.clone()],
            vec![last, near, far, removed, first],
        ] {
            let after = apply_edits(&text, &edits).unwrap();
            let path = Path::new("a.xml");
            assert_eq!(
                of_edits(path, &text, &index, &edits, unchanged).unwrap(),
                unified(path, &text, &after)
            );
        }
        let long = "x".repeat(4 * MAX_LINE);
        let edits = [edit(Span::new(2 * MAX_LINE, 2 * MAX_LINE + 1), "y")];
        let index = LineIndex::new(&long);
        assert!(of_edits(Path::new("a"), &long, &index, &edits, unchanged).is_none());
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
