//! The commands of a shell script with the values of its variables.
//!
//! The evaluation follows the structure of the script: what is certain on the way to a command is known, and everything
//! else is a hole, whose text is that of the expansion.

use std::collections::BTreeMap;
use std::rc::Rc;

use vmdisk_source::Span;

use super::expansion;
use super::hole::{Choice, Decisions, Evaluated};
use super::script_text::{MAX_DEPTH, Script};
use super::shell_state::{Changes, Done, Flow, Shell, literal};
use super::shell_words::{Token, TokenKind};
use super::text::Text;
use crate::failure::ReadFailure;

/// Commands that an evaluation runs, at most: no loop runs for ever.
pub(super) const MAX_COMMANDS: usize = 100_000;

/// Bytes of values that an evaluation copies, at most.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// Evaluates a script with these branches and values. `is_start` recognizes the commands that are looked for.
pub(crate) fn evaluate(
    text: Text,
    is_start: fn(&[Text]) -> bool,
    decisions: &Decisions,
    given: &BTreeMap<String, String>,
    mut seed: Evaluated,
) -> Result<Evaluated, ReadFailure> {
    let script = Rc::new(Script::new(text)?);
    let run = |stays: bool, seed: Evaluated| {
        let mut shell = Shell {
            decisions: decisions.clone(),
            given: given.clone(),
            out: seed,
            is_posix: ["#!/bin/sh", "#!/usr/bin/env sh"]
                .iter()
                .any(|it| script.text.as_str().starts_with(it)),
            stays,
            ..Shell::default()
        };
        let number = |nth: usize| given.get(&nth.to_string()).map(|value| literal(value));
        shell.args = (1..).map_while(number).collect();
        if shell.args.is_empty() {
            shell.args = vec![shell.caller_arguments(Span::empty(0))];
        }
        shell.list(&script, &mut 0, true);
        let commands = &shell.out.commands;
        if !commands.iter().any(|command| is_start(&command.words)) {
            shell.call_the_rest();
        }
        shell
    };
    let mut words = (0..script.tokens.len()).filter_map(|at| script.word(at));
    let mut stays = true;
    if words.any(|word| matches!(word, "cd" | "pushd")) {
        // A trial, which leaves nothing behind. It needs the holes that the text refers to.
        let known = seed.holes.len();
        let holes = std::mem::take(&mut seed.holes);
        let trial = run(
            true,
            Evaluated {
                holes,
                ..Evaluated::default()
            },
        );
        stays = !trial.leaves;
        seed.holes = trial.out.holes;
        seed.holes.truncate(known);
    }
    let shell = run(stays, seed);
    if shell.commands > MAX_COMMANDS || shell.bytes > MAX_BYTES {
        let text = &script.text;
        let first = text.as_str().find('\n').unwrap_or(text.as_str().len());
        let first = text.span(0..first);
        let message = "the loops and variables of the script expand to too much text";
        return Err(ReadFailure::new(first, message).help("write the command line without them"));
    }
    Ok(shell.out)
}

/// The alternatives of a branch that is not certain, as far as they were run.
#[derive(Default)]
pub(super) struct Branches {
    /// The start of the text around them.
    pub(super) key: usize,
    pub(super) taken: Vec<Option<Changes>>,
    pub(super) conditions: Vec<String>,
    /// Whether each is taken without arguments and variables of the caller, if that is known.
    pub(super) assumed: Vec<Option<bool>>,
    pub(super) is_loop: bool,
}

/// The condition of the alternative that is left: that the only other one is false.
fn otherwise(branches: &Branches) -> String {
    match branches.conditions.as_slice() {
        [one] if !branches.is_loop && !one.starts_with("case ") => negated(one),
        _ => "otherwise".to_owned(),
    }
}

/// A condition of a shell, turned into its opposite. One of several commands is not one that `!` negates.
fn negated(condition: &str) -> String {
    if condition
        .split(' ')
        .any(|word| ["&&", "||", "|", ";"].contains(&word))
    {
        return format!("! {{ {condition}; }}");
    }
    let positive = condition.strip_prefix("! ").map(str::to_owned);
    positive.unwrap_or_else(|| format!("! {condition}"))
}

impl Branches {
    pub(super) fn new(script: &Script, start: usize) -> Self {
        Branches {
            key: script.span(start..start + 1).start,
            ..Branches::default()
        }
    }
}

impl Shell {
    /// Runs commands up to a word or operator that ends them.
    pub(super) fn list(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let mut done = (Flow::Next, Some(true));
        while let Some(token) = script.tokens.get(*at) {
            match &token.kind {
                TokenKind::Operator("\n") => {
                    *at += 1;
                    self.documents(script, at, live && done.0 == Flow::Next);
                    self.line.clear();
                    self.has_output = false;
                }
                TokenKind::Operator(";" | "&")
                | TokenKind::Output
                | TokenKind::Input(_)
                | TokenKind::InputWord
                | TokenKind::InputScript
                | TokenKind::Document { .. } => {
                    self.has_output |= token.kind == TokenKind::Output;
                    *at += 1;
                }
                TokenKind::Operator(")" | ";;") => return done,
                TokenKind::Word
                    if matches!(
                        script.word(*at),
                        Some("then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}")
                    ) =>
                {
                    return done;
                }
                _ => {
                    let before = *at;
                    let next = self.and_or(script, at, live && done.0 == Flow::Next);
                    if done.0 == Flow::Next {
                        done = next;
                    }
                    // Text that no shell reads.
                    *at = (*at).max(before + 1);
                }
            }
        }
        done
    }

    /// The documents of the line that ends here.
    fn documents(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) {
        while let Some(Token { kind, range }) = script.tokens.get(*at)
            && let TokenKind::Document { is_quoted } = kind
        {
            *at += 1;
            if live {
                self.document(script, range.clone(), *is_quoted);
            }
        }
    }

    fn and_or(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let start = *at;
        let mut done = self.pipeline(script, at, live);
        while let Some(operator @ ("&&" | "||")) = script.operator(*at) {
            *at += 1;
            while script.operator(*at) == Some("\n") {
                *at += 1;
            }
            let runs = match (operator, done.1) {
                ("&&", Some(status)) => Some(status),
                (_, Some(status)) => Some(!status),
                (_, None) => None,
            };
            if !live || done.0 != Flow::Next || runs == Some(false) {
                self.pipeline(script, at, false);
            } else if runs == Some(true) {
                done = self.pipeline(script, at, true);
            } else {
                let assumed = self.assumed.take();
                let mut branches = Branches::new(script, *at);
                branches.assumed = vec![assumed.map(|status| status == (operator == "&&"))];
                let condition = script.quote(script.span(start..*at - 1));
                branches.conditions = vec![match operator {
                    "||" => negated(&condition),
                    _ => condition,
                }];
                match self.decisions.get(&branches.key) {
                    Some(0) => done = self.pipeline(script, at, true),
                    Some(_) => {
                        self.pipeline(script, at, false);
                        done.1 = Some(operator == "||");
                    }
                    None => {
                        let key = Some(branches.key);
                        let taken = self.branch(key, |it| it.chain(script, at, operator));
                        branches.taken.push(taken);
                        let place = script.span(start..*at);
                        done = self.after(branches, true, Flow::Next, place);
                    }
                }
                self.assumed = match (operator, assumed) {
                    ("&&", Some(true)) | ("||", Some(false)) => self.assumed,
                    (_, assumed) => assumed,
                };
            }
        }
        done
    }

    /// The rest of a chain with one operator, of which each part runs only if the part before does.
    fn chain(&mut self, script: &Rc<Script>, at: &mut usize, operator: &str) -> Flow {
        loop {
            let (flow, _) = self.pipeline(script, at, true);
            if flow != Flow::Next || script.operator(*at) != Some(operator) {
                return flow;
            }
            *at += 1;
            script.skip_lines(at);
        }
    }

    fn pipeline(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let is_negated = script.word(*at) == Some("!");
        *at += usize::from(is_negated);
        let (mut flow, mut status) = self.command(script, at, live);
        while script.operator(*at) == Some("|") {
            self.forget_output();
            *at += 1;
            script.skip_lines(at);
            // Each command of a pipe runs in a shell of its own.
            self.branch(None, |shell| shell.command(script, at, live).0);
            (flow, status) = (Flow::Next, None);
        }
        self.assumed = self.assumed.map(|status| status != is_negated);
        (flow, status.map(|status| status != is_negated))
    }

    pub(super) fn command(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        self.commands += usize::from(live);
        let live = live && self.commands <= MAX_COMMANDS && self.bytes <= MAX_BYTES;
        let Some(token) = script.tokens.get(*at) else {
            return (Flow::Next, None);
        };
        self.depth += 1;
        let done = if self.depth > 8 * MAX_DEPTH {
            *at = script.tokens.len();
            (Flow::Next, None)
        } else {
            match (&token.kind, script.word(*at)) {
                (TokenKind::Operator("("), _) => {
                    *at += 1;
                    self.branch(None, |shell| shell.list(script, at, live).0);
                    *at += 1;
                    (Flow::Next, None)
                }
                (TokenKind::Arithmetic, _) => {
                    let text = script.text.as_str()[token.range.clone()].to_owned();
                    *at += 1;
                    let value = if live { self.number(&text) } else { None };
                    if live && value.is_none() && text.contains("$#") {
                        let assumed = self.number(&text.replace("$#", "0"));
                        self.assumed = assumed.map(|value| value != 0);
                    }
                    (Flow::Next, value.map(|value| value != 0))
                }
                (_, Some("{")) => {
                    *at += 1;
                    let done = self.list(script, at, live);
                    *at += 1;
                    done
                }
                (_, Some("if")) => self.conditional(script, at, live),
                (_, Some("case")) => self.case(script, at, live),
                (_, Some("for" | "select")) => self.for_loop(script, at, live),
                (_, Some("while" | "until")) => self.while_loop(script, at, live),
                (_, Some("[[")) => self.double_bracket(script, at, live),
                (_, Some("function")) => {
                    *at += 1;
                    self.function(script, at, live)
                }
                (_, Some(_))
                    if script.operator(*at + 1) == Some("(")
                        && script.operator(*at + 2) == Some(")") =>
                {
                    self.function(script, at, live)
                }
                _ => self.simple(script, at, live),
            }
        };
        self.depth -= 1;
        done
    }

    pub(super) fn expect(script: &Script, at: &mut usize, word: &str) {
        script.skip_lines(at);
        *at += usize::from(script.word(*at) == Some(word));
    }

    fn conditional(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let start = *at;
        *at += 1;
        let mut branches = Branches::new(script, start);
        let (mut is_open, mut flow) = (live, Flow::Next);
        loop {
            let first = *at;
            self.assumed = None;
            let (_, mut status) = self.list(script, at, is_open);
            let condition = script.quote(script.span(first..*at));
            let assumed = self.assumed.take();
            Self::expect(script, at, "then");
            flow = self
                .alternative(
                    script,
                    at,
                    is_open,
                    &mut status,
                    &mut branches,
                    (condition, assumed),
                )
                .unwrap_or(flow);
            is_open &= status != Some(true);
            match script.word(*at) {
                Some("elif") => *at += 1,
                Some("else") => {
                    *at += 1;
                    let condition = (otherwise(&branches), Some(true));
                    let taken = self.alternative(
                        script,
                        at,
                        is_open,
                        &mut Some(true),
                        &mut branches,
                        condition,
                    );
                    flow = taken.unwrap_or(flow);
                    is_open = false;
                }
                _ => break,
            }
        }
        Self::expect(script, at, "fi");
        self.after(branches, is_open, flow, script.span(start..*at))
    }

    /// Runs the commands of one alternative: at once if it is the only possible one, else as a branch.
    fn alternative(
        &mut self,
        script: &Rc<Script>,
        at: &mut usize,
        is_open: bool,
        status: &mut Option<bool>,
        branches: &mut Branches,
        (condition, assumed): (String, Option<bool>),
    ) -> Option<Flow> {
        let is_certain = *status == Some(true) && branches.conditions.is_empty();
        if !is_open || *status == Some(false) {
            self.list(script, at, false);
            return None;
        }
        if is_certain {
            return Some(self.list(script, at, true).0);
        }
        let nth = branches.conditions.len();
        branches.conditions.push(condition);
        branches.assumed.push(assumed);
        match self.decisions.get(&branches.key) {
            Some(taken) if *taken == nth => {
                *status = Some(true);
                Some(self.list(script, at, true).0)
            }
            Some(_) => {
                self.list(script, at, false);
                None
            }
            None => {
                let key = Some(branches.key);
                let taken = self.branch(key, |shell| shell.list(script, at, true).0);
                branches.taken.push(taken);
                None
            }
        }
    }

    pub(super) fn after(
        &mut self,
        mut branches: Branches,
        is_open: bool,
        flow: Flow,
        place: Span,
    ) -> Done {
        if branches.taken.is_empty() {
            return (flow, None);
        }
        if is_open {
            branches.taken.push(Some(Changes::new()));
            let condition = otherwise(&branches);
            branches.conditions.push(condition);
            branches.assumed.push(Some(true));
        }
        let known = branches
            .assumed
            .iter()
            .position(|assumed| *assumed != Some(false));
        let choice = Choice {
            default: known.filter(|nth| branches.assumed[*nth] == Some(true)),
            conditions: branches.conditions,
            is_loop: branches.is_loop,
        };
        self.forget_output();
        self.out.choices.insert(branches.key, choice);
        (self.join(&branches.taken, branches.key, place), None)
    }

    fn case(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let start = *at;
        *at += 1;
        self.has_assumed = false;
        let subject = if live {
            self.word(script, *at)
        } else {
            Text::empty(0)
        };
        let is_certain = !self.has_assumed && !subject.has_hole();
        let assumed_subject = self.out.assumed_text(&subject);
        *at += 1;
        Self::expect(script, at, "in");
        let subject_in_words = script.quote(script.span(start..*at));
        let mut branches = Branches::new(script, start);
        let (mut is_open, mut flow) = (live, Flow::Next);
        script.skip_lines(at);
        while script.word(*at) != Some("esac") && *at < script.tokens.len() {
            let before = *at;
            let (mut fits, mut is_all, mut is_assumed) = (false, false, false);
            while script.operator(*at) != Some(")") && *at < script.tokens.len() {
                if let Some(pattern) = script.word(*at) {
                    is_all |= pattern == "*";
                    let bare = pattern.replace(['\'', '"'], "");
                    fits |= expansion::matches(&bare, subject.as_str());
                    let assumed = assumed_subject.as_deref();
                    is_assumed |= assumed.is_some_and(|it| expansion::matches(&bare, it));
                }
                *at += 1;
            }
            let pattern = script.quote(script.span(before..*at));
            let condition = format!("{subject_in_words} {pattern}");
            *at += 1;
            let mut status = match (is_certain, is_all) {
                (true, _) => Some(fits),
                (false, true) => Some(true),
                (false, false) => None,
            };
            let assumed = assumed_subject.as_ref().map(|_| is_assumed);
            flow = self
                .alternative(
                    script,
                    at,
                    is_open,
                    &mut status,
                    &mut branches,
                    (condition, assumed),
                )
                .unwrap_or(flow);
            is_open &= status != Some(true);
            if script.operator(*at) == Some(";;") {
                *at += 1;
            }
            script.skip_lines(at);
            *at = (*at).max(before + 1);
        }
        *at += 1;
        self.after(branches, is_open, flow, script.span(start..*at))
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "bash judges the evaluation"
)]
mod tests;
