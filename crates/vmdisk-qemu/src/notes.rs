//! Results of lowering besides the model: spans of fields, problems, and the fields of options.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use vmdisk_model::{Bytes, DiskField, DomainField, FieldPath, Format, ImageField, Switch};
use vmdisk_rule::reading::{DUPLICATE_VALUE, INVALID_VALUE, MISSING_VALUE};
use vmdisk_rule::{Problem, Rule, Severity};
use vmdisk_source::{Edit, Place, SourceMap, Span};

use crate::document::UnmodeledProperty;
use crate::index::Index;
use crate::limits::{MAX_NODES, Suggestions};
use crate::members::Members;
use crate::rules::drive_protocol_unknown::PROTOCOLS;
use crate::rules::property_refused;
use crate::slots::Slots;
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::{Kind, Properties, Property, Syntax};
use crate::syntax::value::{number_of, size_of, switch_of};
use crate::tuning;
use crate::vocabulary;

/// The format that a `driver`, or the `format` of a drive, names.
pub(crate) fn format_of(property: &Property) -> Option<Format> {
    match (property.key.as_str(), property.value.as_str()) {
        // Without a format above it, a protocol is raw.
        ("format", word) if word == "vvfat" || PROTOCOLS.contains(&word) => Some(Format::Raw),
        (_, word) => Format::of_qemu_driver(word),
    }
}

/// Results of lowering besides the model.
pub(crate) struct Notes<'a> {
    options: &'a [WrittenOption],
    map: SourceMap<FieldPath>,
    problems: Vec<Problem>,
    /// Fields whose values are filled in later.
    open: BTreeSet<FieldPath>,
    kept: Vec<UnmodeledProperty>,
    /// The field of each option, once it is known.
    owners: BTreeMap<usize, FieldPath>,
    /// Objects that the model describes completely.
    read_objects: HashSet<usize>,
    slots: Slots,
    /// Nodes that may still be read.
    nodes_left: usize,
    suggestions: Suggestions,
    /// True if words that are unknown may define what nothing else does.
    is_open: bool,
}

/// The notes of a command line during lowering.
pub(crate) struct FinishedNotes {
    pub(crate) map: SourceMap<FieldPath>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) open: BTreeSet<FieldPath>,
    pub(crate) kept: Vec<UnmodeledProperty>,
    pub(crate) slots: Slots,
    pub(crate) owners: BTreeMap<usize, FieldPath>,
}

impl<'a> Notes<'a> {
    /// No notes yet.
    pub(crate) fn new(index: &Index<'a>) -> Self {
        Notes {
            options: index.options(),
            map: SourceMap::default(),
            problems: Vec::new(),
            open: BTreeSet::new(),
            kept: Vec::new(),
            owners: BTreeMap::new(),
            read_objects: HashSet::new(),
            slots: Slots::default(),
            nodes_left: MAX_NODES,
            suggestions: Suggestions::default(),
            is_open: false,
        }
    }

    /// Notes that unknown words may define what nothing else does.
    pub(crate) const fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    /// Adds the notes of another command line for the same guest, whose options stay separate.
    pub(crate) fn add(&mut self, other: Notes<'_>) {
        for (at, place) in other.map.iter() {
            self.map.record(at, place);
        }
        self.problems.extend(other.problems);
        self.open.extend(other.open);
        self.kept.extend(other.kept);
    }

    /// All notes; `open_words` are the words with further properties, and the options that contain them.
    pub(crate) fn finish(self, open_words: &BTreeSet<Span>) -> FinishedNotes {
        let mut slots = self.slots;
        slots.fill(self.options);
        let mut open = self.open;
        for (nth, option) in self.options.iter().enumerate() {
            let owner = self.owners.get(&nth).and_then(|owner| owner.disk());
            if let Some(disk) = owner.filter(|_| open_words.contains(&option.span)) {
                let of_disk = DiskField::ALL
                    .iter()
                    .map(|field| FieldPath::Disk(disk, *field));
                let fields = of_disk.chain([FieldPath::Image(disk, 0, ImageField::Format)]);
                open.extend(fields.filter(|at| self.map.place(*at).is_none()));
            }
        }
        FinishedNotes {
            map: self.map,
            problems: self.problems,
            open,
            kept: self.kept,
            slots,
            owners: self.owners,
        }
    }

    /// The options of disks and controllers, for additions.
    pub(crate) const fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Records the field of an option.
    pub(crate) fn own(&mut self, option: usize, at: FieldPath) {
        self.owners.insert(option, at);
    }

    /// The field of an option.
    pub(crate) fn owner(&self, option: usize) -> Option<FieldPath> {
        self.owners.get(&option).copied()
    }

    /// Records that the model describes an object completely.
    pub(crate) fn read_object(&mut self, option: usize) {
        self.read_objects.insert(option);
    }

    /// True for an object that the model describes completely.
    pub(crate) fn is_read_object(&self, option: usize) -> bool {
        self.read_objects.contains(&option)
    }

    /// The most similar known word.
    pub(crate) fn nearest<'w>(
        &mut self,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) -> Option<&'w str> {
        self.suggestions.nearest(word, known)
    }

    /// Counts a node of a disk; false if the limit is exceeded.
    pub(crate) fn count_node(&mut self, nth: usize, option: usize) -> bool {
        let Some(left) = self.nodes_left.checked_sub(1) else {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let span = self.options[option].span;
            let message = format!("all disks together have more than {MAX_NODES} nodes");
            self.problem(&INVALID_VALUE, at, span, message);
            return false;
        };
        self.nodes_left = left;
        true
    }

    /// Records a problem.
    pub(crate) fn problem(
        &mut self,
        rule: &'static Rule,
        at: FieldPath,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.problems.push(Problem::new(rule, at, span, message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Records that a name is not defined, unless an unknown word may define it.
    pub(crate) fn undefined(
        &mut self,
        at: FieldPath,
        span: Span,
        message: String,
        help: impl Into<String>,
    ) {
        if !self.is_open {
            self.problem(&MISSING_VALUE, at, span, message).help = Some(help.into());
        }
    }

    /// Records the span of a field.
    pub(crate) fn record(&mut self, at: FieldPath, property: &Property) {
        self.record_place(
            at,
            Place {
                span: property.span,
                whole: property.whole,
                attributes_end: None,
            },
        );
    }

    /// Records the span of a field whose value may be filled in later.
    pub(crate) fn record_value(&mut self, at: FieldPath, property: &Property) {
        self.record(at, property);
        let is_value = matches!(at, FieldPath::Image(_, _, ImageField::Format)) || !at.has_parts();
        if is_value && property.is_open() {
            self.open.insert(at);
        }
    }

    /// Notes a field whose value the text does not decide.
    pub(crate) fn leave_open(&mut self, at: FieldPath) {
        self.open.insert(at);
    }

    /// Records an option as the span of a field.
    pub(crate) fn record_option(&mut self, at: FieldPath, option: usize) {
        let span = self.options[option].span;
        self.record_place(
            at,
            Place {
                span,
                whole: span,
                attributes_end: None,
            },
        );
    }

    /// Records the span of a field.
    pub(crate) fn record_place(&mut self, at: FieldPath, place: Place) {
        self.map.record(at, place);
    }

    /// The span of a field that is set.
    pub(crate) fn place(&self, at: FieldPath) -> Option<Place> {
        self.map.place(at)
    }

    /// The span of a field, or of the nearest enclosing one.
    pub(crate) fn span_around(&self, at: FieldPath) -> Span {
        let place = self.map.resolve(at).map(|(_, place)| place.span);
        place.unwrap_or_default()
    }

    /// Records a setting of a disk or controller that the model does not have.
    pub(crate) fn keep(&mut self, at: FieldPath, key: impl Into<String>, span: Span) {
        self.kept.push(UnmodeledProperty {
            at,
            key: key.into(),
            span,
            is_tuning: false,
            is_open: false,
        });
    }

    /// Reports a format that QEMU does not have.
    pub(crate) fn report_format(&mut self, at: FieldPath, property: &Property) {
        let text = property.value.as_str();
        // For `help`, QEMU lists its formats, and ends.
        if property.is_open() || matches!(text, "help" | "?") {
            return;
        }
        let meant = Format::of_common_word(text).and_then(Format::qemu_driver);
        let help = meant.map(|meant| format!("did you mean `{meant}`?"));
        let message = format!("format `{text}` is not known");
        self.problem(&INVALID_VALUE, at, property.span, message)
            .help = help;
    }

    /// A value from a list of words.
    pub(crate) fn word<T>(
        &mut self,
        at: FieldPath,
        property: &Property,
        words: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.record_value(at, property);
        let text = property.value.as_str();
        if let Some(value) = read(text) {
            return Some(value);
        }
        if !property.is_open() {
            let near = self.suggestions.nearest(text, words.iter().copied());
            let message = format!(
                "invalid value `{text}` for `{}`, expected one of {}",
                property.key,
                words.join(", ")
            );
            let span = property.span;
            let problem = self.problem(&INVALID_VALUE, at, span, message);
            if let Some(near) = near {
                problem.help = Some(format!("did you mean `{near}`?"));
                problem.fix = vec![Edit::replace(span, near)];
            }
        }
        None
    }

    /// A switch; its JSON form depends on the property.
    pub(crate) fn switch(&mut self, at: FieldPath, property: &Property) -> Option<Switch> {
        self.word(at, property, &["on", "off"], switch_of)
    }

    /// A switch of a node, which is a boolean in JSON.
    pub(crate) fn node_switch(&mut self, at: FieldPath, property: &Property) -> Option<Switch> {
        let words = match property.kind {
            Kind::Plain => ["on", "off"],
            _ => ["true", "false"],
        };
        self.word(at, property, &words, switch_of)
    }

    /// A count.
    pub(crate) fn number(&mut self, at: FieldPath, property: &Property) -> Option<u64> {
        self.record_value(at, property);
        let text = property.value.as_str();
        let number = number_of(text);
        let is_quoted = property.kind == Kind::Text;
        if (number.is_none() || is_quoted) && !property.is_open() {
            let message = if number.is_some() {
                format!(
                    "`{}` is a number in quotes, which QEMU refuses",
                    property.key
                )
            } else {
                format!(
                    "invalid value `{text}` for `{}`, expected a number",
                    property.key
                )
            };
            self.problem(&INVALID_VALUE, at, property.span, message);
        }
        number
    }

    /// A number of bytes; `-drive` accepts the suffix of a unit, `-blockdev` does not.
    pub(crate) fn bytes(
        &mut self,
        at: FieldPath,
        property: &Property,
        is_drive: bool,
    ) -> Option<Bytes> {
        let text = property.value.as_str();
        let scaled = size_of(text, 1).filter(|_| number_of(text).is_none());
        if let Some(size) = scaled.filter(|_| is_drive) {
            self.record_value(at, property);
            return Some(size);
        }
        let reported = self.problems.len();
        let number = self.number(at, property);
        if let (Some(size), Some(problem)) = (scaled, self.problems.get_mut(reported)) {
            problem.help = Some(format!("write the bytes without a unit: {}", size.0));
        }
        number.map(Bytes)
    }

    /// A count of 32 bits.
    pub(crate) fn number32(&mut self, at: FieldPath, property: &Property) -> Option<u32> {
        let number = self.number(at, property)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            let message = format!("{number} is too large for `{}`", property.key);
            self.problem(&INVALID_VALUE, at, property.span, message);
        }
        small
    }

    /// Keeps the unread parts of an option that has an owner.
    pub(crate) fn keep_the_rest(&mut self, index: &Index<'a>) {
        for (option, at) in self.owners.clone() {
            if let Some(members) = index.properties(option) {
                self.keep_rest_of(&index.options()[option].name, members, at);
            }
        }
        // A key that counts otherwise may be why an option has no owner.
        for number in 0..index.options().len() {
            if !self.owners.contains_key(&number)
                && let Some(members) = index.properties(number)
            {
                let at = FieldPath::Domain(DomainField::Devices);
                let is_drive = index.options()[number].name == "drive";
                let format = members.get("format").filter(|_| is_drive);
                if let Some(format) = format.filter(|it| format_of(it).is_none()) {
                    self.report_format(at, format);
                }
                self.report_twice(members.properties(), at, true);
            }
        }
    }

    /// Reports keys that are set twice; QEMU refuses them in JSON.
    fn report_twice(&mut self, properties: &Properties, at: FieldPath, only_json: bool) {
        let is_json = matches!(properties.syntax, Syntax::Json { .. });
        for (key, span, unused) in &properties.twice {
            if is_json {
                let message =
                    format!("`{key}` is set twice in one JSON object, which QEMU refuses");
                let problem = self.problem(&DUPLICATE_VALUE, at, *span, message);
                problem.severity = Severity::Error;
                problem.help = Some("remove one of the two".to_owned());
            } else if !only_json {
                let is_first = properties.has_first(key);
                let which = if is_first { "first" } else { "last" };
                let message = format!("`{key}` is set twice in one option: the {which} one counts");
                let problem = self.problem(&DUPLICATE_VALUE, at, *span, message);
                // Which id of a section of a file counts is not known.
                if is_first || key != "id" {
                    problem.fix = vec![Edit::delete(*unused)];
                }
            }
        }
    }

    fn keep_rest_of(&mut self, name: &str, members: Members<'_>, at: FieldPath) {
        self.report_twice(members.properties(), at, false);
        for property in members.not_accepted() {
            // The first of two values with one key is not used.
            if members.has_accepted(&property.key) {
                continue;
            }
            // `property-refused` says where it belongs.
            let is_of_device = name == "blockdev" && property.key.ends_with("cache.writeback");
            if !is_of_device && !vocabulary::knows(name, &property.key) && !property.has_open_key {
                self.refuse_key(name, property, at);
            }
            self.kept.push(UnmodeledProperty {
                at,
                key: property.key.clone(),
                span: property.span,
                is_tuning: tuning::is_tuning(name, &property.key),
                is_open: property.has_open_key,
            });
        }
    }

    /// Reports a property that no version of QEMU supports in this option.
    fn refuse_key(&mut self, name: &str, property: &Property, at: FieldPath) {
        let message = format!("unknown property `{}`", property.key);
        let near = self
            .suggestions
            .nearest(&property.key, vocabulary::words(name));
        let span = property.key_span;
        // The field that was meant is not missing.
        let meant = near.zip(at.disk());
        let at = match meant.filter(|_| matches!(name, "drive" | "blockdev")) {
            Some(("format", nth)) => FieldPath::Image(nth, 0, ImageField::Format),
            Some(("cache", nth)) => FieldPath::Disk(nth, DiskField::Cache),
            Some(("aio", nth)) => FieldPath::Disk(nth, DiskField::Aio),
            Some(("discard", nth)) => FieldPath::Disk(nth, DiskField::Discard),
            Some(("detect-zeroes", nth)) => FieldPath::Disk(nth, DiskField::DetectZeroes),
            _ => at,
        };
        let problem = self.problem(&property_refused::RULE, at, span, message);
        problem.help = Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it: QEMU does not start with it".to_owned(),
        });
        if let Some(near) = near {
            problem.fix = vec![Edit::replace(span, near)];
        }
    }
}
