//! Walking the tree along the tables: places, problems, and what is kept.

use std::collections::BTreeSet;

use roxmltree::Node;
use vmdisk_model::FieldPath;
use vmdisk_source::{Edit, LaterWord, Place, Problem, ProblemKind, SourceMap, Span, WordKind};

use crate::element::{Child, Element, Written};
use crate::kept::KeptParts;
use crate::tag::{Tag, TagAttribute, TagEnd, scan_tag};
use crate::tree;
use crate::vocabulary::{AttributeSpec, ElementSpec, Field, Need, Since, Value, Whose};
use crate::vocabulary::{other_devices, type_of_source, types_with_attribute};

/// The first value that two children of a name have for an attribute.
fn twice<'d>(element: &Element<'_, 'd>, child: &str, attribute: &str) -> Option<&'d str> {
    let mut seen = BTreeSet::new();
    element
        .children
        .iter()
        .filter(|own| own.name == child)
        .filter_map(|own| tree::attribute(own.node, attribute))
        .find(|value| !seen.insert(*value))
}

/// What came later is noted: no older libvirt is met any more.
const OLDEST: Since = (4, 0, 0);

/// Collects what is found while a document is read.
pub(crate) struct Reader<'t> {
    /// The text as it is; the tree may have been built from a patched one of the same length.
    pub(crate) text: &'t str,
    pub(crate) map: SourceMap<FieldPath>,
    pub(crate) problems: Vec<Problem<FieldPath>>,
    pub(crate) later_words: Vec<LaterWord<FieldPath>>,
    /// True if the guest says that QEMU runs it.
    pub(crate) is_run_by_qemu: bool,
    /// False while something is checked that is no part of the model.
    records: bool,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Reader {
            text,
            map: SourceMap::default(),
            problems: Vec::new(),
            later_words: Vec::new(),
            is_run_by_qemu: false,
            records: true,
        }
    }

    /// The path of a field, if what is read is part of the model.
    fn path(&self, field: Option<Field>, whose: Whose) -> Option<FieldPath> {
        field.filter(|_| self.records)?.path(whose)
    }

    /// Notes a problem.
    pub(crate) fn problem(
        &mut self,
        kind: ProblemKind,
        at: FieldPath,
        span: Span,
        message: String,
    ) -> &mut Problem<FieldPath> {
        self.problems.push(Problem {
            kind,
            at,
            span,
            message,
            help: None,
            fix: Vec::new(),
        });
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Notes the place of an element that is not opened.
    pub(crate) fn record_element(&mut self, at: FieldPath, node: Node<'_, '_>) {
        let range: Span = node.range().into();
        let tag = scan_tag(self.text, range.start);
        let place = Place {
            span: Span::new(range.start, tag.map_or(range.end, |tag| tag.end.end)),
            whole: whole(self.text, range),
            attributes_end: None,
        };
        self.map.record(at, place);
    }

    fn slice(&self, span: Span) -> &'t str {
        span.slice(self.text).unwrap_or_default()
    }

    /// Opens an element: notes its place, its attributes and their places, and checks their values.
    pub(crate) fn open<'d>(
        &mut self,
        node: Node<'d, 'd>,
        spec: &'static ElementSpec,
        fields: [Option<Field>; 2],
        outer: FieldPath,
        whose: Whose,
    ) -> Element<'t, 'd> {
        self.open_since(node, spec, OLDEST, fields, outer, whose)
    }

    /// Opens an element that no libvirt before `since` gets to see.
    fn open_since<'d>(
        &mut self,
        node: Node<'d, 'd>,
        spec: &'static ElementSpec,
        since: Since,
        fields: [Option<Field>; 2],
        outer: FieldPath,
        whose: Whose,
    ) -> Element<'t, 'd> {
        let range: Span = node.range().into();
        let Tag { attributes, end } = scan_tag(self.text, range.start).unwrap_or_else(|| Tag {
            // The guard has passed every tag, so this does not happen; no attributes then.
            attributes: Vec::new(),
            end: TagEnd {
                attributes_end: range.end,
                end: range.end,
                is_empty_element: true,
            },
        });
        let tag = Span::new(range.start, end.end);
        let paths = fields.map(|field| self.path(field, whose));
        let at = paths[0].or(paths[1]).unwrap_or(outer);
        if paths.iter().any(Option::is_some) {
            let place = Place {
                span: self.content_span(node, spec, tag),
                whole: whole(self.text, range),
                attributes_end: Some(end.attributes_end),
            };
            for path in paths.into_iter().flatten() {
                self.map.record(path, place);
            }
        }
        let text = self.text;
        let mut element = Element {
            node,
            spec,
            at,
            whose,
            since,
            tag,
            text,
            attributes: Vec::with_capacity(attributes.len()),
            children: node
                .children()
                .filter(Node::is_element)
                .map(|node| Child {
                    name: tree::name(text, node),
                    node,
                    is_taken: false,
                })
                .collect(),
        };
        self.open_attributes(&mut element, &attributes);
        self.check_needs(&element);
        if let Some(content) = spec.content {
            self.check_content(&element, content);
        }
        element
    }

    fn check_needs(&mut self, element: &Element<'_, '_>) {
        let has = |name: &str| element.peek(name).is_some_and(|value| !value.is_empty());
        let has_child = |name: &str| element.children.iter().any(|child| child.name == name);
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
                self.problem(ProblemKind::MissingValue, element.at, element.tag, message);
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
                Need::Distinct(child, attribute) => twice(element, child, attribute)
                    .map(|value| format!("two `<{child}>` have the {attribute} `{value}`")),
            };
            if let Some(message) = too_much {
                self.problem(ProblemKind::InvalidValue, element.at, element.tag, message);
            }
        }
    }

    /// Opens a child that the table of its parent names.
    pub(crate) fn open_child<'d>(
        &mut self,
        parent: &Element<'_, 'd>,
        node: Node<'d, 'd>,
        whose: Whose,
    ) -> Element<'t, 'd> {
        let name = tree::name(self.text, node);
        match parent.spec.child(name) {
            Some((_, known)) => {
                let own_type = tree::attribute(node, "type");
                let spec = known
                    .pick
                    .element(parent.peek("type").unwrap_or("file"), own_type);
                let since = known.since.max(parent.since);
                let element = self.open_since(node, spec, since, known.fields, parent.at, whose);
                if since > parent.since {
                    let start = node.range().start + 1;
                    self.later_words.push(LaterWord {
                        at: element.at,
                        span: Span::new(start, start + name.len()),
                        kind: WordKind::Element,
                        what: format!("element `<{name}>` of `<{}>`", parent.spec.name),
                        since,
                        around: parent.since,
                    });
                }
                element
            }
            // Callers take children by names that stand in the table.
            None => self.open(node, &UNKNOWN, [None; 2], parent.at, whose),
        }
    }

    /// The text of an element whose content is one, else its start tag.
    fn content_span(&self, node: Node<'_, '_>, spec: &ElementSpec, tag: Span) -> Span {
        match spec.content {
            Some(Value::Text) => tree::text(node).1.unwrap_or(tag),
            Some(_) => tree::text(node).1.map_or(tag, |span| self.trimmed(span)),
            None => tag,
        }
    }

    fn trimmed(&self, span: Span) -> Span {
        let text = self.slice(span);
        let start = span.start + (text.len() - text.trim_start().len());
        Span::new(start, start + text.trim().len())
    }

    fn check_content(&mut self, element: &Element<'_, '_>, content: Value) {
        let (text, span) = tree::text(element.node);
        let text = if content == Value::Text {
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
            self.problem(ProblemKind::InvalidValue, element.at, span, message);
        }
    }

    fn open_attributes(&mut self, element: &mut Element<'_, '_>, tags: &[TagAttribute]) {
        // The tree leaves name space declarations out; the rest comes in the same order.
        let mut values = element.node.attributes();
        let mut free: Option<Vec<&str>> = None;
        for tag in tags {
            let name = self.slice(tag.name);
            let is_declaration = name == "xmlns" || name.starts_with("xmlns:");
            let value = if is_declaration {
                ""
            } else {
                values.next().map_or("", |attribute| attribute.value())
            };
            element.attributes.push(Written {
                tag: *tag,
                value,
                is_taken: false,
            });
            if is_declaration {
                continue;
            }
            match element.spec.attribute(name) {
                Some(spec) => {
                    let paths = spec.fields.map(|field| self.path(field, element.whose));
                    for path in paths.into_iter().flatten() {
                        let place = Place {
                            span: tag.value,
                            whole: tag.whole,
                            attributes_end: None,
                        };
                        self.map.record(path, place);
                    }
                    let at = paths[0].unwrap_or(element.at);
                    self.check_value(spec.value, name, value, at, tag.value);
                    self.note_since(element, spec, value, at, tag);
                }
                None if element.spec.is_judged && !name.contains(':') => {
                    // A name that is written already cannot have been meant.
                    let text = self.text;
                    let is_free =
                        |known: &&str| !tags.iter().any(|tag| tag.name.slice(text) == Some(*known));
                    let known = element.spec.attributes.iter().map(|known| known.name);
                    let free = free.get_or_insert_with(|| known.filter(is_free).collect());
                    self.unknown_attribute(element, tag, free);
                }
                None => {}
            }
        }
    }

    fn check_value(&mut self, known: Value, name: &str, value: &str, at: FieldPath, span: Span) {
        let Err(fault) = known.check(value) else {
            return;
        };
        let what = match known {
            Value::Words(_) | Value::WordsAnd(..) => "unknown",
            Value::Text
            | Value::Unsigned32
            | Value::Positive32
            | Value::Unsigned64
            | Value::AnyBase
            | Value::Uuid => "invalid",
        };
        let message = format!("{what} value `{value}` for `{name}`, {}", fault.expected);
        let problem = self.problem(ProblemKind::InvalidValue, at, span, message);
        if let Some(meant) = fault.meant {
            problem.help = Some(format!("did you mean `{meant}`?"));
            problem.fix = vec![Edit::replace(span, meant)];
        } else if let Some(perhaps) = fault.perhaps {
            problem.help = Some(format!("perhaps `{perhaps}`?"));
        }
    }

    /// Notes an attribute and its value, where not every libvirt knows them.
    fn note_since(
        &mut self,
        element: &mut Element<'_, '_>,
        spec: &AttributeSpec,
        value: &str,
        at: FieldPath,
        tag: &TagAttribute,
    ) {
        let name = spec.name;
        let mut around = element.since;
        let mut note = |since: Since, kind, span, what: &dyn Fn() -> String| {
            if since > around {
                let what = what();
                let word = LaterWord {
                    at,
                    span,
                    kind,
                    what,
                    since,
                    around,
                };
                self.later_words.push(word);
                around = since;
            }
        };
        note(spec.since, WordKind::Attribute, tag.name, &|| {
            format!("attribute `{name}` of `<{}>`", element.spec.name)
        });
        note(
            spec.since_with(value).0,
            WordKind::Value,
            tag.value,
            &|| format!("value `{value}` of `{name}`"),
        );
        // What stands inside depends on the type.
        if name == "type" {
            element.since = around;
        }
    }

    fn unknown_attribute(&mut self, element: &Element<'_, '_>, tag: &TagAttribute, free: &[&str]) {
        let name = self.slice(tag.name);
        let meant = self.suggest(name, free);
        let mut message = format!("unknown attribute `{name}` of `<{}>`", element.spec.name);
        let mut help = meant.map(|meant| format!("did you mean `{meant}`?"));
        let known = || element.spec.attributes.iter().map(|known| known.name);
        if let Some(twin) = known().find(|known| known.eq_ignore_ascii_case(name))
            && meant.is_none()
        {
            help = Some(format!("`{twin}` is written already"));
        }
        if let Some(source_type) = type_of_source(element.spec)
            && let [first, ..] = types_with_attribute(name)[..]
        {
            message =
                format!("attribute `{name}` does not belong to a source of type `{source_type}`");
            help = Some(format!(
                "it belongs to one of type `{first}`; one of them is wrong"
            ));
        }
        let problem = self.problem(ProblemKind::UnknownAttribute, element.at, tag.name, message);
        problem.help = help;
        if let Some(meant) = meant {
            problem.fix = vec![Edit::replace(tag.name, meant)];
        }
    }

    /// The word that was meant; nobody reads the guesses for more than a thousand mistakes, and they
    /// cost time.
    fn suggest<'w>(&self, word: &str, known: &[&'w str]) -> Option<&'w str> {
        if self.problems.len() >= 1000 {
            return None;
        }
        vmdisk_source::nearest(word, known.iter().copied())
    }

    /// Closes an element: what nobody took is checked, reported where it is unknown, and kept.
    pub(crate) fn close(&mut self, element: Element<'_, '_>) -> KeptParts {
        let mut parts = KeptParts::default();
        for written in &element.attributes {
            if !written.is_taken {
                let verbatim = self.slice(written.tag.verbatim());
                let name = self.slice(written.tag.name);
                parts
                    .attributes
                    .push((name.to_owned(), verbatim.to_owned()));
            }
        }
        let mut is_seen = vec![false; element.spec.children.len()];
        let mut free: Option<Vec<&str>> = None;
        for child in &element.children {
            let name_start = child.node.range().start + 1;
            let name_span = Span::new(name_start, name_start + child.name.len());
            match element.spec.child(child.name) {
                Some((nth, known)) => {
                    let is_again = !known.repeats && is_seen[nth];
                    is_seen[nth] = true;
                    if is_again {
                        let message = format!(
                            "a second `<{}>` in `<{}>`; the first counts",
                            child.name, element.spec.name
                        );
                        self.problem(ProblemKind::Duplicate, element.at, name_span, message);
                        let verbatim = self.slice(child.node.range().into()).to_owned();
                        parts.duplicates.push((child.name.to_owned(), verbatim));
                        continue;
                    } else if !child.is_taken {
                        self.check(&element, child.node);
                    }
                }
                None if child.name.contains(':') => {}
                None => {
                    let free = free.get_or_insert_with(|| element.free_names());
                    self.unknown_element(&element, child, name_span, free);
                }
            }
            if !child.is_taken {
                let verbatim = self.slice(child.node.range().into());
                parts.children.push(verbatim.to_owned());
            }
        }
        parts
    }

    /// Checks an element that libvirt knows and the model does not cover.
    fn check<'d>(&mut self, parent: &Element<'_, 'd>, node: Node<'d, 'd>) {
        // What has not been taken is no part of the model: a controller of an unknown type must not
        // pass for the next one, nor the source of a backing store for the disk's.
        self.unrecorded(|reader| {
            let element = reader.open_child(parent, node, parent.whose);
            if element.spec.is_judged {
                reader.close(element);
            }
        });
    }

    /// Reads something whose places are not those of the fields that its tables name.
    pub(crate) fn unrecorded<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let records = std::mem::replace(&mut self.records, false);
        let result = read(self);
        self.records = records;
        result
    }

    fn unknown_element(
        &mut self,
        element: &Element<'_, '_>,
        child: &Child<'_, '_>,
        name_span: Span,
        free: &[&str],
    ) {
        let meant = if element.spec.is_judged {
            self.suggest(child.name, free)
        } else {
            // Among other people's elements only a near miss of one of ours is worth a word.
            let others = other_devices(element.spec);
            if others.contains(&child.name) {
                return;
            }
            let known: Vec<&str> = free.iter().chain(others).copied().collect();
            let meant = self.suggest(child.name, &known);
            let is_ours = meant
                .and_then(|meant| element.spec.child(meant))
                .is_some_and(|(_, known)| known.is_judged());
            if !is_ours {
                return;
            }
            meant
        };
        let message = format!(
            "unknown element `<{}>` in `<{}>`",
            child.name, element.spec.name
        );
        let fix = meant.map(|meant| self.rename(child, name_span, meant));
        let problem = self.problem(ProblemKind::UnknownElement, element.at, name_span, message);
        problem.help = meant.map(|meant| format!("did you mean `<{meant}>`?"));
        problem.fix = fix.unwrap_or_default();
    }

    /// Renames an element in its start tag and, if it has one, its end tag.
    fn rename(&self, child: &Child<'_, '_>, name_span: Span, meant: &str) -> Vec<Edit> {
        let mut edits = vec![Edit::replace(name_span, meant)];
        let range = child.node.range();
        let is_closed =
            scan_tag(self.text, range.start).is_some_and(|tag| !tag.end.is_empty_element);
        if is_closed && let Some(at) = self.text[range.clone()].rfind("</") {
            let start = range.start + at + 2;
            let end = Span::new(start, start + child.name.len());
            edits.push(Edit::replace(end, meant));
        }
        edits
    }
}

/// The element with the white space before it, if it has its lines to itself.
pub(crate) fn whole(text: &str, element: Span) -> Span {
    let before = text[..element.start].trim_end_matches([' ', '\t']);
    let after = text[element.end..].trim_start_matches([' ', '\t']);
    let is_alone = after.is_empty() || after.starts_with(['\n', '\r']);
    match before.strip_suffix('\n') {
        Some(line_end) if is_alone => {
            let start = line_end.strip_suffix('\r').unwrap_or(line_end).len();
            Span::new(start, element.end)
        }
        Some(_) | None => element,
    }
}

/// For an element that no table names.
static UNKNOWN: ElementSpec = ElementSpec::other_peoples("");
