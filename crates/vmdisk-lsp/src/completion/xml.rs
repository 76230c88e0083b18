//! Where in an XML text a place is, also in one that is being written and not well-formed.

use vmdisk_libvirt::vocabulary::{
    DEVICES, DISK, DOMAIN, DOMAIN_BACKUP, DOMAIN_CHECKPOINT, DOMAIN_SNAPSHOT, ElementSpec, POOL,
    STORAGE_VOLUME,
};
use vmdisk_source::Span;

/// A place between the elements around it.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The open elements, the outermost first; for a place in a start tag, that tag is the last.
    tags: Vec<Tag>,
    pub(crate) at: At,
}

/// The role of the text at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The name of a start tag.
    ElementName { span: Span },
    /// The name of an attribute, or where one may begin.
    AttributeName { span: Span },
    /// A value, without its quotes.
    AttributeValue {
        name: Span,
        value: Span,
        /// The attribute with its name and its quotes.
        whole: Span,
    },
    /// Between tags.
    Text,
    /// A comment, an end tag, or a declaration.
    Elsewhere,
}

/// A start tag.
#[derive(Clone, Debug)]
struct Tag {
    name: Span,
    attributes: Vec<(Span, Option<Span>)>,
}

impl Tag {
    fn value<'t>(&self, text: &'t str, name: &str) -> Option<&'t str> {
        let mut found = self.attributes.iter();
        let found = found.find(|(known, _)| known.slice(text) == Some(name));
        found?.1?.slice(text)
    }
}

/// Finds the elements around an offset, in one pass over the text before it.
pub(crate) fn cursor(text: &str, offset: usize) -> Option<Cursor> {
    text.is_char_boundary(offset).then_some(())?;
    let mut tags: Vec<Tag> = Vec::new();
    let mut at = 0;
    loop {
        let start = match text[at..].find('<') {
            Some(found) if at + found < offset => at + found,
            Some(_) | None => return Some(Cursor { tags, at: At::Text }),
        };
        let rest = &text[start..];
        let skipped = [
            ("<!--", "-->"),
            ("<![CDATA[", "]]>"),
            ("<?", "?>"),
            ("<!", ">"),
            ("</", ">"),
        ];
        if let Some((begin, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let length = rest[begin.len()..].find(end);
            at = length.map_or(text.len(), |length| {
                start + begin.len() + length + end.len()
            });
            if offset < at || length.is_none() {
                return Some(Cursor {
                    tags,
                    at: At::Elsewhere,
                });
            }
            if *begin == "</" {
                close(&mut tags, text, rest[2..].split(['>', ' ', '\n']).next()?);
            }
            continue;
        }
        let scanned = scan(text, start);
        if offset < scanned.end || (offset == scanned.end && !scanned.is_closed) {
            let at = scanned.at(text, offset);
            tags.push(scanned.tag);
            return Some(Cursor { tags, at });
        }
        // One whose end is not written yet has no content.
        if scanned.is_closed && !scanned.is_empty {
            tags.push(scanned.tag);
        }
        at = scanned.end;
    }
}

/// Closes the innermost element of this name, and those inside it, whose end tags are not written yet.
fn close(tags: &mut Vec<Tag>, text: &str, name: &str) {
    if let Some(open) = tags
        .iter()
        .rposition(|tag| tag.name.slice(text) == Some(name))
    {
        tags.truncate(open);
    }
}

/// A start tag and its end.
struct Scanned {
    tag: Tag,
    end: usize,
    /// True if it ends in `>`, and not where another tag begins.
    is_closed: bool,
    /// True if it ends in `/>`.
    is_empty: bool,
}

fn scan(text: &str, start: usize) -> Scanned {
    let bytes = text.as_bytes();
    let is_name = |byte: u8| {
        !matches!(
            byte,
            b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>' | b'<' | b'=' | b'\'' | b'"'
        )
    };
    let name_from = |from: usize| {
        let length = bytes[from..]
            .iter()
            .take_while(|byte| is_name(**byte))
            .count();
        Span::new(from, from + length)
    };
    let name = name_from(start + 1);
    let mut tag = Tag {
        name,
        attributes: Vec::new(),
    };
    let mut at = name.end;
    let mut slash = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'>' => {
                return Scanned {
                    tag,
                    end: at + 1,
                    is_closed: true,
                    is_empty: slash,
                };
            }
            b'<' => break,
            b'/' => slash = true,
            b'\'' | b'"' => {
                let value = value_at(text, at);
                at = (value.end + 1).min(bytes.len());
                // A value belongs to the name before its `=`.
                if let Some((_, slot @ None)) = tag.attributes.last_mut() {
                    *slot = Some(value);
                }
                continue;
            }
            byte if is_name(*byte) => {
                let name = name_from(at);
                tag.attributes.push((name, None));
                at = name.end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Scanned {
        tag,
        end: at,
        is_closed: false,
        is_empty: false,
    }
}

/// The value whose quote is at an offset. One whose end is not written yet ends with its line.
fn value_at(text: &str, quote: usize) -> Span {
    let rest = &text[quote + 1..];
    let closed = rest.find(char::from(text.as_bytes()[quote]));
    let tag = rest.find('<').unwrap_or(rest.len());
    let length = match closed {
        Some(closed) if closed <= tag => closed,
        Some(_) | None => rest.find(['\r', '\n', '<', '>']).unwrap_or(rest.len()),
    };
    Span::new(quote + 1, quote + 1 + length)
}

impl Scanned {
    fn at(&self, text: &str, offset: usize) -> At {
        let holds = |span: Span| span.start <= offset && offset <= span.end;
        if holds(self.tag.name) {
            return At::ElementName {
                span: self.tag.name,
            };
        }
        for (name, value) in &self.tag.attributes {
            if let Some(value) = value
                && holds(*value)
            {
                let end = (value.end + 1).min(text.len());
                return At::AttributeValue {
                    name: *name,
                    value: *value,
                    whole: Span::new(name.start, end),
                };
            }
            if holds(*name) {
                return At::AttributeName { span: *name };
            }
        }
        let before = text[..offset].chars().next_back();
        match before {
            Some(character) if character.is_whitespace() => At::AttributeName {
                span: Span::empty(offset),
            },
            Some(_) | None => At::Elsewhere,
        }
    }
}

impl Cursor {
    /// The table of the element whose start tag the place is in.
    pub(crate) fn element(&self, text: &str) -> Option<&'static ElementSpec> {
        table_of(&self.tags, text)
    }

    /// The table of the element around the start tag, or around the text.
    pub(crate) fn parent(&self, text: &str) -> Option<&'static ElementSpec> {
        let around = match self.at {
            At::Text => &self.tags[..],
            _ => self.tags.split_last()?.1,
        };
        table_of(around, text)
    }

    /// Names of the attributes of the start tag.
    pub(crate) fn attributes<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let attributes = self.tags.last().map(|tag| tag.attributes.as_slice());
        let names = attributes.unwrap_or_default().iter();
        names.filter_map(|(name, _)| name.slice(text)).collect()
    }
}

/// The table of the innermost of these elements, from the outermost known one on.
fn table_of(tags: &[Tag], text: &str) -> Option<&'static ElementSpec> {
    let name = |tag: &Tag| tag.name.slice(text);
    let (outer, root) = tags
        .iter()
        .enumerate()
        .find_map(|(nth, tag)| Some((nth, root(name(tag)?)?)))?;
    let mut table = root;
    for pair in tags[outer..].windows(2) {
        let (_, child) = table.child(name(&pair[1])?)?;
        let own_type = pair[1].value(text, "type");
        let parent_type = pair[0].value(text, "type").unwrap_or("file");
        table = child.pick.element(parent_type, own_type);
    }
    Some(table)
}

fn root(name: &str) -> Option<&'static ElementSpec> {
    Some(match name {
        "domain" => &DOMAIN,
        "devices" => &DEVICES,
        "disk" => &DISK,
        "pool" => &POOL,
        "volume" => &STORAGE_VOLUME,
        "domainsnapshot" => &DOMAIN_SNAPSHOT,
        "domaincheckpoint" => &DOMAIN_CHECKPOINT,
        "domainbackup" => &DOMAIN_BACKUP,
        _ => return None,
    })
}
