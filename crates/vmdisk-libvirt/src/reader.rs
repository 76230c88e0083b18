//! Walks the tree with the tables: records spans and problems, and keeps unmodeled parts.

use std::collections::BTreeSet;

use vmdisk_model::FieldPath;
use vmdisk_rule::reading::{DUPLICATE_VALUE, INVALID_VALUE, MISSING_VALUE};
use vmdisk_rule::{Problem, Rule};
use vmdisk_source::{Edit, Place, SourceMap, Span, VersionedSyntax, WordKind};

use crate::element::{Child, Element};
use crate::rules;
use crate::unmodeled::UnmodeledParts;
use crate::value::pci_max;
use crate::vocabulary::{AttributeSpec, ElementSpec, Field, FieldOwner, Need, Since, ValueSpec};
use crate::vocabulary::{other_devices, type_of_source, types_with_attribute};
use crate::xml::{Attribute, Node};

/// The first repeated value of an attribute among the children of a name.
fn repeated_value<'d>(element: &Element<'d>, child: &str, attribute: &str) -> Option<&'d str> {
    let mut seen = BTreeSet::new();
    element
        .children
        .iter()
        .filter(|own| own.is_named(child))
        .filter_map(|own| own.node.attribute(attribute))
        .find(|value| !seen.insert(*value))
}

/// True for the `type='none'` that vdsm writes next to `relabel='no'` on the label of a source. libvirt drops it,
/// because it means the same.
fn repeats_relabel(label: Node<'_>, name: &str, value: &str) -> bool {
    label.is_named("seclabel")
        && (name, value) == ("type", "none")
        && label.attribute("relabel") == Some("no")
}

/// Later additions are recorded; earlier libvirts are no longer in use.
const OLDEST: Since = (4, 0, 0);

/// The help for a name without a similar known one.
const CHECK_SPELLING: &str = "check the spelling in libvirt's documentation, or remove it";

/// Collects the results of reading a document.
pub(crate) struct Reader<'t> {
    pub(crate) text: &'t str,
    pub(crate) map: SourceMap<FieldPath>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) versioned_syntax: Vec<VersionedSyntax<FieldPath>>,
    /// True if the domain type says that QEMU runs the guest.
    pub(crate) is_run_by_qemu: bool,
    /// False while the reader checks elements outside the model.
    records: bool,
    /// False if nobody writes the document: its unmodeled parts are not copied then.
    keeps: bool,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str, keeps: bool) -> Self {
        Reader {
            text,
            map: SourceMap::of_text(text),
            problems: Vec::new(),
            versioned_syntax: Vec::new(),
            is_run_by_qemu: false,
            records: true,
            keeps,
        }
    }

    /// The path of a field, if the element is part of the model.
    fn path(&self, field: Option<Field>, owner: FieldOwner) -> Option<FieldPath> {
        field.filter(|_| self.records)?.path(owner)
    }

    /// Records a problem.
    pub(crate) fn problem(
        &mut self,
        rule: &'static Rule,
        at: FieldPath,
        span: Span,
        message: String,
    ) -> &mut Problem {
        self.problems.push(Problem::new(rule, at, span, message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Records the span of an element that is not opened.
    pub(crate) fn record_element(&mut self, at: FieldPath, node: Node<'_>) {
        let place = Place {
            span: node.tag(),
            whole: whole(self.text, node.span()),
            attributes_end: None,
        };
        self.map.record(at, place);
    }

    fn slice(&self, span: Span) -> &'t str {
        span.slice(self.text).unwrap_or_default()
    }

    /// Opens an element: records the spans of the element and its attributes, and checks their values.
    pub(crate) fn open<'d>(
        &mut self,
        node: Node<'d>,
        spec: &'static ElementSpec,
        fields: [Option<Field>; 2],
        outer: FieldPath,
        owner: FieldOwner,
    ) -> Element<'d> {
        self.open_since(node, spec, OLDEST, fields, outer, owner)
    }

    /// Opens an element that libvirt supports since `since`.
    fn open_since<'d>(
        &mut self,
        node: Node<'d>,
        spec: &'static ElementSpec,
        since: Since,
        fields: [Option<Field>; 2],
        outer: FieldPath,
        owner: FieldOwner,
    ) -> Element<'d> {
        let paths = fields.map(|field| self.path(field, owner));
        let at = paths[0].or(paths[1]).unwrap_or(outer);
        if paths.iter().any(Option::is_some) {
            let place = Place {
                span: self.content_span(node, spec),
                whole: whole(self.text, node.span()),
                attributes_end: Some(node.attributes_end()),
            };
            for path in paths.into_iter().flatten() {
                self.map.record(path, place);
            }
        }
        let mut element = Element::new(node, spec, at, owner, since);
        self.open_attributes(&mut element);
        self.check_needs(&element);
        if let Some(content) = spec.content {
            self.check_content(&element, content);
        }
        element
    }

    fn check_needs(&mut self, element: &Element<'_>) {
        let has = |name: &str| element.peek(name).is_some_and(|value| !value.is_empty());
        let has_child = |name: &str| element.children.iter().any(|child| child.is_named(name));
        let name = element.spec.name;
        for need in element.spec.needs {
            let missing = match *need {
                Need::Attribute(attribute) => {
                    (!has(attribute)).then(|| format!("`{attribute}` of `<{name}>`"))
                }
                Need::Child(child) => {
                    (!has_child(child)).then(|| format!("`<{child}>` in `<{name}>`"))
                }
                Need::EitherAttribute(one, other) => (!has(one) && !has(other))
                    .then(|| format!("`{one}` or `{other}` of `<{name}>`")),
                Need::NoChildWith { .. } | Need::Distinct(..) => None,
            };
            if let Some(missing) = missing {
                let message = format!("{missing} is missing");
                self.problem(&MISSING_VALUE, element.at, element.tag, message);
            }
            let too_much = match *need {
                Need::Attribute(_) | Need::Child(_) => None,
                Need::EitherAttribute(one, other) => (has(one) && has(other)).then(|| {
                    format!("`<{name}>` has both `{one}` and `{other}`, and only one can count")
                }),
                Need::NoChildWith {
                    child,
                    attribute,
                    value,
                } => (element.peek(attribute) == Some(value) && has_child(child))
                    .then(|| format!("`<{name} {attribute}='{value}'>` cannot have a `<{child}>`")),
                Need::Distinct(child, attribute) => repeated_value(element, child, attribute)
                    .map(|value| format!("two `<{child}>` have the {attribute} `{value}`")),
            };
            if let Some(message) = too_much {
                self.problem(&INVALID_VALUE, element.at, element.tag, message);
            }
        }
    }

    /// Opens the child with a name, which belongs to the owner of its parent.
    pub(crate) fn child<'d>(
        &mut self,
        parent: &mut Element<'d>,
        name: &str,
    ) -> Option<Element<'d>> {
        let child = parent.child(name)?;
        Some(self.open_child(parent, child, parent.owner))
    }

    /// Opens a child that is in the table of its parent.
    pub(crate) fn open_child<'d>(
        &mut self,
        parent: &Element<'d>,
        child: Child<'d>,
        owner: FieldOwner,
    ) -> Element<'d> {
        let node = child.node;
        match child.known {
            Some((_, known)) => {
                let own_type = node.attribute("type");
                let spec = known
                    .pick
                    .element(parent.peek("type").unwrap_or("file"), own_type);
                let since = known.since.max(parent.since);
                let element = self.open_since(node, spec, since, known.fields, parent.at, owner);
                if since > parent.since {
                    self.versioned_syntax.push(VersionedSyntax {
                        at: element.at,
                        span: node.name_span(),
                        kind: WordKind::Element,
                        what: format!("element `<{}>` of `<{}>`", known.name, parent.spec.name),
                        since,
                        parent_since: parent.since,
                    });
                }
                element
            }
            // Callers consume children by names in the table.
            None => self.open(node, &UNKNOWN, [None; 2], parent.at, owner),
        }
    }

    /// The text of an element with text content, otherwise its start tag.
    fn content_span(&self, node: Node<'_>, spec: &ElementSpec) -> Span {
        let text = spec
            .content
            .and_then(|content| Some((content, node.text().1?)));
        match text {
            Some((ValueSpec::Text, span)) => span,
            Some((_, span)) => self.trimmed(span),
            None => node.tag(),
        }
    }

    fn trimmed(&self, span: Span) -> Span {
        let text = self.slice(span);
        let start = span.start + (text.len() - text.trim_start().len());
        Span::new(start, start + text.trim().len())
    }

    fn check_content(&mut self, element: &Element<'_>, content: ValueSpec) {
        let (text, span) = element.node.text();
        if text.is_empty() && element.spec.may_be_empty {
            return;
        }
        let text = if content == ValueSpec::Text {
            &text[..]
        } else {
            text.trim()
        };
        if let Err(fault) = content.check(text) {
            let span = span.map_or(element.tag, |span| self.trimmed(span));
            let name = element.spec.name;
            let message = if text.is_empty() {
                format!("`<{name}>` is empty, {}", fault.expected)
            } else {
                format!("invalid value `{text}` for `{name}`, {}", fault.expected)
            };
            self.problem(&INVALID_VALUE, element.at, span, message);
        } else if let Some(span) = span.filter(|_| content != ValueSpec::Text) {
            self.check_space_after(element, span);
        }
    }

    /// Reports white space after a number, which libvirt refuses; it skips white space before one.
    fn check_space_after(&mut self, element: &Element<'_>, span: Span) {
        let space = Span::new(self.trimmed(span).end, span.end);
        if space.is_empty() || element.spec.may_end_in_space {
            return;
        }
        let name = element.spec.name;
        let message = format!("white space after the number in `<{name}>`, which libvirt refuses");
        let problem = self.problem(&INVALID_VALUE, element.at, space, message);
        problem.help = Some("remove the white space".to_owned());
        problem.fix = vec![Edit::replace(space, "")];
    }

    fn open_attributes(&mut self, element: &mut Element<'_>) {
        let node = element.node;
        let mut free: Option<Vec<&str>> = None;
        for written in node.attributes() {
            let (name, value) = (written.name(), written.value());
            match element.spec.attribute(name) {
                Some(spec) => {
                    let paths = spec.fields.map(|field| self.path(field, element.owner));
                    for path in paths.into_iter().flatten() {
                        let place = Place {
                            span: written.value_span(),
                            whole: written.whole(),
                            attributes_end: None,
                        };
                        self.map.record(path, place);
                    }
                    let at = paths[0].unwrap_or(element.at);
                    self.check_value(spec.value, name, value, at, written.value_span());
                    self.note_since(element, spec, at, written);
                }
                None if written.is_declaration() => {}
                None if repeats_relabel(node, name, value) => {}
                None if element.spec.is_judged && !name.contains(':') => {
                    // A name that is already in use cannot be the intended one.
                    let is_free = |known: &&str| node.attribute(known).is_none();
                    let known = element.spec.attributes.iter().map(|known| known.name);
                    let free = free.get_or_insert_with(|| known.filter(is_free).collect());
                    self.unknown_attribute(element, written, free);
                }
                None => {}
            }
        }
    }

    fn check_value(
        &mut self,
        known: ValueSpec,
        name: &str,
        value: &str,
        at: FieldPath,
        span: Span,
    ) {
        let Err(fault) = known.check(value) else {
            return;
        };
        let what = match known {
            ValueSpec::Words(_) | ValueSpec::WordsAnd(..) => "unknown",
            _ => "invalid",
        };
        let expected = match (known, name) {
            // A part of a PCI address.
            (ValueSpec::AnyBase, "domain" | "slot" | "function") => {
                format!("expected a number from 0 to {:#x}", pci_max(name))
            }
            _ => fault.expected,
        };
        let message = format!("{what} value `{value}` for `{name}`, {expected}");
        let problem = self.problem(&INVALID_VALUE, at, span, message);
        if let Some(meant) = fault.meant {
            problem.help = Some(format!("did you mean `{meant}`?"));
            problem.fix = vec![Edit::replace(span, meant)];
        } else if let Some(perhaps) = fault.perhaps {
            problem.help = Some(format!("perhaps `{perhaps}`?"));
        }
    }

    /// Records an attribute and its value that some libvirt releases do not support.
    fn note_since(
        &mut self,
        element: &mut Element<'_>,
        spec: &AttributeSpec,
        at: FieldPath,
        written: Attribute<'_>,
    ) {
        let (name, value) = (spec.name, written.value());
        let mut parent_since = element.since;
        let mut note = |since: Since, kind, span, what: &dyn Fn() -> String| {
            if since > parent_since {
                let what = what();
                let word = VersionedSyntax {
                    at,
                    span,
                    kind,
                    what,
                    since,
                    parent_since,
                };
                self.versioned_syntax.push(word);
                parent_since = since;
            }
        };
        note(
            spec.since,
            WordKind::Attribute,
            written.name_span(),
            &|| format!("attribute `{name}` of `<{}>`", element.spec.name),
        );
        note(
            spec.since_with(value).0,
            WordKind::Value,
            written.value_span(),
            &|| format!("value `{value}` of `{name}`"),
        );
        // The contents depend on the type.
        if name == "type" {
            element.since = parent_since;
        }
    }

    fn unknown_attribute(&mut self, element: &Element<'_>, written: Attribute<'_>, free: &[&str]) {
        let (name, span) = (written.name(), written.name_span());
        let source_type = type_of_source(element.spec);
        let meant = self.suggest(name, free);
        let mut message = format!("unknown attribute `{name}` of `<{}>`", element.spec.name);
        let mut help = meant.map(|meant| format!("did you mean `{meant}`?"));
        let known = || element.spec.attributes.iter().map(|known| known.name);
        if let Some(twin) = known().find(|known| known.eq_ignore_ascii_case(name))
            && meant.is_none()
        {
            help = Some(format!("`{twin}` is written already"));
        }
        if let Some(source_type) = source_type
            && let [first, ..] = types_with_attribute(name)[..]
        {
            message =
                format!("attribute `{name}` does not belong to a source of type `{source_type}`");
            let path = written.value();
            help = Some(match path_attribute(source_type, path) {
                Some(meant) => format!("write `{meant}='{path}'`"),
                None => format!("it belongs to one of type `{first}`; one of them is wrong"),
            });
        }
        // The field that was meant is not missing.
        let field = meant.and_then(|meant| element.spec.attribute(meant)?.fields[0]);
        let at = self.path(field, element.owner).unwrap_or(element.at);
        let problem = self.problem(&rules::unknown_attribute::RULE, at, span, message);
        problem.help = Some(help.unwrap_or_else(|| CHECK_SPELLING.to_owned()));
        if let Some(meant) = meant {
            problem.fix = vec![Edit::replace(span, meant)];
        }
    }

    /// The most similar word; not computed after a thousand mistakes, because it is slow.
    fn suggest<'w>(&self, word: &str, known: &[&'w str]) -> Option<&'w str> {
        if self.problems.len() >= 1000 {
            return None;
        }
        vmdisk_source::nearest(word, known.iter().copied())
    }

    /// Closes an element: unread parts are checked, reported if they are unknown, and kept.
    pub(crate) fn close(&mut self, element: Element<'_>) -> UnmodeledParts {
        let mut parts = UnmodeledParts::default();
        if self.keeps {
            for written in element.attributes_left() {
                let verbatim = self.slice(written.verbatim()).to_owned();
                parts.attributes.push((written.name().to_owned(), verbatim));
            }
        }
        // One bit for each row of the table.
        let mut seen = 0_u128;
        let mut free: Option<Vec<&str>> = None;
        for child in &element.children {
            match child.known {
                Some((nth, known)) => {
                    let is_again = !known.repeats && seen & (1 << nth) != 0;
                    seen |= 1 << nth;
                    if is_again {
                        let message = format!(
                            "a second `<{}>` in `<{}>`; the first counts",
                            known.name, element.spec.name
                        );
                        let fix = removal(self.text, &element, child);
                        let name_span = child.name_span();
                        self.problem(&DUPLICATE_VALUE, element.at, name_span, message)
                            .fix
                            .extend(fix);
                        let verbatim = self.keeps.then(|| self.slice(child.span()).to_owned());
                        let duplicate = verbatim.map(|text| (known.name.to_owned(), text));
                        parts.duplicates.extend(duplicate);
                        continue;
                    } else if !child.is_taken {
                        self.check(&element, *child);
                    }
                }
                None if child.name().contains(':') => {}
                None => {
                    let free = free.get_or_insert_with(|| element.free_names());
                    self.unknown_element(&element, *child, free);
                }
            }
            if self.keeps && !child.is_taken {
                parts.children.push(self.slice(child.span()).to_owned());
            }
        }
        parts
    }

    /// Checks an element that libvirt knows but the model does not cover.
    fn check<'d>(&mut self, parent: &Element<'d>, child: Child<'d>) {
        if let Some((_, known)) = child.known
            && known.says_nothing()
            && known.since <= parent.since
        {
            return;
        }
        // An unread element is outside the model: a controller of an unknown type must not be recorded as the next
        // controller, and the source of a backing store must not be recorded as the disk's.
        self.unrecorded(|reader| {
            let element = reader.open_child(parent, child, parent.owner);
            if element.spec.is_judged {
                reader.close(element);
            }
        });
    }

    /// Reads an element whose spans do not belong to the fields in its tables.
    pub(crate) fn unrecorded<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let records = std::mem::replace(&mut self.records, false);
        let result = read(self);
        self.records = records;
        result
    }

    fn unknown_element(&mut self, element: &Element<'_>, child: Child<'_>, free: &[&str]) {
        let name = child.name();
        let meant = if element.spec.is_judged {
            self.suggest(name, free)
        } else {
            // Among elements outside the tables only near misses of known names are reported.
            let others = other_devices(element.spec);
            if others.contains(&name) {
                return;
            }
            let known: Vec<&str> = free.iter().chain(others).copied().collect();
            let meant = self.suggest(name, &known);
            let is_ours = meant
                .and_then(|meant| element.spec.child(meant))
                .is_some_and(|(_, known)| known.is_judged());
            if !is_ours {
                return;
            }
            meant
        };
        let message = format!("unknown element `<{}>` in `<{}>`", name, element.spec.name);
        let fix = meant.map(|meant| self.rename(child.node, meant));
        let span = child.name_span();
        let field = meant.and_then(|meant| element.spec.child(meant)?.1.fields[0]);
        let at = self.path(field, element.owner).unwrap_or(element.at);
        let problem = self.problem(&rules::unknown_element::RULE, at, span, message);
        problem.help = Some(match meant {
            Some(meant) => format!("did you mean `<{meant}>`?"),
            None => CHECK_SPELLING.to_owned(),
        });
        problem.fix = fix.unwrap_or_default();
    }

    /// Renames an element in its start tag and, if it has one, its end tag.
    fn rename(&self, node: Node<'_>, meant: &str) -> Vec<Edit> {
        let mut edits = vec![Edit::replace(node.name_span(), meant)];
        let span = node.span();
        if !node.is_empty_element()
            && let Some(at) = self.slice(span).rfind("</")
        {
            let start = span.start + at + 2;
            let end = Span::new(start, start + node.name().len());
            edits.push(Edit::replace(end, meant));
        }
        edits
    }
}

/// The removal of an element that is there a second time. libvirt reads some elements whole, and of others each attribute
/// and each inner element alone: only what the first element has, too, is certain.
fn removal(text: &str, parent: &Element<'_>, again: &Child<'_>) -> Option<Edit> {
    let mut children = parent.children.iter();
    let first = children.find(|child| child.is_named(again.name()))?;
    let mut attributes = again.attributes();
    let adds_nothing = again.children().next().is_none()
        && attributes.all(|written| first.attribute(written.name()).is_some());
    adds_nothing.then(|| Edit::delete(whole(text, again.span())))
}

/// The element with the white space before it, if no other text shares its lines.
pub(crate) fn whole(text: &str, element: Span) -> Span {
    // Every element is asked this: bytes are faster than characters.
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let (before, after) = (
        &text.as_bytes()[..element.start],
        &text.as_bytes()[element.end..],
    );
    let next = after.iter().find(|byte| !is_blank(byte));
    let Some(last) = before.iter().rposition(|byte| !is_blank(byte)) else {
        return element;
    };
    if before[last] != b'\n' || !matches!(next, None | Some(b'\n' | b'\r')) {
        return element;
    }
    let is_pair = last > 0 && before[last - 1] == b'\r';
    Span::new(last - usize::from(is_pair), element.end)
}

/// An element that is in no table.
static UNKNOWN: ElementSpec = ElementSpec::other_peoples("");

/// The attribute of a source that has this path, if the type agrees with it: devices are in `/dev`.
fn path_attribute(source_type: &str, path: &str) -> Option<&'static str> {
    match (source_type, path.starts_with("/dev/")) {
        ("file", false) => Some("file"),
        ("block", true) => Some("dev"),
        _ => None,
    }
}
