//! Decodes bytes to text: UTF-8 is accepted, other encodings are named and refused.

use vmdisk_source::Span;

use crate::{ReadFailure, ReadFailureKind};

/// The maximum size of a document: 16 MiB.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

fn refuse(message: impl Into<String>) -> ReadFailure {
    ReadFailure::new(ReadFailureKind::Encoding, Span::empty(0), message)
}

/// The text of a document.
///
/// # Errors
/// Fails if the file is empty, too large, binary, or not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, ReadFailure> {
    if bytes.is_empty() {
        return Err(refuse("the file is empty"));
    }
    if bytes.len() > MAX_BYTES {
        return Err(too_large(bytes.len()));
    }
    if let Some(name) = wide_encoding(bytes) {
        return Err(other_encoding(name));
    }
    match std::str::from_utf8(bytes) {
        Ok(_) if has_nul(bytes) => Err(refuse("a binary file: it contains NUL bytes")),
        Ok(text) => Ok(text),
        Err(error) => {
            let declared = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
            if has_nul(bytes) {
                return Err(refuse("a binary file: it contains NUL bytes"));
            }
            if let Some((name, _)) = declared_encoding(&declared)
                && !is_utf8(name)
            {
                return Err(other_encoding(name));
            }
            let line = 1 + bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            Err(refuse(format!(
                "not UTF-8: byte 0x{:02x} in line {line} does not start a character",
                bytes[error.valid_up_to()]
            ))
            .help("convert the file to UTF-8, for example with `iconv -t UTF-8`"))
        }
    }
}

fn has_nul(bytes: &[u8]) -> bool {
    // No short circuit inside a block: the compiler makes vector instructions of it.
    let block = |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | (*byte == 0));
    bytes.chunks(64).any(block)
}

/// Checks the encoding that a text, already decoded, declares.
pub(crate) fn check_declared(text: &str) -> Result<(), ReadFailure> {
    match declared_encoding(text) {
        Some((name, span)) if !is_utf8(name) => {
            let mut failure = other_encoding(name);
            failure.span = span;
            Err(failure)
        }
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn too_large(bytes: usize) -> ReadFailure {
    ReadFailure::new(
        ReadFailureKind::TooLarge,
        Span::empty(0),
        format!("{bytes} bytes are more than the limit for a domain ({MAX_BYTES})"),
    )
}

fn other_encoding(name: &str) -> ReadFailure {
    refuse(format!(
        "the file is encoded in {name}; only UTF-8 is supported"
    ))
    .help("convert the file to UTF-8 and say so in its declaration, or drop the declaration")
}

/// US-ASCII is a subset of UTF-8.
fn is_utf8(name: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// UTF-16 and UTF-32 are recognised by their byte order mark, or by the NUL bytes around the first `<`.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [b'<', 0, 0, 0, ..] | [0, 0, 0, b'<', ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [b'<', 0, _, 0, ..] | [0, b'<', 0, _, ..] => Some("UTF-16"),
        _ => None,
    }
}

/// The encoding in the XML declaration, with its span.
fn declared_encoding(text: &str) -> Option<(&str, Span)> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let declaration = text[start..].strip_prefix("<?xml")?;
    let declaration = &declaration[..declaration.find("?>")?];
    let at = declaration.find("encoding")? + "encoding".len();
    let value = declaration[at..]
        .trim_start()
        .strip_prefix('=')?
        .trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let name = value[1..].split(quote).next()?;
    let offset = name.as_ptr() as usize - text.as_ptr() as usize;
    Some((name, Span::new(offset, offset + name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_that_is_not_read_is_named() {
        let utf16: Vec<u8> = "<a/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, name) in [
            (&b"\xff\xfe<\0a\0"[..], "UTF-16"),
            (&utf16[..], "UTF-16"),
            (&b"\0\0\0<\0\0\0a"[..], "UTF-32"),
            (
                &b"<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe9'/>"[..],
                "ISO-8859-1",
            ),
            (&b""[..], "empty"),
            (&b"\x7fELF\0\0"[..], "NUL"),
            (&b"<a>\n\xff</a>"[..], "0xff in line 2"),
        ] {
            let failure = decode(bytes).unwrap_err();
            assert_eq!(failure.kind, ReadFailureKind::Encoding);
            assert!(failure.message.contains(name), "{}", failure.message);
        }
        let text = "<?xml version='1.0' encoding=\"latin1\"?><a/>";
        let failure = check_declared(text).unwrap_err();
        assert_eq!(failure.span.slice(text), Some("latin1"));
    }

    #[test]
    fn utf8_is_read_with_and_without_a_mark_or_a_declaration() {
        for text in [
            "<a/>",
            "\u{feff}<a/>",
            "<?xml version='1.0' encoding='utf-8'?><a/>",
            "<?xml version='1.0' encoding = \"US-ASCII\" ?><a/>",
        ] {
            assert_eq!(decode(text.as_bytes()), Ok(text));
            assert_eq!(check_declared(text), Ok(()));
        }
    }
}
