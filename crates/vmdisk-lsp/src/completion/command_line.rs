//! Options of QEMU, their keys and values, in key=value and in JSON syntax.

use vmdisk::Target;
use vmdisk_facts::{MemberTable, Owner, ValueKind};
use vmdisk_fields::{DISK_FIELDS, FieldRow, disk};
use vmdisk_model::{FieldKind, Switch};
use vmdisk_source::Span;

use crate::completion::flow::{self, Scan};
use crate::completion::proposal::{Kind, Proposal, Proposals};

/// The options about disks.
const OPTIONS: &[&str] = &[
    "-blockdev",
    "-device",
    "-drive",
    "-machine",
    "-object",
    "-readconfig",
];

/// The key at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'t> {
    /// The device, block driver or object that it belongs to, if that is written.
    pub(crate) owner: Option<Owner<'t>>,
    pub(crate) name: &'t str,
    pub(crate) span: Span,
}

/// A place in the value of an option.
#[derive(Debug)]
struct Place<'t> {
    option: &'t str,
    key: Key<'t>,
    /// Objects of JSON around the key, with a dot behind each: `cache.`.
    prefix: String,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key { is_quoted: bool },
    Value { span: Span, is_json: bool },
}

pub(crate) fn complete(text: &str, offset: usize, target: &Target) -> Option<Proposals> {
    let (option, word) = match word_at(text, offset)? {
        Word::Option(span) => {
            return Some(Proposals {
                span,
                list: OPTIONS.iter().map(|name| plain(name, Kind::Name)).collect(),
            });
        }
        Word::Value { option, span } => (option, span),
    };
    let place = place(text, option, word, offset)?;
    Some(match place.role {
        Role::Key { is_quoted } => Proposals {
            span: place.key.span,
            list: keys(&place, is_quoted, target),
        },
        Role::Value { span, is_json } => Proposals {
            span,
            list: values(&place, is_json),
        },
    })
}

/// The key at a place, or the key of the value there.
pub(crate) fn key_at(text: &str, offset: usize) -> Option<Key<'_>> {
    match word_at(text, offset)? {
        Word::Value { option, span } => place(text, option, span, offset).map(|place| place.key),
        Word::Option(_) => None,
    }
}

/// The releases of QEMU that have a member, in words.
pub(crate) fn releases(owner: Owner<'_>, name: &str) -> String {
    let table = MemberTable::recorded();
    let with = table.releases_with(owner, name);
    let all = table.releases();
    let words = |versions: &[vmdisk_facts::Version]| {
        let words: Vec<String> = versions.iter().map(ToString::to_string).collect();
        words.join(", ")
    };
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if with.len() == all.len() => format!("QEMU {first} to {last}"),
        _ => format!("QEMU {}, of {}", words(&with), words(all)),
    }
}

/// A word of the shell.
enum Word<'t> {
    Option(Span),
    Value { option: &'t str, span: Span },
}

/// The word at an offset, without the quotes around it, and the option before it.
fn word_at(text: &str, offset: usize) -> Option<Word<'_>> {
    text.is_char_boundary(offset).then_some(())?;
    let bytes = text.as_bytes();
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == 0;
    let mut last: Option<Span> = None;
    let mut at = 0;
    while at <= bytes.len() {
        while bytes.get(at).is_some_and(|byte| is_blank(*byte)) && at < offset {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let start = at;
        let mut quote = None;
        while let Some(byte) = bytes.get(at) {
            match (quote, byte) {
                (Some(open), byte) if open == *byte => quote = None,
                (Some(b'"'), b'\\') => at += 1,
                (Some(_), _) => {}
                (None, b'\'' | b'"') => quote = Some(*byte),
                (None, b'\\') => at += 1,
                (None, byte) if is_blank(*byte) => break,
                (None, _) => {}
            }
            at += 1;
        }
        at = at.min(bytes.len());
        let span = Span::new(start, at);
        if offset <= at {
            return classify(text, last, span);
        }
        // The backslash at the end of a line is not a word.
        if text
            .get(start..at)
            .is_some_and(|word| !word.trim_matches(['\\', '\n', '\r']).is_empty())
        {
            last = Some(span);
        }
        at = at.max(start + 1);
    }
    None
}

fn classify(text: &str, last: Option<Span>, span: Span) -> Option<Word<'_>> {
    let word = span.slice(text)?;
    if word.starts_with('-') {
        return Some(Word::Option(span));
    }
    let option = last?.slice(text)?.strip_prefix('-')?;
    let quote = word
        .chars()
        .next()
        .filter(|character| matches!(character, '\'' | '"'));
    let inner = quote.map_or(span, |quote| {
        let is_closed = word.len() > 1 && word.ends_with(quote);
        Span::new(span.start + 1, span.end - usize::from(is_closed))
    });
    Some(Word::Value {
        option: option.trim_start_matches('-'),
        span: inner,
    })
}

fn place<'t>(text: &'t str, option: &'t str, word: Span, offset: usize) -> Option<Place<'t>> {
    let value = word.slice(text)?;
    match value.starts_with('{') {
        true => place_in_json(text, option, word, offset),
        false => place_in_pairs(text, option, word, offset),
    }
}

fn place_in_json<'t>(
    text: &'t str,
    option: &'t str,
    word: Span,
    offset: usize,
) -> Option<Place<'t>> {
    let Scan::In(found) = flow::scan(text, word.start, word.end, offset) else {
        return None;
    };
    let driver = |frame: &flow::Frame<'t>| {
        let mut pairs = frame.pairs.iter();
        let key = if option == "object" {
            "qom-type"
        } else {
            "driver"
        };
        pairs
            .find(|(name, _)| *name == key)
            .map(|(_, driver)| *driver)
    };
    let owner_at = found
        .frames
        .iter()
        .rposition(|frame| driver(frame).is_some());
    let owner = owner_at.and_then(|nth| owner(option, driver(&found.frames[nth])?));
    let last = found.frames.len().checked_sub(1)?;
    let between = &found.frames[owner_at.unwrap_or_default()..last];
    let prefix = between.iter().filter_map(|frame| frame.key);
    let span = found.span;
    Some(Place {
        option,
        key: Key {
            owner,
            name: match found.is_key {
                true => span.slice(text)?,
                false => found.frames[last].key?,
            },
            span,
        },
        prefix: prefix.map(|key| format!("{key}.")).collect(),
        role: match found.is_key {
            true => Role::Key {
                is_quoted: found.is_quoted,
            },
            false => Role::Value {
                span,
                is_json: true,
            },
        },
    })
}

fn place_in_pairs<'t>(
    text: &'t str,
    option: &'t str,
    word: Span,
    offset: usize,
) -> Option<Place<'t>> {
    // The key of the name of a device, block driver or object; it may be left out at the start of the first and last.
    let implied = if option == "object" {
        "qom-type"
    } else {
        "driver"
    };
    let mut pairs: Vec<Pair<'t>> = Vec::new();
    let mut start = word.start;
    for part in word.slice(text)?.split(',') {
        let span = Span::new(start, start + part.len());
        start = span.end + 1;
        let is_implied = pairs.is_empty() && matches!(option, "device" | "object");
        pairs.push(match part.split_once('=') {
            Some((key, value)) => Pair {
                key,
                value: Some(value),
                span,
            },
            None => Pair {
                key: if is_implied { implied } else { part },
                value: is_implied.then_some(part),
                span,
            },
        });
    }
    let value_of = |key: &str| pairs.iter().find(|pair| pair.key == key)?.value;
    let mut found = pairs.iter();
    let Pair { key, value, span } =
        found.find(|pair| pair.span.start <= offset && offset <= pair.span.end)?;
    // `file.filename` belongs to the node inside.
    let inner = key.rsplit_once('.').and_then(|(outer, name)| {
        let driver = value_of(&format!("{outer}.driver"))?;
        Some((owner(option, driver)?, name))
    });
    let (owner, name) = match inner {
        Some((owner, name)) => (Some(owner), name),
        None => (
            value_of(implied).and_then(|driver| owner(option, driver)),
            *key,
        ),
    };
    let value = value.map(|value| Span::new(span.end - value.len(), span.end));
    let value_here = value.filter(|value| offset >= value.start);
    let key_end = span.start + key.len();
    Some(Place {
        option,
        key: Key {
            owner,
            name,
            span: match value_here {
                Some(_) => *span,
                None => Span::new(key_end - name.len(), key_end),
            },
        },
        prefix: String::new(),
        role: match value_here {
            Some(span) => Role::Value {
                span,
                is_json: false,
            },
            // The `=` is there already.
            None => Role::Key {
                is_quoted: value.is_some(),
            },
        },
    })
}

/// A part of key=value syntax.
struct Pair<'t> {
    key: &'t str,
    value: Option<&'t str>,
    span: Span,
}

/// The owner of keys by the option and the name of its driver.
fn owner<'t>(option: &str, driver: &'t str) -> Option<Owner<'t>> {
    match option {
        "device" => Some(Owner::Device(driver)),
        "object" => Some(Owner::Object(driver)),
        "blockdev" => Some(Owner::Node(driver)),
        _ => None,
    }
}

fn keys(place: &Place<'_>, is_quoted: bool, target: &Target) -> Vec<Proposal> {
    let kind = if is_quoted {
        Kind::Name
    } else {
        Kind::OptionKey
    };
    let table = MemberTable::recorded();
    let members = place
        .key
        .owner
        .and_then(|owner| Some((owner, table.members(owner)?)));
    let Some((owner, members)) = members else {
        let mut keys: Vec<&str> = vmdisk_qemu::option_keys(place.option).collect();
        if matches!(place.option, "blockdev") && place.prefix.is_empty() {
            keys = vec!["driver", "node-name"];
        }
        return keys.into_iter().map(|key| plain(key, kind)).collect();
    };
    let names = members
        .keys()
        .filter_map(|name| name.strip_prefix(&place.prefix));
    let mut list: Vec<Proposal> = names
        .filter(|name| !vmdisk_facts::is_unstable(name))
        .map(|name| {
            let full = format!("{}{name}", place.prefix);
            Proposal {
                detail: releases(owner, &full),
                documentation: row_of(owner, &full).map_or_else(String::new, |row| {
                    format!("{}; libvirt `{}`.", row.noun, row.libvirt.place)
                }),
                is_unavailable: target.has_member(owner, &full).is_no(),
                ..plain(name, kind)
            }
        })
        .collect();
    // Names inside an object come after those of the object itself.
    list.sort_by_key(|proposal| proposal.label.contains('.'));
    list
}

/// The row of a property or member.
fn row_of(owner: Owner<'_>, name: &str) -> Option<&'static FieldRow> {
    let mut rows = DISK_FIELDS.iter().map(|field| disk(*field));
    rows.find(|row| match owner {
        Owner::Device(_) => row.property() == Some(name),
        Owner::Node(_) => row.node == Some(name),
        Owner::Object(_) => false,
    })
}

fn values(place: &Place<'_>, is_json: bool) -> Vec<Proposal> {
    let name = format!("{}{}", place.prefix, place.key.name);
    let table = MemberTable::recorded();
    if matches!(name.as_str(), "driver" | "qom-type")
        || (place.option, name.as_str()) == ("drive", "format")
    {
        return drivers(place.option);
    }
    let member = place
        .key
        .owner
        .and_then(|owner| Some((owner, table.find(owner, &name)?)));
    let words: Vec<&str> = match member {
        Some((_, member)) if member.kind == ValueKind::Bool && is_json => vec!["true", "false"],
        Some((_, member)) if member.kind == ValueKind::Bool => Switch::WORDS.to_vec(),
        Some((_, member)) if member.kind == ValueKind::OnOffAuto => vec!["on", "off", "auto"],
        Some((owner, member)) if member.kind == ValueKind::Any => words_of(row_of(owner, &name)),
        Some(_) => Vec::new(),
        None if place.option == "drive" => words_of_drive(&name),
        None => Vec::new(),
    };
    let detail = member.map_or_else(String::new, |(owner, _)| releases(owner, &name));
    let proposal = |word: &str| Proposal {
        detail: detail.clone(),
        ..plain(word, Kind::Value)
    };
    words.into_iter().map(proposal).collect()
}

/// The words of a field as QEMU has them.
fn words_of(row: Option<&'static FieldRow>) -> Vec<&'static str> {
    let Some(row) = row else { return Vec::new() };
    match row.kind {
        Some(FieldKind::Word(words)) => words.iter().map(|word| row.qemu_word(word)).collect(),
        Some(FieldKind::Switch) => Switch::WORDS.to_vec(),
        _ => Vec::new(),
    }
}

fn words_of_drive(key: &str) -> Vec<&'static str> {
    match key {
        "if" => vec![
            "none", "virtio", "scsi", "ide", "floppy", "sd", "pflash", "mtd", "xen",
        ],
        "media" => vec!["disk", "cdrom"],
        "read-only" | "readonly" | "snapshot" => Switch::WORDS.to_vec(),
        _ => {
            let mut rows = DISK_FIELDS.iter().map(|field| disk(*field));
            words_of(rows.find(|row| [row.node, row.property(), row.spec].contains(&Some(key))))
        }
    }
}

/// The names of devices, block drivers or objects.
fn drivers(option: &str) -> Vec<Proposal> {
    let owners = MemberTable::recorded().owners();
    let names = owners.filter_map(|(owner, _)| match (option, owner) {
        ("device", Owner::Device(name))
        | ("object", Owner::Object(name))
        | ("blockdev" | "drive", Owner::Node(name)) => Some(name),
        _ => None,
    });
    names.map(|name| plain(name, Kind::Value)).collect()
}

fn plain(label: &str, kind: Kind) -> Proposal {
    Proposal {
        label: label.to_owned(),
        kind,
        detail: String::new(),
        documentation: String::new(),
        is_unavailable: false,
    }
}
