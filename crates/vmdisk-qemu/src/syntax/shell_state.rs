//! The variables of a script, known and unknown, on the way that the evaluation takes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use vmdisk_source::Span;

use super::arithmetic::Numbers;
use super::folder::Folder;
use super::hole::{Decisions, Evaluated, Hole, UNSET};
use super::script_text::Script;
use super::text::Text;

/// The value of a variable.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// One word, or those of an array.
    pub(super) words: Vec<Text>,
    pub(super) is_list: bool,
    /// True if it is the default of a variable that whoever runs the script may set.
    pub(super) is_assumed: bool,
    /// Why it is unknown.
    pub(super) unknown: Option<String>,
    /// The values that it may have, if they are known and few.
    pub(super) may_be: Vec<String>,
    /// The branches that set it, by the start of their text.
    pub(super) choice: Option<usize>,
    is_used: bool,
}

impl Value {
    pub(super) fn unknown(reason: impl Into<String>) -> Self {
        Value {
            unknown: Some(reason.into()),
            ..Value::list(Vec::new(), false)
        }
    }

    pub(super) fn word(word: Text) -> Self {
        Value::list(vec![word], false)
    }

    pub(super) const fn list_of(words: Vec<Text>) -> Self {
        Value::list(words, true)
    }

    pub(super) const fn list(words: Vec<Text>, is_list: bool) -> Self {
        Value {
            words,
            is_list,
            is_assumed: false,
            unknown: None,
            may_be: Vec::new(),
            choice: None,
            is_used: false,
        }
    }

    /// True for a known value that is no array.
    pub(super) const fn is_word(&self) -> bool {
        self.unknown.is_none() && !self.is_list
    }

    fn same(&self, other: &Value) -> bool {
        let words = self.words.iter().map(Text::as_str);
        self.unknown == other.unknown && words.eq(other.words.iter().map(Text::as_str))
    }

    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(Text::as_str).collect();
        words.join(" ")
    }
}

/// The name under which the arguments are kept among the variables of a branch.
pub(super) const ARGUMENTS: &str = "@";

/// The name under which the folder of commands is kept among the variables of a branch.
pub(super) const PLACE: &str = "/";

/// The variables that a branch changed.
pub(super) type Changes = HashMap<String, Option<Value>>;

#[derive(Clone)]
pub(super) struct Function {
    pub(super) script: Rc<Script>,
    pub(super) body: Range<usize>,
    pub(super) calls: usize,
}

/// Where the evaluation goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

/// The result of a command: where the evaluation goes on, and whether the command succeeds, if that is known.
pub(super) type Done = (Flow, Option<bool>);

#[derive(Default)]
pub(super) struct Shell {
    pub(super) variables: HashMap<String, Value>,
    pub(super) args: Vec<Text>,
    pub(super) exported: HashSet<String>,
    pub(super) functions: HashMap<String, Function>,
    /// The former values of what each open branch, the outermost first, changed.
    pub(super) branches: Vec<Changes>,
    /// The ways out of each open function: how many branches are around it, and the branches that leave it, each by the
    /// start of the text around it and with the values that it leaves.
    pub(super) returns: Vec<(usize, Vec<(usize, Changes)>)>,
    /// The former values of the local variables of each open function.
    pub(super) locals: Vec<Changes>,
    pub(super) out: Evaluated,
    /// The branches that are taken.
    pub(super) decisions: Decisions,
    /// The values of variables that the user gave.
    pub(super) given: BTreeMap<String, String>,
    /// True if a default of a variable was used that nothing in the script sets.
    pub(super) has_assumed: bool,
    /// Whether the last command succeeds without arguments and variables of the caller.
    pub(super) assumed: Option<bool>,
    /// The output of each open substitution so far, as far as it is known.
    pub(super) captures: Vec<Option<Text>>,
    /// True if a branch that is not certain ends a round of a loop.
    pub(super) may_leave: bool,
    /// The rest of the input of the open command, if it is known.
    pub(super) input: Option<Text>,
    /// The variables that others are names for.
    pub(super) references: HashMap<String, String>,
    /// Variables that the script makes arrays.
    pub(super) lists: HashSet<String>,
    /// Variables whose elements have names.
    pub(super) maps: HashSet<String>,
    /// Variables that the script sets only where it was not followed.
    pub(super) skipped: HashSet<String>,
    /// Variables that the script reads before it sets them: those of the caller.
    pub(super) of_caller: HashSet<String>,
    /// True while the script is taken to run in its own folder only.
    pub(super) stays: bool,
    /// True if it does not.
    pub(super) leaves: bool,
    /// True within the words of a `cd`.
    pub(super) goes: bool,
    /// True for a script of a shell without braces.
    pub(super) is_posix: bool,
    /// The open functions.
    pub(super) owners: Vec<String>,
    /// Where the outermost open function was called.
    pub(super) site: usize,
    /// A file that the script reads: it may set any variable.
    pub(super) read_file: Option<String>,
    /// The programs on the current line, and whether its output goes into a file.
    pub(super) line: Vec<String>,
    pub(super) has_output: bool,
    pub(super) commands: usize,
    pub(super) bytes: usize,
    pub(super) depth: usize,
}

impl Shell {
    /// The folder in which commands run now.
    pub(super) fn place(&self) -> Folder {
        let Some(set) = self.variables.get(PLACE) else {
            return Folder::Unchanged;
        };
        match set.words.first() {
            Some(word) if set.unknown.is_none() => Folder::Known(word.as_str().to_owned()),
            _ => Folder::Unknown,
        }
    }

    /// The folder in which commands run now, as a later command can use it.
    pub(super) fn working_directory(&self) -> Option<String> {
        match self.place() {
            Folder::Unchanged => self.stays.then(|| ".".to_owned()),
            Folder::Known(place) => (self.stays || place.starts_with('/')).then_some(place),
            Folder::Unknown => None,
        }
    }

    /// True where `.` is the folder of the script, in which relative paths are taken to be: in the whole script, or for the
    /// argument of a `cd`.
    pub(super) fn knows_its_folder(&self) -> bool {
        self.stays || (self.goes && self.place() == Folder::Unchanged)
    }

    /// The characters between fields.
    pub(super) fn separators(&self) -> Cow<'static, str> {
        let set = self.variables.get("IFS").filter(|it| it.unknown.is_none());
        match set.and_then(|it| it.words.first()) {
            Some(word) => word.as_str().to_owned().into(),
            None => " \t\n".into(),
        }
    }

    /// Words with the first separator between them: `$*`.
    pub(super) fn starred(&self, words: &[Text]) -> Text {
        joined_by(words, self.separators().get(..1).unwrap_or_default())
    }

    /// True for a value that is empty without the caller's arguments and variables.
    pub(super) fn is_of_caller(&self, value: &Value) -> bool {
        let is_empty = |it: &Text| self.out.assumed_text(it).is_some_and(|it| it.is_empty());
        value.words.iter().any(Text::has_hole) && value.words.iter().all(is_empty)
    }

    /// The last unknown expansion.
    pub(super) fn last_hole(&mut self) -> Option<&mut Hole> {
        self.out.holes.last_mut()
    }

    pub(super) fn hole(&mut self, name: &str, span: Span, reason: impl Into<String>) -> Text {
        self.out.hole(name, span, reason)
    }

    pub(super) fn caller_arguments(&mut self, span: Span) -> Text {
        let text = self.hole("$@", span, "they are the arguments of the script");
        if let Some(hole) = self.last_hole() {
            hole.assumed = Some("");
        }
        text
    }

    /// The value of a variable.
    pub(super) fn get(&mut self, name: &str) -> Option<Value> {
        let value = self.variables.get_mut(name);
        // What the script sets stays, and so do the members of an array, also if some are unknown.
        let is_set = |value: &Value| {
            value.is_list || value.unknown.is_none() && !value.words.iter().any(Text::has_hole)
        };
        let is_set = self.lists.contains(name) || value.as_deref().is_some_and(is_set);
        if !is_set && let Some(given) = self.given.get(name) {
            return Some(Value::word(literal(given)));
        }
        let Some(value) = value else {
            if name == "PWD" {
                return self.folder_variable();
            }
            let file = self.read_file.as_ref()?;
            return Some(Value::unknown(format!(
                "`{file}`, which is not read, may set it"
            )));
        };
        if std::mem::replace(&mut value.is_used, true) {
            let spans = value.words.iter().map(Text::whole);
            self.out.shared.extend(spans);
        }
        self.has_assumed |= value.is_assumed;
        self.bytes += value.words.iter().map(Text::bytes).sum::<usize>();
        Some(value.clone())
    }

    fn now(&self, name: &str) -> Option<Value> {
        match name {
            ARGUMENTS => Some(Value::list(self.args.clone(), true)),
            _ => self.variables.get(name).cloned(),
        }
    }

    pub(super) fn note(&mut self, name: &str) {
        let former = self.now(name);
        if let Some(branch) = self.branches.last_mut() {
            branch.entry(name.to_owned()).or_insert(former);
        }
    }

    pub(super) fn put(&mut self, name: &str, value: Option<Value>) {
        match (name, value) {
            (ARGUMENTS, value) => self.args = value.map(|it| it.words).unwrap_or_default(),
            (_, Some(value)) => drop(self.variables.insert(name.to_owned(), value)),
            (_, None) => drop(self.variables.remove(name)),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.note(name);
        self.put(name, Some(value));
    }

    pub(super) fn set_word(&mut self, name: &str, word: Text) {
        let is_assumed = self.has_assumed;
        let value = Value {
            is_assumed,
            ..Value::list(vec![word], false)
        };
        self.set(name, value);
    }

    /// Changes the folder.
    pub(super) fn change_folder(&mut self, to: Option<&Text>) {
        let is_whole = |it: &&Text| !it.has_hole() && !it.as_str().starts_with(['-', '~']);
        let to = to.filter(is_whole).map(Text::as_str);
        if self.captures.is_empty() && self.stays {
            if matches!(to, Some("." | "./")) {
                return;
            }
            self.leaves = true;
        }
        let place = to.and_then(|to| match self.place() {
            _ if to.starts_with('/') => Some(to.to_owned()),
            Folder::Unchanged => Some(to.to_owned()),
            Folder::Known(from) => Some(format!("{from}/{to}")),
            Folder::Unknown => None,
        });
        match place {
            Some(place) => self.set_word(PLACE, literal(&place)),
            None => self.lose_folder(),
        }
    }

    /// The folder is unknown from here on.
    pub(super) fn lose_folder(&mut self) {
        self.set(PLACE, Value::unknown("`cd` sets it".to_owned()));
    }

    /// The value of `$PWD`, which no command of the script set.
    fn folder_variable(&mut self) -> Option<Value> {
        match (self.working_directory(), self.place()) {
            (Some(folder), place) => {
                self.has_assumed |= place == Folder::Unchanged;
                Some(Value::word(literal(&folder)))
            }
            (None, Folder::Unchanged) => None,
            (None, _) => Some(Value::unknown("`cd` sets it".to_owned())),
        }
    }

    pub(super) fn set_unknown(&mut self, name: &str, reason: &str) {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.is_empty() && name.chars().all(is_name) {
            self.set(name, Value::unknown(reason.to_owned()));
        }
    }

    /// Runs a part whose effects may not happen, undoes them, and returns them; `None` if the script or the function ends
    /// there. `key` is the start of the text around it, unless it runs in a shell of its own.
    pub(super) fn branch(
        &mut self,
        key: Option<usize>,
        run: impl FnOnce(&mut Self) -> Flow,
    ) -> Option<Changes> {
        self.branches.push(Changes::new());
        let flow = run(self);
        self.may_leave |= matches!(flow, Flow::Break | Flow::Continue);
        let former = self.branches.pop().unwrap_or_default();
        let mut changes = Changes::new();
        for (name, value) in former {
            let now = match name.as_str() {
                ARGUMENTS => Some(Value::list(std::mem::take(&mut self.args), true)),
                _ => self.variables.remove(&name),
            };
            self.put(&name, value);
            changes.insert(name, now);
        }
        if flow == Flow::Next {
            return Some(changes);
        }
        if let (Flow::Return, Some(key), Some(&(around, _))) = (flow, key, self.returns.last()) {
            for name in self.branches[around..].iter().flat_map(Changes::keys) {
                if !changes.contains_key(name) {
                    changes.insert(name.clone(), self.now(name));
                }
            }
            self.returns.last_mut()?.1.push((key, changes));
        }
        None
    }

    /// Continues after branches of which one was taken.
    pub(super) fn join(&mut self, branches: &[Option<Changes>], key: usize, place: Span) -> Flow {
        let open: Vec<&Changes> = branches.iter().flatten().collect();
        if open.is_empty() {
            return Flow::Exit;
        }
        let names: BTreeSet<&String> = open.iter().flat_map(|changes| changes.keys()).collect();
        for name in names {
            self.note(name);
            let before = self.now(name);
            let values: Vec<Option<Value>> = open
                .iter()
                .map(|changes| changes.get(name).unwrap_or(&before).clone())
                .collect();
            let joined = self.joined(name, &values, key, place);
            self.put(name, joined);
        }
        Flow::Next
    }

    /// The value of a variable that has one of several values.
    pub(super) fn joined(
        &mut self,
        name: &str,
        values: &[Option<Value>],
        key: usize,
        place: Span,
    ) -> Option<Value> {
        let first = values.first()?;
        let is_same = |other: &Option<Value>| match (first, other) {
            (Some(first), Some(other)) => first.same(other),
            (first, other) => first.is_none() && other.is_none(),
        };
        if values.iter().all(is_same) {
            return first.clone();
        }
        // What only some branches set is empty in the others, or the caller's.
        let empty = match self.of_caller.contains(name) {
            true => Value::unknown(UNSET),
            false => Value::word(Text::empty(0)),
        };
        let values: Vec<Option<&Value>> = values
            .iter()
            .map(|value| Some(value.as_ref().unwrap_or(&empty)))
            .collect();
        let texts = values.iter().map(|value| match value {
            Some(value) if value.unknown.is_none() => Some(vec![value.text()]),
            Some(value) if !value.may_be.is_empty() => Some(value.may_be.clone()),
            _ => None,
        });
        let texts: Option<Vec<Vec<String>>> = texts.collect();
        let texts = texts.map(|texts| texts.concat().into_iter().collect::<BTreeSet<_>>());
        let texts = texts.filter(|texts| texts.len() <= 4).unwrap_or_default();
        let unknown = Value {
            may_be: texts.into_iter().collect(),
            choice: Some(key),
            ..Value::unknown("a branch sets it".to_owned())
        };
        let known: Option<Vec<&Value>> = values.iter().copied().collect();
        let known = known.filter(|known| known.iter().all(|it| it.unknown.is_none()));
        let mut value = match known.as_deref().and_then(common) {
            Some(value) => value,
            None if name == ARGUMENTS => Value::list_of(Vec::new()),
            None => return Some(unknown),
        };
        let display = match name {
            ARGUMENTS => "$@".to_owned(),
            name => format!("${name}"),
        };
        let hole = self.hole(&display, place, "a branch sets it");
        let certain = value.text().len();
        let rest = unknown.may_be.iter().filter_map(|it| it.get(certain..));
        let rest = rest.map(|it| it.trim_start().to_owned()).collect();
        if let Some(hole) = self.last_hole() {
            (hole.values, hole.choice) = (rest, unknown.choice);
        }
        if value.is_list {
            value.words.push(hole);
        } else if let Some(word) = value.words.first_mut() {
            word.push_escape(" ", place);
            word.push_part(&hole, 0..display.len());
        }
        Some(value)
    }
}

impl Numbers for Shell {
    fn number(&mut self, name: &str) -> Option<i64> {
        let value = self.get(name)?;
        value
            .unknown
            .is_none()
            .then(|| value.words.first()?.as_str().trim().parse().ok())?
    }

    fn assign(&mut self, name: &str, number: Option<i64>) {
        match number {
            Some(number) => self.set_word(name, literal(&number.to_string())),
            None => self.set_unknown(name, "it is computed from an unknown value"),
        }
    }
}

/// The words that all values begin with, if there are any, or all are lists. The last is not an option whose value differs.
fn common(values: &[&Value]) -> Option<Value> {
    let (first, others) = values.split_first()?;
    if values.iter().all(|value| value.is_list) {
        let is_common = |(nth, word): &(usize, &Text)| {
            let mut others = others.iter().map(|value| value.words.get(*nth));
            others.all(|other| other.map(Text::as_str) == Some(word.as_str()))
        };
        let words = first.words.iter().enumerate().take_while(is_common);
        let mut words: Vec<Text> = words.map(|(_, word)| word.clone()).collect();
        let is_open = |word: &Text| word.as_str().starts_with('-');
        if values.iter().all(|value| value.words.len() > words.len()) {
            words.truncate(
                words
                    .iter()
                    .rposition(|it| !is_open(it))
                    .map_or(0, |at| at + 1),
            );
        }
        return Some(Value::list_of(words));
    }
    let word = first.words.first().filter(|_| !first.is_list)?;
    let text = word.as_str();
    let is_common = |end: &usize| {
        let rests: Option<Vec<&str>> = values
            .iter()
            .filter(|value| !value.is_list)
            .map(|value| value.words.first()?.as_str().strip_prefix(&text[..*end]))
            .collect();
        let last = text[..*end].rsplit(' ').next();
        rests.is_some_and(|rests| {
            rests.len() == values.len()
                && rests.iter().all(|it| it.is_empty() || it.starts_with(' '))
                && (last.is_some_and(|it| !it.starts_with('-')) || rests.contains(&""))
        })
    };
    let mut ends = text
        .match_indices(' ')
        .map(|(at, _)| at)
        .chain([text.len()]);
    let end = ends.rfind(is_common).filter(|end| *end > 0)?;
    Some(Value::word(word.part(0..end)))
}

/// A text that stands nowhere in the file.
pub(super) fn literal(text: &str) -> Text {
    let mut word = Text::empty(0);
    word.push_escape(text, Span::empty(0));
    word
}

/// Words with spaces between them.
pub(super) fn joined(words: &[Text]) -> Text {
    joined_by(words, " ")
}

fn joined_by(words: &[Text], separator: &str) -> Text {
    let start = words.first().map_or(0, |word| word.whole().start);
    let mut all = Text::empty(start);
    for (nth, word) in words.iter().enumerate() {
        if nth > 0 {
            all.push_escape(separator, Span::empty(word.whole().start));
        }
        all.push_part(word, 0..word.as_str().len());
    }
    all
}
