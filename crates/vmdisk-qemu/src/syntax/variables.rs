//! What a script may do to its variables: a value is known only if nothing else in the file can change it.

use std::collections::HashMap;

use super::hole::{Hole, UNSET};
use super::steps::{Assignment, DECLARES, Step, Steps, Written, arguments_set};
use super::text::Text;
use crate::runners::is_name;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Word(Text),
    List(Vec<Text>),
    /// None, with the reason.
    Unknown(String),
}

impl Value {
    /// Its text, or that of each member.
    pub(super) fn texts(&self) -> &[Text] {
        match self {
            Value::Word(text) => std::slice::from_ref(text),
            Value::List(list) => list,
            Value::Unknown(_) => &[],
        }
    }
}

/// Text that is assigned where it is not certain that it counts: it is checked once, where it stands.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) value: Value,
    pub(super) at: usize,
    /// When it counts, as text.
    pub(super) condition: String,
    /// True if nothing but what follows decides whether it counts.
    pub(super) is_certain: bool,
    /// The branch and the function that it stands in: what is appended there counts with it.
    pub(super) block: (Option<usize>, Option<String>),
}

/// A variable of a script.
#[derive(Debug, Default)]
pub(super) struct Variable {
    pub(super) value: Option<Value>,
    /// The steps that assign it, in order.
    sets: Vec<usize>,
    /// The last step that assigned it.
    pub(super) last: usize,
    /// The place of what may change it in a way that is not followed.
    changed: Option<usize>,
    /// The place of an assignment in a function.
    in_function: Option<usize>,
    is_open: bool,
    is_constant: bool,
    /// True if it is assigned a list.
    pub(super) is_list: bool,
    pub(super) parts: Vec<Part>,
    /// The number of its expansions.
    pub(super) uses: usize,
}

/// The variables of a script.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) all: HashMap<String, Variable>,
    /// The steps that may change any variable, each with whether it is in a function.
    any: Vec<usize>,
    any_in_function: Option<usize>,
    pub(super) has_separators: bool,
}

/// Commands of the shell that set the variables which their arguments name.
const SETTERS: [&str; 12] = [
    "alias",
    "builtin",
    "command",
    "coproc",
    "getopts",
    "let",
    "mapfile",
    "read",
    "readarray",
    "trap",
    "unset",
    "wait",
];

/// Commands before which an assignment stays.
const SPECIAL: [&str; 16] = [
    ":", ".", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "source", "times", "trap", "unset",
];

/// Variables that a shell sets.
const OF_SHELL: [&str; 22] = [
    "BASH_REMATCH",
    "BASH_SOURCE",
    "BASHPID",
    "COPROC",
    "DIRSTACK",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOME",
    "HOSTNAME",
    "LINENO",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "UID",
];

/// The reason after `.`, `source` and `eval`.
pub(super) const SOURCED: &str = "a file or text that is not read may set it";

/// Why a variable has no known value.
pub(super) struct Unknown {
    pub(super) reason: Reason,
    pub(super) is_of_caller: bool,
}

/// A reason, with the place of what it is about.
pub(super) enum Reason {
    Text(String),
    At(usize, &'static str),
}

impl Variables {
    /// Those of a script, with what may change them.
    pub(super) fn new(steps: &Steps, holes: &[Hole]) -> Self {
        let mut variables = Variables::default();
        for (nth, step) in steps.list.iter().enumerate() {
            variables.note(nth, step, steps, holes);
        }
        variables
    }

    fn get(&mut self, name: &str) -> &mut Variable {
        if !self.all.contains_key(name) {
            self.all.insert(name.to_owned(), Variable::default());
        }
        self.all.get_mut(name).expect("it was inserted")
    }

    fn change(&mut self, name: &str, at: usize) {
        self.has_separators |= name == "IFS";
        self.get(name).changed.get_or_insert(at);
    }

    /// Each name in a text may be that of a variable which is changed.
    fn change_all_in(&mut self, text: &str, at: usize) {
        let is_part = |it: char| it == '_' || it.is_ascii_alphanumeric();
        for name in text.split(|it| !is_part(it)).filter(|it| is_name(it)) {
            self.change(name, at);
        }
    }

    fn note(&mut self, nth: usize, step: &Step, steps: &Steps, holes: &[Hole]) {
        for text in &step.sets {
            self.change_all_in(text, step.at);
        }
        for assignment in &step.assignments {
            match &assignment.value {
                Written::Word(text) => self.note_holes(text, step.at, holes),
                Written::List(list) => list
                    .iter()
                    .for_each(|it| self.note_holes(&it.text, step.at, holes)),
            }
            self.note_assignment(nth, step, steps, assignment);
        }
        let words = step.words.iter().map(|it| &it.text);
        for text in words.chain(&step.script) {
            self.note_holes(text, step.at, holes);
        }
        self.note_command(nth, step, steps);
    }

    fn note_assignment(&mut self, nth: usize, step: &Step, steps: &Steps, assignment: &Assignment) {
        let name = assignment.name.as_str();
        let command = step.words.first();
        let first = command.map(|it| it.text.as_str());
        let declares = first.is_some_and(|it| DECLARES.contains(&it));
        let stays = |it: &str| SPECIAL.contains(&it) || steps.functions.contains_key(it);
        let is_open = command.is_some_and(|it| it.text.has_hole());
        if first.is_some_and(|it| !declares && !stays(it)) && !is_open {
            // Only the command has it.
            return;
        }
        let options = step.words.iter().skip(1).map(|it| it.text.as_str());
        let converts = options.clone().any(|it| {
            it.contains(['A', 'I', 'c', 'i', 'l', 'n', 'u']) && it.starts_with(['-', '+'])
        });
        let is_constant = first == Some("readonly")
            || declares
                && options
                    .clone()
                    .any(|it| it.starts_with('-') && it.contains('r'));
        let is_odd = assignment.is_member
            || step.is_isolated
            || OF_SHELL.contains(&name)
            || first.is_some() && !declares
            || declares && (converts || first == Some("local") && step.owner.is_none());
        self.has_separators |= name == "IFS";
        let is_reference = matches!(first, Some("declare" | "local" | "typeset"))
            && options
                .clone()
                .any(|it| it.starts_with('-') && it.contains('n'));
        if let (true, Written::Word(other)) = (is_reference, &assignment.value) {
            // What is assigned changes the other variable. The arguments of a function change where it is called.
            match other.has_hole() {
                false => self.change_all_in(other.as_str(), step.at),
                true if step.owner.is_none() => self.change_any(nth, step),
                true => {}
            }
        }
        let variable = self.get(name);
        variable.sets.push(nth);
        // A second assignment to a constant fails.
        let is_odd = is_odd || variable.is_constant;
        variable.is_constant |= is_constant;
        variable.is_list |= matches!(assignment.value, Written::List(_));
        variable.is_open |= !step.is_certain || is_odd;
        if is_odd {
            variable.changed.get_or_insert(step.at);
        }
        if step.owner.is_some() {
            variable.in_function.get_or_insert(step.at);
        }
    }

    /// What the expansions in a text do.
    fn note_holes(&mut self, text: &Text, at: usize, holes: &[Hole]) {
        for (_, number) in text.holes() {
            let Some(hole) = holes.get(number as usize) else {
                continue;
            };
            if !hole.variable.is_empty() {
                self.get(&hole.variable).uses += 1;
            }
            let whole = hole.whole.as_str();
            let computes = whole.contains("((") || whole.starts_with("$[") || whole.contains('[');
            let is_changed = whole.contains(":=")
                || whole.contains("++")
                || whole.contains("--")
                || computes && whole.contains('=')
                || whole
                    .strip_prefix("${")
                    .and_then(|it| it.split_once('='))
                    .is_some_and(|(name, _)| is_name(name));
            let may_change = ["${", "$((", "$[", "(("]
                .iter()
                .any(|it| whole.starts_with(it));
            if computes && whole.len() >= 200 {
                // Its end is not known, and may assign anything.
                self.any_in_function.get_or_insert(at);
            }
            if may_change && (is_changed || whole.len() >= 200) {
                self.change_all_in(whole, at);
            }
        }
    }

    fn note_command(&mut self, nth: usize, step: &Step, steps: &Steps) {
        let Some(first) = step.words.first() else {
            return;
        };
        let name = first.text.as_str();
        let arguments = &step.words[1..];
        if arguments_set(step).is_some() {
            self.change("@", step.at);
        }
        let is_setter = SETTERS.contains(&name)
            || DECLARES.contains(&name)
            || steps.functions.contains_key(name)
            || name == "printf"
                && arguments
                    .iter()
                    .any(|it| it.text.as_str().starts_with("-v"))
            || name == "[[" && arguments.iter().any(|it| has_arithmetic(it.text.as_str()));
        let inner = arguments.first().map_or("", |it| it.text.as_str());
        let is_run = matches!(name, "command" | "builtin");
        if matches!(name, "eval" | "." | "source")
            || is_run && matches!(inner, "eval" | "." | "source")
        {
            self.change_any(nth, step);
        }
        if first.text.has_hole() {
            // It may be `read`, or `eval` with an assignment.
            for word in arguments {
                let text = word.text.as_str();
                let name = text.split(['=', '+', '[']).next().unwrap_or_default();
                if is_name(name) && (name.len() < text.len() || word.bare().is_some()) {
                    self.change(name, step.at);
                }
            }
        } else if DECLARES.contains(&name) {
            self.note_declared(nth, step, name);
        } else if name == "eval" || is_setter {
            let is_function = steps.functions.contains_key(name);
            let mut before = "";
            for word in arguments {
                let text = word.text.as_str();
                self.change_all_in(text, step.at);
                // A name that is computed.
                let may_name = match name {
                    "printf" => before == "-v",
                    "trap" | "wait" | "[[" => false,
                    "command" | "builtin" => !matches!(before, "-v" | "-V"),
                    _ => {
                        !is_function
                            && !matches!(before, "-p" | "-d" | "-t" | "-n" | "-u" | "-i" | "-N")
                    }
                };
                if may_name && word.text.hole_at(0).is_some() {
                    self.change_any(nth, step);
                }
                before = text;
            }
        }
    }

    /// `local NAME`, `declare -a NAME`, `export NAME`.
    fn note_declared(&mut self, nth: usize, step: &Step, command: &str) {
        for word in &step.words[1..] {
            let text = word.text.as_str();
            let is_shown = matches!(command, "export" | "readonly");
            if word.text.hole_at(0).is_some() {
                self.change_any(nth, step);
            } else if is_name(text) && is_shown {
                let variable = self.get(text);
                variable.is_constant |= command == "readonly";
            } else if is_name(text) {
                let is_plain = step.words[1..].iter().all(|it| {
                    let text = it.text.as_str();
                    !text.starts_with(['-', '+']) || matches!(text, "-a" | "-x" | "-r" | "-g")
                });
                match step.owner {
                    Some(_) => drop(self.get(text).in_function.get_or_insert(step.at)),
                    None if is_plain && step.is_certain => {}
                    None => self.change(text, step.at),
                }
            }
        }
    }

    fn change_any(&mut self, nth: usize, step: &Step) {
        if step.owner.is_some() {
            self.any_in_function.get_or_insert(step.at);
        }
        self.any.push(nth);
    }

    /// True if the value of a variable may differ from what a step assigns to it, so that its text is checked alone.
    pub(super) fn is_open(&self, name: &str) -> bool {
        let variable = self.all.get(name);
        self.any_in_function.is_some()
            || variable
                .is_some_and(|it| it.is_open || it.changed.is_some() || it.in_function.is_some())
    }

    /// The value of a variable at a step.
    pub(super) fn value(
        &mut self,
        name: &str,
        nth: usize,
        step: &Step,
    ) -> Result<&mut Value, Unknown> {
        let unknown = |reason: Reason, is_of_caller: bool| Unknown {
            reason,
            is_of_caller,
        };
        let text = |text: &str| Reason::Text(text.to_owned());
        if name.starts_with(|it: char| it.is_ascii_digit()) || matches!(name, "@" | "*") {
            return Err(match self.all.get("@").and_then(|it| it.changed) {
                Some(at) => unknown(Reason::At(at, "sets the arguments"), false),
                None if step.owner.is_some() => {
                    unknown(text("it is an argument of the function"), false)
                }
                None => unknown(text("it is an argument of the script"), true),
            });
        }
        let is_own = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        if !is_own || OF_SHELL.contains(&name) {
            return Err(unknown(text("the shell sets it"), false));
        }
        let last_any = self
            .any
            .partition_point(|it| *it < nth)
            .checked_sub(1)
            .map(|it| self.any[it]);
        let any_in_function = self.any_in_function;
        let region = step.repeats;
        let is_within = |list: &[usize]| {
            region.is_some_and(|(from, until)| {
                let from = if until == usize::MAX { from } else { nth };
                let first = list.partition_point(|it| *it < from);
                list.get(first).is_some_and(|it| *it < until)
            })
        };
        let is_any_within = is_within(&self.any);
        let Some(variable) = self.all.get_mut(name) else {
            let is_sourced = last_any.is_some() || any_in_function.is_some();
            let reason = if is_sourced { SOURCED } else { UNSET };
            return Err(unknown(text(reason), true));
        };
        if let Some(at) = variable.changed {
            return Err(unknown(Reason::At(at, "may change it"), false));
        }
        if let Some(at) = variable.in_function {
            return Err(unknown(Reason::At(at, "sets it in a function"), false));
        }
        if let Some(at) = any_in_function {
            return Err(unknown(Reason::At(at, "may set any variable"), false));
        }
        if is_any_within || is_within(&variable.sets) {
            return Err(unknown(
                text("the script changes it later, and may come back here"),
                false,
            ));
        }
        if variable.value.is_some() && last_any.is_some_and(|it| it >= variable.last) {
            return Err(unknown(text(SOURCED), false));
        }
        match &mut variable.value {
            None if last_any.is_some() => Err(unknown(text(SOURCED), true)),
            None => Err(unknown(text(UNSET), true)),
            Some(Value::Unknown(reason)) => Err(unknown(Reason::Text(reason.clone()), false)),
            Some(value) => Ok(value),
        }
    }

    /// True if a file or text that is not read may have set a variable since it was assigned.
    pub(super) fn is_sourced(&self, name: &str, nth: usize) -> bool {
        let before = self.any.partition_point(|it| *it < nth);
        let last = before.checked_sub(1).map(|it| self.any[it]);
        let variable = self.all.get(name);
        last.is_some_and(|last| variable.is_none_or(|it| last >= it.last))
    }

    /// True if a variable that has text may be an array with more members, which a file or text that is not read made.
    pub(super) fn may_be_list(&self, nth: usize) -> bool {
        self.any.first().is_some_and(|it| *it < nth) || self.any_in_function.is_some()
    }

    /// True if the variable is assigned at most once.
    pub(super) fn is_stable(&self, name: &str) -> bool {
        let variable = self.all.get(name);
        self.any.is_empty() && variable.is_none_or(|it| it.sets.len() < 2 && it.changed.is_none())
    }
}

/// True for a word of a comparison of numbers that assigns.
fn has_arithmetic(word: &str) -> bool {
    let is_operator = matches!(word, "=" | "==" | "!=" | "=~" | "<=" | ">=");
    !is_operator && (word.contains('=') || word.contains("++") || word.contains("--"))
}
