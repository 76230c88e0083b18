//! The state of reading one command line.

use std::collections::{BTreeMap, HashMap, HashSet};

use vmdisk_model::{Domain, FieldPath, IoThreadId, Switch};
use vmdisk_source::{Edit, Place, Problem, ProblemKind, SourceMap, Span};

use crate::board::Board;
use crate::device::read_controller::Buses;
use crate::document::KeptProperty;
use crate::edits::Slots;
use crate::limits::{MAX_NODES, Suggestions};
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::{Kind, Properties, Property, View};
use crate::vocabulary;

/// A node of the block layer, and the option that it is written in.
#[derive(Clone, Debug)]
pub(crate) struct NodeAt<'a> {
    pub(crate) option: usize,
    pub(crate) view: View<'a>,
}

/// The state of reading one command line.
pub(crate) struct Reader<'a> {
    pub(crate) options: &'a [WrittenOption],
    pub(crate) domain: Domain,
    pub(crate) board: Board,
    pub(crate) map: SourceMap<FieldPath>,
    pub(crate) problems: Vec<Problem<FieldPath>>,
    pub(crate) kept: Vec<KeptProperty>,
    pub(crate) slots: Slots,
    /// Nodes of `-blockdev` by name.
    pub(crate) nodes: HashMap<&'a str, NodeAt<'a>>,
    /// `-drive` by id.
    pub(crate) drives: HashMap<&'a str, usize>,
    /// `-chardev` by id.
    pub(crate) chardevs: HashMap<&'a str, usize>,
    /// `-object` by id.
    pub(crate) objects: HashMap<&'a str, usize>,
    pub(crate) iothreads: HashMap<&'a str, IoThreadId>,
    /// Numbers of iothreads that are given away.
    pub(crate) iothread_numbers: HashSet<u32>,
    pub(crate) buses: Buses<'a>,
    /// Names of the throttle groups that disks have as filters, by the id of the object.
    pub(crate) filter_groups: HashMap<&'a str, String>,
    /// Those names.
    pub(crate) filter_names: HashSet<String>,
    /// Names of targets that are given away.
    pub(crate) targets: HashSet<String>,
    /// Where to look for the next free name, by its beginning.
    pub(crate) next_target: HashMap<&'static str, usize>,
    /// What each option belongs to, once that is known.
    pub(crate) owners: BTreeMap<usize, FieldPath>,
    /// Objects of which the model says all that there is, by number.
    pub(crate) read_objects: HashSet<usize>,
    /// Nodes that may still be read.
    pub(crate) nodes_left: usize,
    /// The search for what unknown names may stand for.
    pub(crate) suggestions: Suggestions,
    /// Where to look for the next free number of an iothread.
    next_iothread: u32,
    /// True with `-snapshot`.
    pub(crate) has_snapshot: bool,
}

impl<'a> Reader<'a> {
    /// A reader that has read nothing yet.
    pub(crate) fn new(options: &'a [WrittenOption]) -> Self {
        Reader {
            options,
            domain: Domain::default(),
            board: Board::Unknown,
            map: SourceMap::default(),
            problems: Vec::new(),
            kept: Vec::new(),
            slots: Slots::default(),
            nodes: HashMap::new(),
            drives: HashMap::new(),
            chardevs: HashMap::new(),
            objects: HashMap::new(),
            iothreads: HashMap::new(),
            iothread_numbers: HashSet::new(),
            buses: Buses::default(),
            filter_groups: HashMap::new(),
            filter_names: HashSet::new(),
            targets: HashSet::new(),
            next_target: HashMap::new(),
            owners: BTreeMap::new(),
            read_objects: HashSet::new(),
            nodes_left: MAX_NODES,
            suggestions: Suggestions::default(),
            next_iothread: 1,
            has_snapshot: options.iter().any(|option| option.name == "snapshot"),
        }
    }

    pub(crate) fn properties(&self, option: usize) -> Option<&'a Properties> {
        let options: &'a [WrittenOption] = self.options;
        options[option].properties.as_ref()
    }

    /// The options of a name that have parts, with their numbers.
    pub(crate) fn of_name(&self, name: &'static str) -> Vec<(usize, &'a Properties)> {
        let options: &'a [WrittenOption] = self.options;
        options
            .iter()
            .enumerate()
            .filter(|(_, option)| option.name == name)
            .filter_map(|(nth, option)| Some((nth, option.properties.as_ref()?)))
            .collect()
    }

    /// Notes a problem.
    pub(crate) fn problem(
        &mut self,
        kind: ProblemKind,
        at: FieldPath,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Problem<FieldPath> {
        self.problems.push(Problem {
            kind,
            at,
            span,
            message: message.into(),
            help: None,
            fix: Vec::new(),
        });
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Notes where a field is written.
    pub(crate) fn record(&mut self, at: FieldPath, property: &Property) {
        self.map.record(
            at,
            Place {
                span: property.span,
                whole: property.whole,
                attributes_end: None,
            },
        );
    }

    /// Notes an option as the place of a field.
    pub(crate) fn record_option(&mut self, at: FieldPath, option: usize) {
        let span = self.options[option].span;
        self.map.record(
            at,
            Place {
                span,
                whole: span,
                attributes_end: None,
            },
        );
    }

    /// Notes something of a disk or controller that the model does not have.
    pub(crate) fn keep(&mut self, at: FieldPath, key: impl Into<String>, span: Span) {
        self.kept.push(KeptProperty {
            at,
            key: key.into(),
            span,
        });
    }

    /// A value that is one of some words.
    pub(crate) fn word<T>(
        &mut self,
        at: FieldPath,
        property: &Property,
        words: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.record(at, property);
        let text = property.value.as_str();
        if let Some(value) = read(text) {
            return Some(value);
        }
        if !is_open(text) {
            let near = self.suggestions.nearest(text, words.iter().copied());
            let message = format!(
                "invalid value `{text}` for `{}`, expected one of {}",
                property.key,
                words.join(", ")
            );
            let span = property.span;
            let problem = self.problem(ProblemKind::InvalidValue, at, span, message);
            if let Some(near) = near {
                problem.help = Some(format!("did you mean `{near}`?"));
                problem.fix = vec![Edit::replace(span, near)];
            }
        }
        None
    }

    /// A switch; the word that JSON has for it depends on the property.
    pub(crate) fn switch(&mut self, at: FieldPath, property: &Property) -> Option<Switch> {
        self.word(at, property, &["on", "off"], switch_of)
    }

    /// A count.
    pub(crate) fn number(&mut self, at: FieldPath, property: &Property) -> Option<u64> {
        self.record(at, property);
        let text = property.value.as_str();
        let number = number_of(text);
        let is_quoted = property.kind == Kind::Text;
        if (number.is_none() || is_quoted) && !is_open(text) {
            let message = if number.is_some() {
                format!(
                    "`{}` is a number between quotes, which QEMU refuses",
                    property.key
                )
            } else {
                format!(
                    "invalid value `{text}` for `{}`, expected a number",
                    property.key
                )
            };
            self.problem(ProblemKind::InvalidValue, at, property.span, message);
        }
        number
    }

    /// A count of 32 bits.
    pub(crate) fn number32(&mut self, at: FieldPath, property: &Property) -> Option<u32> {
        let number = self.number(at, property)?;
        let small = u32::try_from(number).ok();
        if small.is_none() {
            let message = format!("{number} is too large for `{}`", property.key);
            self.problem(ProblemKind::InvalidValue, at, property.span, message);
        }
        small
    }

    /// The number of an iothread by its id.
    pub(crate) fn iothread(&mut self, id: &'a str) -> IoThreadId {
        if let Some(number) = self.iothreads.get(id) {
            return *number;
        }
        let taken = &self.iothread_numbers;
        let own = id
            .strip_prefix("iothread")
            .and_then(|number| number.parse().ok())
            .filter(|number| *number > 0 && !taken.contains(number));
        let number = own.unwrap_or_else(|| {
            // Numbers are counted upwards, and each that is taken was counted once.
            let counted = u32::try_from(taken.len()).unwrap_or(u32::MAX - 1) + 1;
            let free = (counted.max(self.next_iothread)..=u32::MAX)
                .find(|number| !taken.contains(number))
                .unwrap_or(u32::MAX);
            self.next_iothread = free;
            free
        });
        self.iothread_numbers.insert(number);
        self.iothreads.insert(id, IoThreadId(number));
        IoThreadId(number)
    }

    /// Takes every option of which a part is not in the model into account.
    pub(crate) fn keep_the_rest(&mut self) {
        let owners = std::mem::take(&mut self.owners);
        for (option, at) in &owners {
            let Some(properties) = self.properties(*option) else {
                continue;
            };
            let name = self.options[*option].name.clone();
            for (key, span) in &properties.twice {
                let message = format!(
                    "`{key}` is written twice in one option: the last counts, and JSON is refused"
                );
                self.problem(ProblemKind::Duplicate, *at, *span, message);
            }
            for property in properties.iter().filter(|property| !property.is_used.get()) {
                // Of a key that is written twice the first is not taken.
                if properties
                    .peek(&property.key)
                    .is_some_and(|last| last.is_used.get())
                {
                    continue;
                }
                if !vocabulary::knows(&name, &property.key) {
                    let message = format!("`{}` is no property that QEMU knows here", property.key);
                    let words = vocabulary::words(&name);
                    let near = self.suggestions.nearest(&property.key, words);
                    let span = property.key_span;
                    let problem = self.problem(ProblemKind::PropertyRefused, *at, span, message);
                    problem.help = Some(match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "QEMU will not start with it; take it away".to_owned(),
                    });
                    if let Some(near) = near {
                        problem.fix = vec![Edit::replace(span, near)];
                    }
                }
                self.keep(*at, property.key.clone(), property.span);
            }
        }
        self.owners = owners;
    }
}

/// True for a value that a shell or systemd fills in later.
pub(crate) fn is_open(text: &str) -> bool {
    text.contains(['$', '`', '%'])
}

/// A switch by one of QEMU's words.
pub(crate) fn switch_of(word: &str) -> Option<Switch> {
    match word {
        "on" | "true" | "yes" | "y" => Some(Switch::On),
        "off" | "false" | "no" | "n" => Some(Switch::Off),
        _ => None,
    }
}

/// A number, also in hexadecimal.
pub(crate) fn number_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}
