//! The recipes of a makefile. A variable has a value if the file assigns it once, and nothing else can change it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use vmdisk_source::Span;

use super::expand::push;
use super::hole::{Fields, Hole};
use super::program::names_qemu;
use super::script::{Shell, Site};
use super::text::Text;
use crate::failure::ReadFailure;

/// Variables within each other, at most.
const MAX_DEPTH: usize = 16;

/// Texts that may be the value of a variable, at most.
const MAX_ALTERNATIVES: usize = 64;

/// Values that are looked up, at most.
const MAX_VALUES: usize = 100_000;

/// Bytes of a recipe line with the values of its variables, at most.
const MAX_LINE: usize = 1 << 20;

/// True for a text with the assignments or rules of a makefile.
pub(super) fn is_makefile(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_assignment = |line: &str| {
        let after = line.trim_start_matches(is_name);
        let operator = after.trim_start();
        let is_own = [":=", "::=", "?="]
            .iter()
            .any(|it| operator.starts_with(it));
        let is_spaced = after.starts_with([' ', '\t'])
            && ["= ", "+= ", "=\n"]
                .iter()
                .any(|it| operator.starts_with(it));
        after.len() < line.len() && (is_own || is_spaced)
    };
    let is_rule = |line: &str| {
        let target = line.split_once(':').map_or("", |(target, _)| target);
        !target.is_empty()
            && !target.contains(['"', '\'', '=', '#'])
            && !line.starts_with([' ', '\t'])
    };
    let mut lines = text.lines().zip(text.lines().skip(1));
    !text.starts_with("#!")
        && (text.lines().any(is_assignment)
            || lines.any(|(line, next)| next.starts_with('\t') && is_rule(line)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Set,
    /// `:=`: what it refers to must be set before.
    SetNow,
    Default,
    Append,
}

struct Assigned {
    operator: Operator,
    value: Range<usize>,
    /// The line of the condition around it.
    condition: Option<usize>,
}

#[derive(Default)]
struct Variable {
    assigned: Vec<Assigned>,
    /// The place of what may change it in another way.
    changed: Option<usize>,
}

struct Make<'f> {
    file: &'f str,
    variables: HashMap<&'f str, Variable>,
    /// The recipe lines, each with its target.
    recipes: Vec<(Range<usize>, &'f str)>,
    /// The last place of `include`, and of a function that may assign anything.
    included: Option<usize>,
    evaluates: Option<usize>,
    /// The number of values so far.
    values: Cell<usize>,
}

/// Reads the recipes of a makefile.
pub(super) fn read(file: &str, shell: &mut Shell<'_>) -> Result<(), ReadFailure> {
    let mut make = Make {
        file,
        variables: HashMap::new(),
        recipes: Vec::new(),
        included: None,
        evaluates: file.find("$(eval").or_else(|| file.find("${eval")),
        values: Cell::new(0),
    };
    make.lines();
    shell.reason = Some("make or the environment sets it");
    for (range, target) in std::mem::take(&mut make.recipes) {
        let line = without_prefix(make.expanded(shell, range.clone(), true, 0));
        shell.bytes += line.as_str().len().saturating_sub(range.len());
        if line.as_str().len() > MAX_LINE {
            let message = "the variables of the makefile expand to too much text";
            return Err(
                ReadFailure::new(Span::empty(range.start), message).help(super::steps::CAPTURE)
            );
        }
        let site = Site {
            at: range.start,
            owner: Some(target.to_owned()).filter(|it| !it.is_empty()),
            ..Site::default()
        };
        match shell.run(&line, &site) {
            Err(failure) if names_qemu(line.as_str()) => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}

/// The recipe without a variable that is right before a word of the shell's grammar, such as `$(Q)if`: it can only be
/// empty or a prefix of make, since the shell would not find the end of the command otherwise.
fn without_prefix(line: Text) -> Text {
    let first = line.holes().next().filter(|(range, _)| range.start == 0);
    let rest = first.map(|(range, _)| &line.as_str()[range.end..]);
    let is_grammar = |rest: &str| {
        let word = rest.split([' ', '\t']).next().unwrap_or_default();
        ["if", "for", "while", "until", "case", "{"].contains(&word) || word.starts_with('(')
    };
    match rest.filter(|it| is_grammar(it)).map(str::len) {
        Some(length) => line.part(line.as_str().len() - length..line.as_str().len()),
        None => line,
    }
}

impl<'f> Make<'f> {
    /// Notes the assignments and recipes.
    fn lines(&mut self) {
        let (mut at, mut target) = (0, None);
        let mut conditions: Vec<usize> = Vec::new();
        let mut is_defining = false;
        while at < self.file.len() {
            let end = at + logical_length(&self.file[at..]);
            let line = self.file[at..end].trim_end_matches(['\n', '\r']);
            let range = at..at + line.len();
            let start = at;
            at = end;
            let words = line.trim_start();
            let first = words.split([' ', '\t', '(']).next().unwrap_or_default();
            if is_defining {
                is_defining = first != "endef";
            } else if line.starts_with('\t') && target.is_some() {
                self.recipes.push((range, target.unwrap_or_default()));
            } else if matches!(first, "ifeq" | "ifneq" | "ifdef" | "ifndef") {
                conditions.push(start);
            } else if first == "endif" {
                conditions.pop();
            } else if first == "else" {
                conditions
                    .iter_mut()
                    .next_back()
                    .into_iter()
                    .for_each(|it| *it = start);
            } else if matches!(first, "include" | "-include" | "sinclude") {
                self.included = Some(start);
            } else if matches!(first, "define" | "undefine" | "unexport") {
                is_defining = first == "define";
                let name = words[first.len()..].split_whitespace().next();
                name.into_iter().for_each(|it| self.change(it, start));
            } else if !words.is_empty() && !words.starts_with('#') {
                self.rule_or_assignment(range, conditions.last().copied(), &mut target);
            }
        }
    }

    fn change(&mut self, name: &'f str, at: usize) {
        self.variables
            .entry(name)
            .or_default()
            .changed
            .get_or_insert(at);
    }

    fn rule_or_assignment(
        &mut self,
        range: Range<usize>,
        condition: Option<usize>,
        target: &mut Option<&'f str>,
    ) {
        let file = self.file;
        let line = &file[range.clone()];
        if let Some((name, operator, value)) = assignment(line) {
            let value = range.start + value..range.end;
            *target = None;
            match operator {
                Some(operator) => self
                    .variables
                    .entry(name)
                    .or_default()
                    .assigned
                    .push(Assigned {
                        operator,
                        value,
                        condition,
                    }),
                // The output of a command.
                None => self.change(name, range.start),
            }
            return;
        }
        let Some((names, rest)) = line.split_once(':') else {
            return;
        };
        *target = Some(names.split_whitespace().next().unwrap_or_default());
        let rest_at = range.end - rest.len();
        let rest = rest.trim_start_matches(':');
        if let Some((name, _, _)) = assignment(rest.split(';').next().unwrap_or_default()) {
            // A variable of the target.
            self.change(name, range.start);
        } else if let Some((_, recipe)) = rest.split_once(';') {
            let start = range.end - recipe.len();
            debug_assert!(start >= rest_at);
            self.recipes
                .push((start..range.end, target.unwrap_or_default()));
        }
    }

    /// A text with the values of its variables. A recipe keeps its continued lines, and loses the marks before its command.
    fn expanded(
        &self,
        shell: &mut Shell<'_>,
        range: Range<usize>,
        is_recipe: bool,
        depth: usize,
    ) -> Text {
        let file = self.file;
        let mut out = Text::empty(range.start);
        let mut at = range.start;
        if is_recipe {
            at += file[range.clone()].len()
                - file[range.clone()]
                    .trim_start_matches(['\t', ' ', '@', '-', '+'])
                    .len();
        }
        while at < range.end && out.as_str().len() <= MAX_LINE {
            let rest = &file[at..range.end];
            let plain = rest.find(['$', '\\']).unwrap_or(rest.len());
            let plain = match is_recipe {
                true => plain,
                false => rest.find(['$', '\\', '#']).unwrap_or(rest.len()),
            };
            out.push_verbatim(file, Span::new(at, at + plain));
            at += plain;
            let rest = &rest[plain..];
            let mut letters = rest.chars();
            match (letters.next(), letters.next()) {
                (None, _) | (Some('#'), _) => break,
                (Some('$'), Some('$')) => {
                    out.push_escape("$", Span::new(at, at + 2));
                    at += 2;
                }
                (Some('$'), Some(next)) => {
                    let length = match next {
                        '(' => reference_length(rest, '(', ')'),
                        '{' => reference_length(rest, '{', '}'),
                        _ => 1 + next.len_utf8(),
                    };
                    let value = self.reference(shell, at..at + length, depth);
                    out.push_part(&value, 0..value.as_str().len());
                    at += length;
                }
                (Some('\\'), Some('\n')) if !is_recipe => {
                    let blank = rest[2..].len() - rest[2..].trim_start_matches([' ', '\t']).len();
                    out.push_escape(" ", Span::new(at, at + 2 + blank));
                    at += 2 + blank;
                }
                (Some('\\'), Some('#')) if !is_recipe => {
                    out.push_escape("#", Span::new(at, at + 2));
                    at += 2;
                }
                (Some('\\'), Some('\n')) => {
                    // Make takes the tab away.
                    out.push_verbatim(file, Span::new(at, at + 2));
                    at += 2 + usize::from(rest[2..].starts_with('\t'));
                }
                (Some('\\'), Some(next)) if next != '$' => {
                    let length = 1 + next.len_utf8();
                    out.push_verbatim(file, Span::new(at, at + length));
                    at += length;
                }
                (Some(_), _) => {
                    out.push_verbatim(file, Span::new(at, at + 1));
                    at += 1;
                }
            }
        }
        out
    }

    /// The value of `$(NAME)`, or a hole.
    fn reference(&self, shell: &mut Shell<'_>, range: Range<usize>, depth: usize) -> Text {
        let text = &self.file[range.clone()];
        let inner = text[1..]
            .trim_start_matches(['(', '{'])
            .trim_end_matches([')', '}']);
        let place = Span::new(range.start, range.end);
        let is_name = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
        let is_variable = !inner.is_empty() && inner.chars().all(is_name);
        let mut alternatives = Vec::new();
        let reason = match is_variable {
            false => "make computes it".to_owned(),
            true => match self.value(shell, inner, range.start, depth, &mut alternatives) {
                // A start is known by the name of a variable, and not by what computes its value.
                Ok(value) if value.is_one_hole() => {
                    let number = value.holes().next().map_or(0, |it| it.1);
                    let inner = shell.holes.get(number as usize).cloned();
                    let inner = inner.unwrap_or_default();
                    alternatives = inner.alternatives;
                    inner.reason
                }
                Ok(value) => {
                    shell.note_use(place, Ok(value.as_str().chars().take(80).collect()));
                    return value;
                }
                Err(reason) => reason,
            },
        };
        if let Some(given) = shell.given(inner) {
            let mut value = Text::empty(range.start);
            value.push_escape(given, place);
            return value;
        }
        shell.note_use(place, Err(reason.clone()));
        let cut = text
            .find([',', '=', '"', '\'', ' ', '\t', '\n'])
            .unwrap_or(text.len());
        let number = u32::try_from(shell.holes.len()).unwrap_or(u32::MAX);
        shell.holes.push(Hole {
            is_of_caller: reason == super::hole::UNSET,
            is_stable: true,
            fields: Fields::Split,
            alternatives,
            ..Hole::new(&text[..cut.max(1)], place, &reason)
        });
        let mut value = Text::empty(range.start);
        value.push_hole(&text[..cut.max(1)], place, number);
        value
    }

    fn value(
        &self,
        shell: &mut Shell<'_>,
        name: &str,
        at: usize,
        depth: usize,
        alternatives: &mut Vec<(Text, String)>,
    ) -> Result<Text, String> {
        let Some(variable) = self.variables.get(name) else {
            return Err(match self.included {
                Some(_) => "a makefile that is not read may set it".to_owned(),
                None => super::hole::UNSET.to_owned(),
            });
        };
        self.values.set(self.values.get() + 1);
        if depth >= MAX_DEPTH || self.values.get() > MAX_VALUES {
            return Err("its value is in too many variables".to_owned());
        }
        let changed = variable.changed.or(self.evaluates);
        let first = variable.assigned.first().map_or(0, |it| it.value.start);
        let is_set = |nth: usize, it: &Assigned| match nth {
            0 => matches!(it.operator, Operator::Set | Operator::SetNow),
            _ => it.operator == Operator::Append,
        };
        let mut list = variable.assigned.iter().enumerate();
        let is_once = list.all(|(nth, it)| is_set(nth, it) && it.condition.is_none());
        let is_included = self.included.is_some_and(|it| it > first);
        if is_once && !is_included && changed.is_none() {
            let mut value = Text::empty(at);
            for (nth, it) in variable.assigned.iter().enumerate() {
                if it.operator == Operator::SetNow && self.refers_ahead(it) {
                    return Err("what it refers to is set later".to_owned());
                }
                if nth > 0 {
                    value.push_escape(" ", Span::empty(it.value.start));
                }
                let part = self.expanded(shell, it.value.clone(), false, depth + 1);
                value.push_part(&part, 0..part.as_str().len());
            }
            return Ok(value);
        }
        let mut base = Text::empty(at);
        let mut before = None;
        for it in variable.assigned.iter().take(MAX_ALTERNATIVES) {
            let condition = match it.condition {
                _ if it.operator == Operator::Default => format!("unless {name} is set"),
                _ => format!("if line {} counts", shell.line(it.value.start)),
            };
            let text = self.expanded(shell, it.value.clone(), false, MAX_DEPTH);
            let mut value = Text::empty(it.value.start);
            let is_append = it.operator == Operator::Append;
            if is_append {
                value.push_part(&base, 0..base.as_str().len());
                value.push_escape(" ", Span::empty(it.value.start));
            }
            value.push_part(&text, 0..text.as_str().len());
            // A shell reads quotes, in which the rest may stand.
            if it.condition.is_none() && !value.has_outside_holes(&['"', '\'', '\\']) {
                base = value.clone();
            }
            match alternatives.last_mut() {
                Some((last, _)) if is_append && before == Some(it.condition) => {
                    last.push_escape(" ", Span::empty(it.value.start));
                    last.push_part(&text, 0..text.as_str().len());
                }
                _ => alternatives.push((value, condition)),
            }
            before = Some(it.condition);
        }
        let line = shell.line(variable.assigned.last().map_or(0, |it| it.value.start));
        let mut list = variable.assigned.iter();
        let is_appended = list.any(|it| it.operator == Operator::Append);
        if changed.is_some() || alternatives.len() > 1 && is_appended {
            let name = format!("$({name})");
            for (value, _) in alternatives {
                let end = Span::empty(value.whole().end);
                let mut hole = Hole::new(&name, end, "more may be appended");
                hole.fields = Fields::Split;
                value.push_escape(" ", end);
                value.push_hole(&name, end, push(&mut shell.holes, hole));
            }
        }
        if let Some(at) = changed {
            return Err(format!("line {} may change it", shell.line(at)));
        }
        Err(match variable.assigned.as_slice() {
            [one] if one.operator == Operator::Default => "the environment may set it".to_owned(),
            _ => format!("line {line} sets it, and so does something else or a condition"),
        })
    }

    /// True if a value has a variable that is assigned later.
    fn refers_ahead(&self, assigned: &Assigned) -> bool {
        let text = &self.file[assigned.value.clone()];
        let names = text.split("$(").skip(1).chain(text.split("${").skip(1));
        let mut names = names.filter_map(|it| it.split([')', '}']).next());
        names.any(|name| {
            let list = self.variables.get(name).map(|it| &it.assigned);
            list.and_then(|it| it.last())
                .is_some_and(|it| it.value.start > assigned.value.start)
        })
    }
}

/// The length of `$(…)` with what is within.
fn reference_length(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    text.len()
}

/// The length of a line with those that continue it.
pub(super) fn logical_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        let body = line.trim_end_matches(['\n', '\r']);
        let slashes = body.len() - body.trim_end_matches('\\').len();
        if slashes % 2 == 0 {
            break;
        }
    }
    length
}

/// The name, the operator and the place of the value of an assignment. The operator `!=` has no value.
fn assignment(line: &str) -> Option<(&str, Option<Operator>, usize)> {
    let mut rest = line.trim_start();
    for word in ["export ", "override ", "private "] {
        rest = rest.strip_prefix(word).map_or(rest, str::trim_start);
    }
    let is_name = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let end = rest.find(|it| !is_name(it)).filter(|it| *it > 0)?;
    let (name, after) = rest.split_at(end);
    let after = after.trim_start();
    let all = [
        (":::=", Some(Operator::SetNow)),
        ("::=", Some(Operator::SetNow)),
        (":=", Some(Operator::SetNow)),
        ("?=", Some(Operator::Default)),
        ("+=", Some(Operator::Append)),
        ("!=", None),
        ("=", Some(Operator::Set)),
    ];
    let (text, operator) = all.into_iter().find(|(text, _)| after.starts_with(text))?;
    let value = after[text.len()..].trim_start_matches([' ', '\t']);
    Some((name, operator, line.len() - value.len()))
}
