//! Several documents in one text, as `virsh dumpxml` in a loop and `virt-install --print-xml` print them.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::Event;

/// Bytes of all documents, at most: each has blanks for those before it.
const MAX_BYTES: usize = 256 << 20;

/// A text for each document of a text that has several: the whole text with blanks in place of what is not the document, so that
/// places are those of the whole. None for a text that has one, is not XML, or is too large for this.
pub fn documents(text: &str) -> Vec<String> {
    let mut reader = Reader::from_str(text);
    let mut parts = Vec::new();
    let mut declarations = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    loop {
        let before = offset(&reader);
        let ends = match reader.read_event() {
            Ok(Event::Start(_)) => {
                depth += 1;
                false
            }
            Ok(Event::End(_)) => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            Ok(Event::Empty(_)) => depth == 0,
            Ok(Event::Decl(_)) => {
                declarations.push(before..offset(&reader));
                false
            }
            Ok(Event::Eof) => break,
            Ok(_) => false,
            Err(_) => return Vec::new(),
        };
        if ends {
            parts.push(start..offset(&reader));
            start = offset(&reader);
        }
    }
    if parts.len() < 2 || parts.len() * text.len() > MAX_BYTES {
        return Vec::new();
    }
    if let Some(last) = parts.last_mut() {
        // A reader complains about what follows.
        last.end = text.len();
    }
    let document = |part: Range<usize>| {
        let mut document = blank(&text[..part.start]) + &text[part.clone()];
        for declaration in declarations.iter().filter(|it| part.contains(&it.start)) {
            document.replace_range(declaration.clone(), &blank(&text[declaration.clone()]));
        }
        document
    };
    parts.into_iter().map(document).collect()
}

/// As many blanks as the text has bytes, and its line ends.
fn blank(text: &str) -> String {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

fn offset(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).expect("a text is in memory")
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn each_document_keeps_its_place() {
        let text = "<?xml version='1.0'?>\n<domain>ä</domain>\n<?xml version='1.0'?>\n<disk/>\n";
        let all = documents(text);
        assert_eq!(all.len(), 2);
        for (part, root) in all.iter().zip(["<domain>ä</domain>", "<disk/>"]) {
            assert_eq!(part.trim(), root);
            assert_eq!(part.find(root), text.find(root));
        }
        assert!(documents("<a/>").is_empty());
        assert!(documents("<a><b/></a>").is_empty());
    }
}
