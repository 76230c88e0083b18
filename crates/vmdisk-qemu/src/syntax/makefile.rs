//! The assignments and recipes of a makefile as commands of a script.

use std::collections::HashMap;
use std::ops::Range;

use vmdisk_source::Span;

use super::hole::Hole;
use super::lexer::Word;
use super::script::{Shell, Site};
use super::steps::Step;
use super::text::Text;
use crate::failure::ReadFailure;

/// Variables within each other, at most.
const MAX_DEPTH: usize = 16;

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
    value: Text,
    at: usize,
    /// The place of the condition around it.
    condition: Option<usize>,
}

/// A line whose place among the others counts.
enum Line<'f> {
    Assignment(&'f str),
    Include(usize),
}

struct Make<'f, 'h> {
    file: &'f str,
    holes: &'h mut Vec<Hole>,
    /// The assignments of each variable that are not yet among the steps.
    variables: HashMap<&'f str, Vec<Assigned>>,
    /// The last place that the value of each variable depends on.
    last: HashMap<&'f str, usize>,
    lines: Vec<Line<'f>>,
    steps: Vec<Step>,
    recipes: Vec<Step>,
}

/// Reads the recipes of a makefile.
pub(super) fn read(file: &str, shell: &mut Shell<'_>) -> Result<(), ReadFailure> {
    let mut make = Make {
        file,
        holes: &mut shell.holes,
        variables: HashMap::new(),
        last: HashMap::new(),
        lines: Vec::new(),
        steps: Vec::new(),
        recipes: Vec::new(),
    };
    make.lines();
    if let Some(at) = file.find("$(eval").or_else(|| file.find("${eval")) {
        // It may assign anything, at any time.
        make.steps.push(Step {
            owner: Some(String::new()),
            ..command("eval", at)
        });
    }
    for line in std::mem::take(&mut make.lines) {
        match line {
            Line::Assignment(name) => drop(make.assign(name, 0)),
            Line::Include(at) => {
                shell.reason = Some("a makefile that is not read may set it");
                make.steps.push(command(".", at));
            }
        }
    }
    make.steps.append(&mut make.recipes);
    let steps = make.steps;
    shell.follow(steps.into(), &Site::default(), false)
}

/// The step of a command of the shell that stands for what make does.
fn command(name: &str, at: usize) -> Step {
    let mut text = Text::empty(at);
    text.push_escape(name, Span::empty(at));
    Step::command(at, vec![Word { text, bare: 0 }])
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

impl<'f> Make<'f, '_> {
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
                self.recipe(range, target.unwrap_or_default());
            } else if matches!(first, "ifeq" | "ifneq" | "ifdef" | "ifndef") {
                conditions.push(start);
            } else if first == "endif" {
                conditions.pop();
            } else if first == "else" {
                if let Some(last) = conditions.last_mut() {
                    *last = start;
                }
            } else if matches!(first, "include" | "-include" | "sinclude") {
                self.lines.push(Line::Include(start));
            } else if matches!(first, "define" | "undefine" | "unexport") {
                is_defining = first == "define";
                let name = words[first.len()..].split_whitespace().next();
                name.into_iter().for_each(|it| self.change(it, start));
            } else if !words.is_empty() && !words.starts_with('#') {
                self.rule_or_assignment(range, conditions.last().copied(), &mut target);
            }
        }
    }

    /// A variable changes in a way that is not followed.
    fn change(&mut self, name: &str, at: usize) {
        self.steps.push(Step::changing(name, at));
    }

    fn recipe(&mut self, range: Range<usize>, target: &str) {
        let marks = ['\t', ' ', '@', '-', '+'];
        let start = range.end - self.file[range.clone()].trim_start_matches(marks).len();
        let line = self.text(start..range.end, true);
        self.recipes
            .push(Step::running(without_prefix(line), target));
    }

    fn rule_or_assignment(
        &mut self,
        range: Range<usize>,
        condition: Option<usize>,
        target: &mut Option<&'f str>,
    ) {
        let line = &self.file[range.clone()];
        if let Some((name, operator, value)) = assignment(line) {
            *target = None;
            // The output of a command.
            let Some(operator) = operator else {
                return self.change(name, range.start);
            };
            let assigned = Assigned {
                operator,
                value: self.text(range.start + value..range.end, false),
                at: range.start,
                condition,
            };
            self.variables.entry(name).or_default().push(assigned);
            self.lines.push(Line::Assignment(name));
            return;
        }
        let Some((names, rest)) = line.split_once(':') else {
            return;
        };
        *target = Some(names.split_whitespace().next().unwrap_or_default());
        let rest = rest.trim_start_matches(':');
        if let Some((name, _, _)) = assignment(rest.split(';').next().unwrap_or_default()) {
            // A variable of the target.
            self.change(name, range.start);
        } else if let Some((_, recipe)) = rest.split_once(';') {
            self.recipe(
                range.end - recipe.len()..range.end,
                target.unwrap_or_default(),
            );
        }
    }

    /// Adds the assignments of a variable, after those of what it refers to. Returns the last place that it depends on.
    fn assign(&mut self, name: &str, depth: usize) -> usize {
        if let Some(last) = self.last.get(name) {
            return *last;
        }
        if depth > MAX_DEPTH {
            return usize::MAX;
        }
        let Some((name, list)) = self.variables.remove_entry(name) else {
            return 0;
        };
        // It may be within itself.
        self.last.insert(name, usize::MAX);
        let is_now = list
            .first()
            .is_some_and(|it| it.operator == Operator::SetNow);
        let mut last = 0;
        for (nth, assigned) in list.into_iter().enumerate() {
            let holes = assigned.value.holes();
            let names = holes.map(|it| self.holes[it.1 as usize].variable.clone());
            let names: Vec<String> = names.filter(|it| it != name).collect();
            let ahead = names.iter().map(|it| self.assign(it, depth + 1)).max();
            let ahead = ahead.unwrap_or_default();
            last = last.max(assigned.at).max(ahead);
            let operator = assigned.operator;
            let is_now = operator == Operator::SetNow || operator == Operator::Append && is_now;
            let is_ahead = ahead == usize::MAX || is_now && ahead > assigned.at;
            let step = self.step(name, assigned, is_ahead, nth > 0);
            self.steps.push(step);
        }
        self.last.insert(name, last);
        last
    }

    fn step(&mut self, name: &str, assigned: Assigned, is_ahead: bool, has_value: bool) -> Step {
        let Assigned {
            operator,
            mut value,
            at,
            condition,
        } = assigned;
        let hole = |value: &Text, reason: &str| Hole {
            whole: value.as_str().to_owned(),
            ..Hole::new(&format!("$({name})"), value.whole(), reason)
        };
        if is_ahead {
            value = Text::of_hole(hole(&value, "what it refers to is set later"), self.holes);
        }
        if operator == Operator::Default {
            let mut hole = hole(&value, "the environment may set it");
            name.clone_into(&mut hole.default_of);
            hole.alternatives = vec![(value, format!("unless {name} is set"))];
            value = Text::of_hole(hole, self.holes);
        }
        let is_append = operator == Operator::Append && has_value;
        if is_append {
            let mut spaced = Text::empty(at);
            spaced.push_escape(" ", Span::empty(value.whole().start));
            spaced.push_text(&value);
            value = spaced;
        }
        let mut step = Step::assigning(name, value, at);
        step.assignments[0].is_append = is_append;
        step.is_certain = condition.is_none();
        (step.condition, step.block) = (condition, condition);
        step
    }

    /// A text in which what make replaces is a hole. A recipe keeps its continued lines.
    fn text(&mut self, range: Range<usize>, is_recipe: bool) -> Text {
        let file = self.file;
        let mut out = Text::empty(range.start);
        let mut at = range.start;
        while at < range.end {
            let rest = &file[at..range.end];
            let plain = match is_recipe {
                true => rest.find(['$', '\\']),
                false => rest.find(['$', '\\', '#']),
            };
            let plain = plain.unwrap_or(rest.len());
            out.push_verbatim(file, Span::new(at, at + plain));
            at += plain;
            let rest = &rest[plain..];
            let mut letters = rest.chars();
            let next = (letters.next(), letters.next());
            let length = match next {
                (None, _) | (Some('#'), _) => break,
                (Some('$'), Some('(')) => reference_length(rest, '(', ')'),
                (Some('$'), Some('{')) => reference_length(rest, '{', '}'),
                // Make takes the tab away.
                (Some('\\'), Some('\n')) if is_recipe => {
                    2 + usize::from(rest[2..].starts_with('\t'))
                }
                (Some('\\'), Some('\n')) => {
                    rest.len() - rest[2..].trim_start_matches([' ', '\t']).len()
                }
                (Some('\\'), Some('$')) | (_, None) => 1,
                (_, Some(next)) => 1 + next.len_utf8(),
            };
            let place = Span::new(at, at + length);
            match next {
                (Some('$'), Some('$')) => out.push_escape("$", place),
                (Some('$'), Some(_)) => {
                    out.push_new(reference(&rest[..length], place), self.holes);
                }
                (Some('\\'), Some('\n')) if is_recipe => {
                    out.push_verbatim(file, Span::new(at, at + 2));
                }
                (Some('\\'), Some('\n')) => out.push_escape(" ", place),
                (Some('\\'), Some('#')) if !is_recipe => out.push_escape("#", place),
                _ => out.push_verbatim(file, place),
            }
            at += length;
        }
        out
    }
}

/// The hole of `$(NAME)`, and of what make computes.
fn reference(text: &str, place: Span) -> Hole {
    let inner = text[1..].trim_start_matches(['(', '{']);
    let inner = inner.trim_end_matches([')', '}']);
    let starts_name = inner.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let is_variable = starts_name && inner.chars().all(is_of_name);
    let cut = text.find([',', '=', '"', '\'', ' ', '\t', '\n']);
    let name = &text[..cut.unwrap_or(text.len()).max(1)];
    Hole {
        variable: if is_variable { inner } else { "" }.to_owned(),
        ..Hole::new(name, place, "make computes it")
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
