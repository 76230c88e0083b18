//! The options of disks and controllers, kept for edits.

use std::collections::{BTreeMap, HashMap, HashSet};

use vmdisk_source::{Edit, Span};

use crate::syntax::option::WrittenOption;
use crate::syntax::properties::{Kind, Properties, Syntax};

/// The options of disks and controllers, reduced to the needs of edits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// The option of each disk's topmost node.
    pub(crate) top: HashMap<usize, usize>,
    /// The option of the node that opens its file.
    pub(crate) bottom: HashMap<usize, usize>,
    /// The option of its device.
    pub(crate) device: HashMap<usize, usize>,
    /// The option of each controller.
    pub(crate) controller: HashMap<usize, usize>,
    /// The objects that hold the guest's memory.
    pub(crate) memory: Vec<usize>,
    pub(crate) options: BTreeMap<usize, SlotOption>,
    /// Disks that bypass the page cache and ignore flushes, which is no mode.
    pub(crate) direct_unsafe: HashSet<usize>,
}

/// An option, reduced to the needs of edits.
#[derive(Clone, Debug)]
pub(crate) struct SlotOption {
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) syntax: Syntax,
    pub(crate) values: HashMap<String, SlotValue>,
}

/// A value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotValue {
    pub(crate) span: Span,
    pub(crate) whole: Span,
    pub(crate) kind: Kind,
}

impl Slots {
    /// Keeps the required parts of the options.
    pub(crate) fn fill(&mut self, options: &[WrittenOption]) {
        let used = [&self.top, &self.bottom, &self.device, &self.controller];
        let used = used.iter().flat_map(|slots| slots.values());
        let used: Vec<usize> = used.chain(&self.memory).copied().collect();
        for nth in used {
            let WrittenOption {
                name,
                properties: Some(properties),
                ..
            } = &options[nth]
            else {
                continue;
            };
            self.options.entry(nth).or_insert_with(|| SlotOption {
                name: name.clone(),
                driver: properties
                    .get("driver")
                    .map(|driver| driver.value.as_str().to_owned())
                    .unwrap_or_default(),
                syntax: properties.syntax.clone(),
                values: properties
                    .iter()
                    .map(|property| {
                        let value = SlotValue {
                            span: property.span,
                            whole: property.whole,
                            kind: property.kind,
                        };
                        (property.key.clone(), value)
                    })
                    .collect(),
            });
        }
    }

    /// The edit that adds a plain word to an option that does not have it.
    pub(crate) fn added(properties: &Properties, key: &str, word: &str) -> Option<Edit> {
        if properties.get(key).is_some() {
            return None;
        }
        let values = HashMap::new();
        insertion(
            &properties.syntax,
            &values,
            key,
            &NewValue::Word(word.to_owned()),
        )
    }
}

/// A value to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewValue {
    Word(String),
    Number(String),
    Bool(bool),
}

impl NewValue {
    /// Its text without quotes.
    pub(crate) fn text(&self, is_json: bool) -> &str {
        match (self, is_json) {
            (NewValue::Word(text) | NewValue::Number(text), _) => text,
            (NewValue::Bool(true), true) => "true",
            (NewValue::Bool(false), true) => "false",
            (NewValue::Bool(true), false) => "on",
            (NewValue::Bool(false), false) => "off",
        }
    }

    pub(crate) const fn is_quoted(&self) -> bool {
        matches!(self, NewValue::Word(_))
    }
}

/// A further member at the end of an option.
pub(crate) fn insertion(
    syntax: &Syntax,
    values: &HashMap<String, SlotValue>,
    key: &str,
    value: &NewValue,
) -> Option<Edit> {
    let text = value.text(matches!(syntax, Syntax::Json { .. }));
    match syntax {
        Syntax::FileName => None,
        Syntax::Pairs { end } => Some(Edit::insert(*end, format!(",{key}={text}"))),
        Syntax::Lines { end, is_cut } => {
            let before = if *is_cut { "\n" } else { "" };
            let after = if *is_cut { "" } else { "\n" };
            let line = format!("{before}  {key} = \"{text}\"{after}");
            Some(Edit::insert(*end, line))
        }
        Syntax::Json { end, quote } => {
            let text = if value.is_quoted() {
                format!("{quote}{text}{quote}")
            } else {
                text.to_owned()
            };
            match key.split_once('.') {
                None => Some(Edit::insert(*end, format!(",{quote}{key}{quote}:{text}"))),
                // Adding to an existing object is not supported.
                Some((outer, _))
                    if values
                        .keys()
                        .any(|key| key.starts_with(&format!("{outer}."))) =>
                {
                    None
                }
                Some((outer, inner)) => Some(Edit::insert(
                    *end,
                    format!(",{quote}{outer}{quote}:{{{quote}{inner}{quote}:{text}}}"),
                )),
            }
        }
    }
}
