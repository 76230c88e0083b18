//! Markup that is no element: comments, processing instructions, the XML declaration.

use vmdisk_source::Span;

use crate::root::skip_document_type;
use crate::tag::{TagFault, TagScanner};
use crate::{ReadFailure, ReadFailureKind, xml_name};

/// From an offset to the end of its line.
pub(crate) fn rest_of_line(text: &str, start: usize) -> Span {
    let rest = &text[start..];
    Span::new(start, start + rest.find('\n').unwrap_or(rest.len()))
}

/// Where the comment that begins at `start` ends.
///
/// # Errors
/// If it is never closed, or holds two hyphens in a row.
pub(crate) fn comment_end(text: &str, start: usize) -> Result<usize, ReadFailure> {
    let inside = start + "<!--".len();
    let Some(length) = text[inside..].find("--") else {
        let line = rest_of_line(text, start);
        return Err(ReadFailure::malformed(line, "this comment is never closed"));
    };
    let hyphens = inside + length;
    if text[hyphens..].starts_with("-->") {
        return Ok(hyphens + "-->".len());
    }
    let line = rest_of_line(text, hyphens);
    Err(ReadFailure::malformed(line, "`--` inside a comment")
        .help("a comment may not contain two hyphens in a row"))
}

/// Why the `<!` at `start`, which begins neither a comment nor a CDATA section, is not read.
pub(crate) fn declaration_of_document_type(text: &str, start: usize) -> ReadFailure {
    let rest = &text[start..];
    let word = "<!DOCTYPE";
    let inside = match rest.split_at_checked(word.len()) {
        Some((first, inside)) if first.eq_ignore_ascii_case(word) => inside,
        Some(_) | None => {
            let line = rest_of_line(text, start);
            return ReadFailure::malformed(line, "`<!` begins nothing that XML knows");
        }
    };
    let Some((_, after)) = skip_document_type(inside) else {
        let line = rest_of_line(text, start);
        return ReadFailure::malformed(line, "this document type is never closed");
    };
    ReadFailure::new(
        ReadFailureKind::DocumentType,
        Span::new(start, text.len() - after.len()),
        "a document type declaration is not read, for the entities it may define",
    )
    .help("delete it: libvirt's XML needs none")
}

/// Where the processing instruction or XML declaration that begins at `start` ends.
///
/// # Errors
/// If it is never closed, has no name, or is a declaration in the wrong place or form.
pub(crate) fn instruction_end(
    text: &str,
    start: usize,
    is_first: bool,
) -> Result<usize, ReadFailure> {
    let inside = start + "<?".len();
    let Some(length) = text[inside..].find("?>") else {
        let line = rest_of_line(text, start);
        let message = "this processing instruction is never closed";
        return Err(ReadFailure::malformed(line, message));
    };
    let span = Span::new(start, inside + length + "?>".len());
    let name = text[inside..inside + length]
        .split([' ', '\t', '\r', '\n'])
        .next();
    let name = name.unwrap_or_default();
    if name == "xml" {
        check_declaration(text, span, is_first)?;
    } else if !name.split(':').all(xml_name::is_name) {
        let span = Span::new(inside, inside + name.len());
        return Err(ReadFailure::malformed(
            span,
            format!("`{name}` is not a name"),
        ));
    }
    Ok(span.end)
}

/// What an XML declaration may say, in this order.
const DECLARED: [&str; 3] = ["version", "encoding", "standalone"];

/// Checks `<?xml version='1.0' encoding='…' standalone='…'?>`; the encoding has been looked at before.
fn check_declaration(text: &str, span: Span, is_first: bool) -> Result<(), ReadFailure> {
    if !is_first {
        return Err(ReadFailure::malformed(
            span,
            "the XML declaration must be the first thing in the file",
        )
        .help("delete what stands before it, or the declaration"));
    }
    let malformed = || {
        ReadFailure::malformed(span, "this XML declaration is not well-formed")
            .help("write `<?xml version='1.0' encoding='UTF-8'?>`, or delete it: XML needs none")
    };
    let mut scanner = TagScanner::new(&text[..span.end - "?>".len()], span.start);
    let mut declared = DECLARED.iter();
    let mut version = None;
    loop {
        match scanner.next_attribute() {
            Ok(Some(attribute)) => {
                let name = attribute.name.slice(text).unwrap_or_default();
                if !declared.any(|known| *known == name) {
                    return Err(malformed());
                }
                if name == "version" {
                    version = attribute.value.slice(text);
                }
            }
            Err(error) if error.fault == TagFault::Unclosed => break,
            Ok(None) | Err(_) => return Err(malformed()),
        }
    }
    match version {
        Some(version) if version.starts_with("1.") => Ok(()),
        Some(version) => Err(ReadFailure::malformed(
            span,
            format!("unsupported XML version `{version}`, expected `1.0`"),
        )),
        None => Err(malformed()),
    }
}
