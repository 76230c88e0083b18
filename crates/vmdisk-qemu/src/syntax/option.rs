//! The options of a command line with parsed values.

use vmdisk_source::Span;

use super::hole::may_be_disk;
use super::json_text;
use super::pairs;
use super::properties::{Properties, Property};
use super::text::Text;
use crate::failure::ReadFailure;
use crate::limits::{MAX_NAME, MAX_OPTIONS, MAX_PROPERTIES, MAX_PROPERTIES_OF_OPTION, exceeded};

/// An option in the text.
#[derive(Clone, Debug)]
pub(crate) struct WrittenOption {
    /// Its name without dashes; empty for an image without an option.
    pub(crate) name: String,
    /// The spans of option and value.
    pub(crate) span: Span,
    /// Its parsed value, for options whose value has parts.
    pub(crate) properties: Option<Properties>,
    /// The value of an option that names a file of options, or an unknown word.
    pub(crate) text: Option<Text>,
}

impl WrittenOption {
    /// The words that may stand for any number of properties, because a shell fills them in.
    pub(crate) fn open_words(&self) -> impl Iterator<Item = Span> {
        let is_disk = matches!(self.name.as_str(), "blockdev" | "device" | "drive");
        let properties = self.properties.iter().filter(move |_| is_disk);
        properties
            .flat_map(Properties::iter)
            .filter_map(|property| {
                let is_implied = property.key_span.is_empty() && property.is_open();
                match property.has_open_key {
                    true => Some(property.key_span),
                    false => is_implied.then_some(property.span),
                }
            })
    }

    /// True if it may have other properties than the written ones.
    pub(crate) fn is_open(&self) -> bool {
        self.name == UNKNOWN_WORD || self.open_words().next().is_some()
    }
}

/// Text that QEMU does not accept as an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Fault {
    /// Text that starts like JSON, but is not valid.
    pub(crate) fn not_json(fault: json_text::Fault) -> Self {
        Fault {
            span: fault.span,
            message: format!("not JSON: {}", fault.message),
            help: "QEMU refuses it; check the text before this position".to_owned(),
        }
    }
}

/// The arguments within whose quotes the text ends.
fn unclosed(arguments: &[Text]) -> Vec<Fault> {
    let unclosed = arguments.iter().filter(|argument| argument.is_unclosed());
    let fault = |argument: &Text| Fault {
        span: argument.whole(),
        message: "an argument whose quote is never closed".to_owned(),
        help: "close the quote".to_owned(),
    };
    unclosed.map(fault).collect()
}

/// An option and its value in one word, such as that of a quoted variable.
fn one_word(name: &str, word: &Text) -> Option<Fault> {
    let (option, _) = name.split_once([' ', '\t', '\n'])?;
    Some(Fault {
        span: word.whole(),
        message: format!(
            "`-{option}` and its value are one word, which QEMU does not know as an option"
        ),
        help: "write two words; an unquoted variable or an array gives several".to_owned(),
    })
}

/// True if a word is the value of an option. A disk is not that of one that is not known here, or whose value is missing.
fn takes(option: &str, next: &Text) -> bool {
    has_value(option) && !may_be_disk(next.as_str())
}

/// The remedy where a shell took the quotes of JSON.
const UNQUOTED: &str =
    "the shell removes its double quotes: put the whole value between single quotes";

/// True if the text has double quotes that the program does not get.
fn has_lost_quotes(value: &Text, file: &str) -> bool {
    let quotes = |text: &str| text.matches('"').count();
    let written = value.whole().slice(file).unwrap_or_default();
    quotes(written) > quotes(value.as_str())
}

/// The options of a command line, limited in number.
#[derive(Default)]
pub(crate) struct OptionList {
    options: Vec<WrittenOption>,
    properties: usize,
}

impl OptionList {
    /// True if a word without an option is a part of the last value: of its list of properties, or of a text of `-smbios`.
    fn goes_on_with(&self, word: &str) -> bool {
        let Some(last) = self.options.last() else {
            return false;
        };
        let (head, properties) = word.split_once(',').unwrap_or((word, ""));
        let is_head = !head.contains(['/', '=', ':', '.']);
        let are_properties = properties.split(',').all(|it| it.contains('='));
        match last.name.as_str() {
            "smbios" => is_head && (properties.is_empty() || are_properties),
            "name" | "fw_cfg" | "uuid" => is_head && are_properties,
            _ => false,
        }
    }

    /// Adds a word to the last option.
    fn extend_last(&mut self, span: Span) {
        if let Some(last) = self.options.last_mut() {
            last.span.end = span.end;
        }
    }

    /// Appends an option.
    pub(crate) fn push(&mut self, option: WrittenOption) -> Result<(), ReadFailure> {
        let count = option.properties.as_ref().map_or(0, Properties::len);
        self.properties += count;
        if count > MAX_PROPERTIES_OF_OPTION {
            let limit = MAX_PROPERTIES_OF_OPTION;
            return Err(exceeded(option.span, "an option", "properties", limit));
        }
        let is_long = |property: &&Property| property.key.len() > MAX_NAME;
        let properties = option.properties.as_ref();
        if let Some(long) = properties.and_then(|properties| properties.iter().find(is_long)) {
            let owner = "the name of a property";
            return Err(exceeded(long.key_span, owner, "bytes", MAX_NAME));
        }
        let of_all = "the command line";
        if self.options.len() >= MAX_OPTIONS {
            return Err(exceeded(option.span, of_all, "options", MAX_OPTIONS));
        }
        if self.properties > MAX_PROPERTIES {
            return Err(exceeded(option.span, of_all, "properties", MAX_PROPERTIES));
        }
        self.options.push(option);
        Ok(())
    }

    /// The options in order.
    pub(crate) fn into_options(self) -> Vec<WrittenOption> {
        self.options
    }
}

/// Options that have no value; `qemu-options.hx` of QEMU 5.2 to 11.1.
const WITHOUT_VALUE: &[&str] = &[
    "S",
    "alt-grab",
    "async-teardown",
    "audio-help",
    "ctrl-grab",
    "curses",
    "daemonize",
    "enable-fips",
    "enable-kvm",
    "enable-sync-profile",
    "full-screen",
    "h",
    "help",
    "jitdump",
    "mem-prealloc",
    "no-acpi",
    "no-fd-bootchk",
    "no-frame",
    "no-hpet",
    "no-kvm",
    "no-quit",
    "no-reboot",
    "no-shutdown",
    "no-user-config",
    "nodefaults",
    "nodefconfig",
    "nographic",
    "only-migratable",
    "perfmap",
    "portrait",
    "preconfig",
    "s",
    "sdl",
    "semihosting",
    "show-cursor",
    "singlestep",
    "snapshot",
    "usb",
    "version",
    "win2k-hack",
    "xen-attach",
    "xen-domid-restrict",
];

/// True unless an option has no value.
pub(super) fn has_value(name: &str) -> bool {
    !WITHOUT_VALUE.contains(&name) && !name.contains([' ', '\t', '\n'])
}

/// True for a word that is the value of the option before it.
pub(super) fn is_value_of(before: &str, word: &str) -> bool {
    let option = before.strip_prefix('-');
    let option = option.map(|it| it.trim_start_matches('-'));
    option.is_some_and(has_value) && !word.starts_with('-')
}

/// The key of the first part of a value, for options whose value has parts.
fn implied_key(name: &str) -> Option<Option<&'static str>> {
    Some(match name {
        "device" | "blockdev" => Some("driver"),
        "object" => Some("qom-type"),
        "chardev" => Some("backend"),
        // An option of the storage daemon.
        "export" => Some("type"),
        "machine" | "M" | "numa" => Some("type"),
        "accel" => Some("accel"),
        "boot" => Some("order"),
        "cpu" => Some("model"),
        "m" => Some("size"),
        "smp" => Some("cpus"),
        "name" => Some("guest"),
        "uuid" => Some("uuid"),
        "add-fd" | "drive" | "global" | "set" => None,
        _ => return None,
    })
}

/// The name of a placeholder such as `"$@"`, which is replaced before QEMU sees it.
pub(crate) const UNKNOWN_WORD: &str = "$";

/// True for a word that may be anything: it begins with an unknown part and does not look like a path, or is an ellipsis.
fn is_unknown_word(word: &Text) -> bool {
    let text = word.as_str();
    let is_path = || {
        let ends = word.holes().map(|(hole, _)| hole.end);
        let starts = word.holes().skip(1).map(|(hole, _)| hole.start);
        let mut between = ends.zip(starts.chain([text.len()]));
        between.any(|(start, end)| text[start..end].contains(['/', '.']))
    };
    let is_open_option = text.starts_with('-') && word.has_hole();
    is_open_option
        || word.hole_at(0).is_some() && !is_path()
        || matches!(text, "..." | "[...]" | "…" | "[…]")
}

/// True for a value that QEMU reads as JSON. Two braces are a placeholder.
fn is_json(value: &str) -> bool {
    let value = value.trim_start();
    value.starts_with('{') && !value.starts_with("{{")
}

/// Options whose value is only a file name.
const SHORT_DRIVES: &[&str] = &["hda", "hdb", "hdc", "hdd", "cdrom", "fda", "fdb", "sd"];

/// `file=json:{…}` contains the options of the node itself.
fn with_json_name(properties: Properties, file: &str) -> Properties {
    let Some(name) = properties.get("file") else {
        return properties;
    };
    let Some(at) = name
        .value
        .as_str()
        .strip_prefix("json:")
        .map(|_| "json:".len())
    else {
        return properties;
    };
    let text = name.value.part(at..name.value.as_str().len());
    match json_text::object(&text, file) {
        Ok(inner) => {
            let outer = properties
                .iter()
                .filter(|property| property.key != "file")
                .cloned();
            let list = inner.iter().cloned().chain(outer).collect();
            Properties::new(list, properties.syntax.clone())
        }
        Err(_) => properties,
    }
}

/// A word without an option: the name of an image, if it is known.
fn loose(word: &Text) -> WrittenOption {
    let is_unknown = is_unknown_word(word);
    WrittenOption {
        name: if is_unknown { UNKNOWN_WORD } else { "" }.to_owned(),
        span: word.whole(),
        properties: (!is_unknown).then(|| pairs::file_name(word)),
        text: is_unknown.then(|| word.clone()),
    }
}

/// The properties of a JSON object. If it is not valid, they are unknown, and there is a fault.
fn json_object(value: &Text, file: &str, faults: &mut Vec<Fault>) -> Option<Properties> {
    match json_text::object(value, file) {
        Ok(properties) => Some(properties),
        Err(fault) => {
            let mut fault = Fault::not_json(fault);
            if has_lost_quotes(value, file) {
                fault.help = UNQUOTED.to_owned();
            }
            faults.push(fault);
            None
        }
    }
}

/// The options of a command line, and the parts that start like JSON but are not valid.
pub(crate) fn options(
    arguments: &[Text],
    file: &str,
) -> Result<(Vec<WrittenOption>, Vec<Fault>), ReadFailure> {
    let mut options = OptionList::default();
    let mut faults = unclosed(arguments);
    // Programs that change their title leave zero bytes after the last word.
    let filled = arguments.iter().rposition(|word| !word.as_str().is_empty());
    let mut has_empty = false;
    // `ps` prints no quotes.
    let is_unquoted = || !file.contains(['\'', '"', '\\', '$']);
    let mut arguments = arguments.iter().enumerate();
    while let Some((nth, word)) = arguments.next() {
        let text = word.as_str();
        if text.is_empty() {
            let span = word.whole();
            let is_line = file[span.end..].starts_with(['\r', '\n']);
            if !is_line && !has_empty && filled > Some(nth) {
                has_empty = true;
                faults.push(Fault {
                    span,
                    message: "an empty argument, which QEMU reads as a disk without an image"
                        .to_owned(),
                    help: "remove it".to_owned(),
                });
            }
            continue;
        }
        if text.starts_with('-') && word.has_hole() {
            options.push(loose(word))?;
            // It may be the value.
            let next = arguments.clone().next();
            if next.is_some_and(|(_, next)| !next.as_str().starts_with('-')) {
                arguments.next();
            }
            continue;
        }
        let Some(name) = text.strip_prefix('-').filter(|name| !name.is_empty()) else {
            if options.goes_on_with(text) && is_unquoted() {
                options.extend_last(word.whole());
                continue;
            }
            options.push(loose(word))?;
            continue;
        };
        let name = name.strip_prefix('-').unwrap_or(name);
        faults.extend(one_word(name, word));
        let next = arguments.clone().next();
        let value = next
            .filter(|(_, next)| takes(name, next))
            .map(|(_, next)| next.clone());
        if value.is_some() {
            arguments.next();
        }
        let mut span = word.whole();
        if let Some(value) = &value {
            span.end = value.whole().end.max(span.end);
        }
        let properties = match (&value, implied_key(name)) {
            (Some(value), Some(_)) if is_json(value.as_str()) => {
                json_object(value, file, &mut faults)
            }
            (Some(value), Some(implied)) => Some(pairs::pairs(value, implied)),
            (Some(value), None) if SHORT_DRIVES.contains(&name) => Some(pairs::file_name(value)),
            (Some(_) | None, _) => None,
        };
        let properties = match properties {
            Some(properties) if name == "drive" => Some(with_json_name(properties, file)),
            other => other,
        };
        // QEMU prints the properties of the type and exits: there is nothing to check.
        let properties = properties.filter(|properties| {
            let has_help = ["help", "?"]
                .iter()
                .any(|key| properties.get(key).is_some());
            !(has_help && matches!(name, "device" | "object"))
        });
        options.push(WrittenOption {
            name: name.to_owned(),
            span,
            properties,
            text: value.filter(|_| name == "readconfig"),
        })?;
    }
    Ok((options.into_options(), faults))
}
