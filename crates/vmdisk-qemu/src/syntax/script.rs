//! The commands of a shell script with the values of its variables.
//!
//! The evaluation follows the structure of the script: what is certain on the way to a command is known, and everything
//! else is a hole, whose text is that of the expansion.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use vmdisk_source::Span;

use super::expansion;
use super::hole::{Choice, Decisions, Evaluated};
use super::script_text::{MAX_DEPTH, Script};
use super::shell_commands::assignment;
use super::shell_state::{ARGUMENTS, Changes, Done, Flow, Function, Shell, Value, literal};
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
    seed: Evaluated,
) -> Result<Evaluated, ReadFailure> {
    let first = text.as_str().find('\n').unwrap_or(text.as_str().len());
    let first = text.span(0..first);
    let mut shell = Shell {
        decisions: decisions.clone(),
        given: given.clone(),
        out: seed,
        is_posix: ["#!/bin/sh", "#!/usr/bin/env sh"]
            .iter()
            .any(|it| text.as_str().starts_with(it)),
        ..Shell::default()
    };
    let number = |nth: usize| given.get(&nth.to_string()).map(|value| literal(value));
    shell.args = (1..).map_while(number).collect();
    if shell.args.is_empty() {
        shell.args = vec![shell.caller_arguments(Span::empty(0))];
    }
    let script = Rc::new(Script::new(text)?);
    shell.list(&script, &mut 0, true);
    let commands = &shell.out.commands;
    if !commands.iter().any(|command| is_start(&command.words)) {
        shell.call_the_rest();
    }
    if shell.commands > MAX_COMMANDS || shell.bytes > MAX_BYTES {
        let message = "the loops and variables of the script expand to too much text";
        return Err(ReadFailure::new(first, message).help("write the command line without them"));
    }
    Ok(shell.out)
}

/// The alternatives of a branch that is not certain, as far as they were run.
#[derive(Default)]
struct Branches {
    /// The start of the text around them.
    key: usize,
    taken: Vec<Option<Changes>>,
    conditions: Vec<String>,
    /// Whether each is taken without arguments and variables of the caller, if that is known.
    assumed: Vec<Option<bool>>,
    is_loop: bool,
}

impl Branches {
    fn new(script: &Script, start: usize) -> Self {
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
                let condition = script.span(start..*at - 1);
                branches.conditions = vec![script.quote(condition)];
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

    fn function(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let name = script.word(*at).unwrap_or_default().to_owned();
        *at += 1;
        while matches!(script.operator(*at), Some("(" | ")" | "\n")) {
            *at += 1;
        }
        let start = *at;
        self.command(script, at, false);
        let function = Function {
            script: Rc::clone(script),
            body: start..*at,
            calls: 0,
        };
        if live {
            self.functions.insert(name, function);
        }
        (Flow::Next, Some(true))
    }

    /// Calls a function. Its status is the status of its last command.
    pub(super) fn call(&mut self, name: &str, args: Vec<Text>) -> Done {
        let Some(function) = self
            .functions
            .get_mut(name)
            .filter(|_| self.depth < 4 * MAX_DEPTH)
        else {
            return (Flow::Next, None);
        };
        function.calls += 1;
        let Function {
            script,
            body,
            calls,
        } = function.clone();
        if calls == 2 {
            self.out.shared.push(script.span(body.clone()));
        }
        let before = std::mem::replace(&mut self.args, args);
        let references = self.references.clone();
        self.locals.push(Changes::new());
        self.owners.push(name.to_owned());
        self.returns.push((self.branches.len(), Vec::new()));
        self.branches.push(Changes::new());
        let (flow, status) = self.command(&script, &mut body.start.clone(), true);
        let is_last = flow == Flow::Next && self.returns.last().is_some_and(|it| it.1.is_empty());
        let flow = self.after_returns(flow, script.span(body));
        self.owners.pop();
        self.args = before;
        self.references = references;
        for (name, value) in self.locals.pop().unwrap_or_default() {
            self.note(&name);
            self.put(&name, value);
        }
        match flow {
            Flow::Exit => (Flow::Exit, None),
            _ => (Flow::Next, status.filter(|_| is_last)),
        }
    }

    /// Continues after a function of which some branches end early.
    fn after_returns(&mut self, flow: Flow, place: Span) -> Flow {
        let former = self.branches.pop().unwrap_or_default();
        let (_, returned) = self.returns.pop().unwrap_or_default();
        let with_former = |mut ends: Changes| {
            for (name, value) in &former {
                ends.entry(name.clone()).or_insert_with(|| value.clone());
            }
            ends
        };
        if let Some(around) = self.branches.last_mut() {
            *around = with_former(std::mem::take(around));
        }
        let Some(&(key, _)) = returned.last() else {
            return flow;
        };
        let ends = returned
            .into_iter()
            .map(|(_, ends)| Some(with_former(ends)));
        let last = (flow != Flow::Exit).then(Changes::new);
        let ends: Vec<Option<Changes>> = ends.chain([last]).collect();
        self.join(&ends, key, place)
    }

    /// Calls the functions that nothing has called: another script may.
    fn call_the_rest(&mut self) {
        let mut names: Vec<(usize, String)> = self
            .functions
            .iter()
            .filter(|(_, it)| it.calls == 0)
            .map(|(name, it)| (it.body.start, name.clone()))
            .collect();
        names.sort();
        for (_, name) in names {
            let is_uncalled = self.functions.get(&name).is_some_and(|it| it.calls == 0);
            if is_uncalled {
                let args = vec![self.caller_arguments(Span::empty(0))];
                self.branch(None, |shell| shell.call(&name, args).0);
            }
        }
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
            let condition = script.span(first..*at);
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
                    let word = script.span(*at..*at + 1);
                    *at += 1;
                    let condition = (word, Some(true));
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
        (condition, assumed): (Span, Option<bool>),
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
        branches.conditions.push(script.quote(condition));
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

    fn after(&mut self, mut branches: Branches, is_open: bool, flow: Flow, place: Span) -> Done {
        if branches.taken.is_empty() {
            return (flow, None);
        }
        if is_open {
            branches.taken.push(Some(Changes::new()));
            branches.conditions.push("otherwise".to_owned());
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
            let condition = script.span(before..*at);
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

    fn for_loop(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let start = *at;
        *at += 1;
        if let Some(Token {
            kind: TokenKind::Arithmetic,
            range,
        }) = script.tokens.get(*at)
        {
            let header = script.text.as_str()[range.clone()].to_owned();
            *at += 1;
            return self.counting_loop(script, at, live, &header);
        }
        let name = script.word(*at).unwrap_or_default().to_owned();
        *at += 1;
        script.skip_lines(at);
        let mut words = self.args.clone();
        if script.word(*at) == Some("in") {
            *at += 1;
            words.clear();
            while script.word(*at).is_some() {
                if live {
                    words.extend(self.words(script, *at));
                }
                *at += 1;
            }
        }
        Self::expect(script, at, "do");
        let body = *at;
        let is_known = |word: &Text| !word.has_hole() && !word.as_str().contains(['*', '?', '{']);
        if !words.iter().all(is_known) {
            // Options of the caller.
            let is_caller = matches!(words.as_slice(), [word] if word.as_str() == "$@");
            script.skip_lines(at);
            let reads_options = is_caller && script.word(*at) == Some("case");
            let assumed = reads_options.then_some(false);
            return self.unknown_loop(script, at, live, Some(&name), start, assumed);
        }
        let mut end = body;
        self.list(script, &mut end, false);
        *at = end;
        let mut done = (Flow::Next, None);
        if words.len() > 1 {
            self.out.shared.push(script.span(body..end));
        }
        for word in words.into_iter().filter(|_| live) {
            self.set_word(&name, word);
            done = self.round(script, body..end);
            if done.0 != Flow::Next {
                break;
            }
        }
        Self::expect(script, at, "done");
        (past_loop(done.0), done.1)
    }

    /// `for ((…; …; …))`
    fn counting_loop(
        &mut self,
        script: &Rc<Script>,
        at: &mut usize,
        live: bool,
        header: &str,
    ) -> Done {
        Self::expect(script, at, "do");
        let body = *at;
        let mut parts = header.split(';');
        let [first, condition, next] = [(); 3].map(|()| parts.next().unwrap_or_default());
        if live {
            self.number(first);
        }
        let known = if live {
            self.number(condition)
        } else {
            Some(0)
        };
        if known.is_none() {
            return self.unknown_loop(script, at, live, None, body, None);
        }
        let mut end = body;
        self.list(script, &mut end, false);
        self.out.shared.push(script.span(body..end));
        *at = end;
        while live && self.number(condition).is_some_and(|it| it != 0) {
            let (flow, _) = self.round(script, body..end);
            self.number(next);
            self.commands += 1;
            if flow != Flow::Next || self.commands > MAX_COMMANDS {
                break;
            }
        }
        Self::expect(script, at, "done");
        (Flow::Next, None)
    }

    fn while_loop(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let start = *at;
        let is_while = script.word(*at) == Some("while");
        *at += 1;
        let mut ahead = *at;
        self.list(script, &mut ahead, false);
        Self::expect(script, &mut ahead, "do");
        self.list(script, &mut ahead, false);
        let key = script.span(start..start + 1).start;
        if live && let Some(flow) = self.rounds(script, at, ahead, is_while) {
            *at = ahead;
            Self::expect(script, at, "done");
            return (flow, None);
        }
        if live && self.decisions.get(&key) != Some(&1) {
            self.forget(script, *at..ahead, key);
        }
        self.assumed = None;
        let (_, status) = self.list(script, at, live);
        let assumed = self.assumed.take().filter(|assumed| *assumed != is_while);
        Self::expect(script, at, "do");
        if live && status == Some(is_while) {
            // Of a loop without an end, the first round is known.
            let choice = Choice {
                conditions: vec![
                    script.quote(script.span(start..*at)),
                    "one round".to_owned(),
                ],
                default: Some(1),
                is_loop: true,
            };
            self.out.choices.insert(key, choice);
            let done = self.list(script, at, true);
            Self::expect(script, at, "done");
            return (past_loop(done.0), None);
        }
        let runs = live && status != Some(!is_while);
        self.unknown_loop(script, at, runs, None, start, assumed.map(|_| false))
    }

    /// Runs a loop whose condition is known in each round, up to its `done`; `None` if it is not, or does not change.
    fn rounds(
        &mut self,
        script: &Rc<Script>,
        at: &mut usize,
        end: usize,
        is_while: bool,
    ) -> Option<Flow> {
        let key = script.span(*at - 1..*at).start;
        let mut body = *at;
        self.list(script, &mut body, false);
        Self::expect(script, &mut body, "do");
        let input = self.input_of(script, end + 1, true);
        let has_input = input.is_some();
        let outer = has_input.then(|| std::mem::replace(&mut self.input, input));
        let mut flow = None;
        let before = (self.out.commands.len(), self.input.clone());
        let mut status = None;
        self.branch(None, |shell| {
            status = shell.list(script, &mut at.clone(), true).1;
            Flow::Next
        });
        self.out.commands.truncate(before.0);
        self.input = before.1;
        if status == Some(!is_while)
            || status.is_some() && (has_input || sets_its_end(script, *at..body, end))
        {
            loop {
                self.commands += 1;
                let (_, status) = self.list(script, &mut at.clone(), true);
                if status.is_none() {
                    self.forget(script, *at..end, key);
                    let start = at.saturating_sub(1);
                    let done = self.unknown_loop(script, &mut body, true, None, start, None);
                    flow = Some(done.0);
                    break;
                }
                if status != Some(is_while) || self.commands > MAX_COMMANDS {
                    flow = Some(Flow::Next);
                    break;
                }
                let next = self.round(script, body..end).0;
                if next != Flow::Next {
                    flow = Some(past_loop(next));
                    break;
                }
            }
            self.out.shared.push(script.span(body..end));
        }
        if let Some(outer) = outer {
            self.input = outer;
        }
        flow
    }

    /// One round of a loop. Unless it certainly reaches its end, the variables that it sets are unknown.
    fn round(&mut self, script: &Rc<Script>, body: Range<usize>) -> Done {
        let outer = std::mem::take(&mut self.may_leave);
        let (flow, status) = self.list(script, &mut body.start.clone(), true);
        if std::mem::replace(&mut self.may_leave, outer) {
            for word in body.filter_map(|at| script.word(at)) {
                match assignment(word) {
                    Some((name, ..)) => self.set_unknown(&word[name], "a loop sets it"),
                    None if word == "set" => {
                        let args = vec![self.caller_arguments(Span::empty(0))];
                        self.set(ARGUMENTS, Value::list_of(args));
                    }
                    None => {}
                }
            }
        }
        let flow = if flow == Flow::Continue {
            Flow::Next
        } else {
            flow
        };
        (flow, status)
    }

    /// A loop that runs any number of times.
    fn unknown_loop(
        &mut self,
        script: &Rc<Script>,
        at: &mut usize,
        live: bool,
        name: Option<&str>,
        start: usize,
        assumed: Option<bool>,
    ) -> Done {
        let mut branches = Branches::new(script, start);
        if !live || self.decisions.get(&branches.key) == Some(&1) {
            self.list(script, at, false);
            Self::expect(script, at, "done");
            return (Flow::Next, None);
        }
        branches.conditions = vec![script.quote(script.span(start..*at))];
        branches.assumed = vec![assumed];
        branches.is_loop = true;
        let mut end = *at;
        self.list(script, &mut end, false);
        self.forget(script, *at..end, branches.key);
        if let Some(name) = name {
            self.set_unknown(name, "a loop sets it");
        }
        let key = Some(branches.key);
        let round = self.branch(key, |shell| past_loop(shell.list(script, at, true).0));
        branches.taken = vec![round];
        Self::expect(script, at, "done");
        let place = script.span(start..*at);
        self.after(branches, true, Flow::Next, place)
    }

    /// Makes the scalar variables unknown that a loop sets: each round starts with those of the round before.
    fn forget(&mut self, script: &Script, tokens: Range<usize>, key: usize) {
        for at in tokens {
            let Some(word) = script.word(at) else {
                continue;
            };
            if let Some((name, _, value)) = assignment(word)
                && !value.is_empty()
                && word[value.clone()].contains('$')
            {
                self.set_unknown(&word[name.clone()], "a loop sets it");
                if let Some(value) = self.variables.get_mut(&word[name]) {
                    value.choice = Some(key);
                }
            }
        }
    }

    /// `[[ … ]]`
    fn double_bracket(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        *at += 1;
        let mut words = Vec::new();
        let mut is_simple = live;
        self.has_assumed = false;
        while *at < script.tokens.len() && script.word(*at) != Some("]]") {
            match script.word(*at) {
                Some(_) if live => words.push(self.word(script, *at)),
                Some(_) => {}
                None => match script.operator(*at) {
                    Some("&&") => words.push(literal("-a")),
                    Some("||") => words.push(literal("-o")),
                    _ => is_simple = false,
                },
            }
            *at += 1;
        }
        *at += 1;
        let status = if is_simple {
            self.status_of_test(&words)
        } else {
            None
        };
        (Flow::Next, status)
    }

    /// The result of a test, if it is certain.
    pub(super) fn test(&mut self, words: &[Text]) -> Option<bool> {
        let assumed: Option<Vec<String>> =
            words.iter().map(|it| self.out.assumed_text(it)).collect();
        let words = assumed?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        tested(&words)
    }

    /// The status of a test: certain, or only without arguments and variables of the caller.
    pub(super) fn status_of_test(&mut self, words: &[Text]) -> Option<bool> {
        let status = self.test(words);
        let is_certain = !self.has_assumed && !words.iter().any(Text::has_hole);
        self.assumed = status.filter(|_| !is_certain);
        status.filter(|_| is_certain)
    }
}

/// Where the evaluation continues after a loop.
const fn past_loop(flow: Flow) -> Flow {
    match flow {
        Flow::Break | Flow::Continue => Flow::Next,
        flow => flow,
    }
}

/// True if a loop sets a variable of its condition.
fn sets_its_end(script: &Script, condition: Range<usize>, end: usize) -> bool {
    let is_other = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let text = |at: usize| &script.text.as_str()[script.tokens[at].range.clone()];
    let names: Vec<&str> = condition
        .clone()
        .flat_map(|at| text(at).split(is_other))
        .collect();
    let counts = condition.clone().any(|at| text(at).contains('#'));
    let sets = |at: usize| match script.tokens[at].kind {
        TokenKind::Arithmetic => text(at)
            .split(is_other)
            .any(|it| !it.is_empty() && names.contains(&it)),
        _ if text(at) == "shift" => names.iter().any(|it| it.parse::<usize>().is_ok()) || counts,
        _ => assignment(text(at)).is_some_and(|(name, ..)| names.contains(&&text(at)[name])),
    };
    (condition.end..end).any(sets)
}

/// The result of a test of known words.
fn tested(words: &[&str]) -> Option<bool> {
    let number = |word: &str| word.trim().parse::<i64>().ok();
    match words {
        ["!", rest @ ..] => tested(rest).map(|status| !status),
        ["-n", word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        ["-e" | "-f" | "-d" | "-r" | "-w" | "-s" | "-b", ""] => Some(false),
        [] => Some(false),
        [word] => Some(!word.is_empty()),
        [a, "=" | "==", b] => Some(expansion::matches(b, a)),
        [a, "!=", b] => Some(!expansion::matches(b, a)),
        [
            a,
            operator @ ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"),
            b,
        ] => {
            let (a, b) = (number(a)?, number(b)?);
            Some(match *operator {
                "-eq" => a == b,
                "-ne" => a != b,
                "-lt" => a < b,
                "-le" => a <= b,
                "-gt" => a > b,
                _ => a >= b,
            })
        }
        _ => {
            let last = |operator| words.iter().rposition(|word| *word == operator);
            let at = last("-o").or_else(|| last("-a"))?;
            let (first, second) = (tested(&words[..at])?, tested(&words[at + 1..])?);
            Some(if words[at] == "-a" {
                first && second
            } else {
                first || second
            })
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "bash judges the evaluation"
)]
mod tests {
    use super::super::hole::{Command, UNSET};
    use super::*;
    use std::io::Write;
    use std::process::{self, Stdio};

    fn starts_qemu(words: &[Text]) -> bool {
        let words = &words[usize::from(words[0].as_str() == "exec")..];
        words[0].as_str() == "qemu-system-x86_64"
    }

    fn evaluated(script: &str) -> Vec<Vec<String>> {
        let evaluated = evaluate(script);
        let commands = evaluated.commands.iter();
        let starts = commands.filter(|it| starts_qemu(&it.words));
        let words = |command: &Command| {
            let words = command.words.iter().map(|it| it.as_str().to_owned());
            words.filter(|word| word != "exec").collect()
        };
        starts.map(words).collect()
    }

    fn try_evaluate(script: &str) -> Result<Evaluated, ReadFailure> {
        let mut text = Text::empty(0);
        text.push_verbatim(script, Span::new(0, script.len()));
        super::evaluate(
            text,
            starts_qemu,
            &Decisions::new(),
            &BTreeMap::new(),
            Evaluated::default(),
        )
    }

    fn evaluate(script: &str) -> Evaluated {
        try_evaluate(script).unwrap()
    }

    /// The arguments that bash passes to QEMU in each script; `None` without bash.
    fn real(scripts: &[String]) -> Option<Vec<Vec<Vec<String>>>> {
        let name = format!("vmdisk-script-{}-{}", std::process::id(), scripts.len());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("qemu-system-x86_64");
        let stub = "#!/bin/sh\nprintf '%s\\001' \"${0##*/}\" \"$@\"\nprintf '\\002'\n";
        std::fs::write(&program, stub).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let mut all = String::new();
        for script in scripts {
            all.push_str(&format!(
                "bash <<'END OF SCRIPT'\n{script}\nEND OF SCRIPT\nprintf '\\003'\n"
            ));
        }
        let bash = process::Command::new("bash")
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut bash) = bash else {
            let is_required = std::env::var("VMDISK_REAL").is_ok_and(|it| it == "require");
            assert!(!is_required, "there is no bash");
            println!("skipped: there is no bash");
            return None;
        };
        let mut input = bash.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
        let output = bash.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words = |start: &str| start.split_terminator('\u{1}').map(str::to_owned).collect();
        let starts = |script: &str| script.split_terminator('\u{2}').map(words).collect();
        Some(text.split_terminator('\u{3}').map(starts).collect())
    }

    /// Scripts of which everything is known.
    const KNOWN: [&str; 88] = [
        "A=1; qemu-system-x86_64 -a $A ${A}b \"$A\" '$A' \"a${A}c\"",
        "A='x  y'; qemu-system-x86_64 $A \"$A\" -p$A-s \"-p$A\"",
        "A=; qemu-system-x86_64 -a $A \"$A\" b",
        "export A=1; readonly B=$A; declare -r C=\"$B 2\"; qemu-system-x86_64 $A $B $C",
        "A=a; A+=b; A=\"$A c\"; A=\"${A} d\"; qemu-system-x86_64 $A",
        "L=(-a 'b c'); L+=(d \"${L[@]}\"); L[4]=z; qemu-system-x86_64 \"${L[@]}\" \"${L[1]}\" ${L[1]} ${#L[@]}",
        "L+=(-x); L=(-y \"${L[@]}\"); qemu-system-x86_64 ${L[@]} \"${L[*]}\"",
        "L=(); qemu-system-x86_64 -a \"${L[@]}\" -b",
        "A=a.b.c; qemu-system-x86_64 ${A%.*} ${A%%.*} ${A#*.} ${A##*.} ${#A} ${A/./-} ${A//./-} ${A:2:1} ${A^^}",
        "A=x; B=; qemu-system-x86_64 ${A:+y} ${B:+y} ${B+z} ${B:-d} \"${B-d}\" ${B:=e} $B",
        "N=2; M=$((N * 3 + 1)); ((N++)); let N+=2; qemu-system-x86_64 $N $M $((M % 4))",
        "set -- -a 'b c'; set -- \"$@\" -d; qemu-system-x86_64 \"$@\" $# $1 \"$2\"; shift 2; qemu-system-x86_64 \"$@\"",
        "set -- -x; f() { qemu-system-x86_64 \"$@\" -in $1; }; f -a 'b c'; qemu-system-x86_64 \"$@\"",
        "f() { local a=$1; g \"$a\" -z; }; g() { qemu-system-x86_64 \"$@\"; }; a=0; f 'x y'; qemu-system-x86_64 -a $a",
        "f() { if [ -z \"$1\" ]; then return; fi; A=set; }; A=un; f; qemu-system-x86_64 $A; f x; qemu-system-x86_64 $A",
        "for d in a b; do O=\"$O -d $d\"; done; qemu-system-x86_64 $O",
        "O=; for d in a 'b c'; do O+=\" -d $d\"; done; qemu-system-x86_64 $O $d",
        "for ((i = 0; i < 3; i++)); do L+=(-d$i); done; qemu-system-x86_64 \"${L[@]}\" $i",
        "set -- p q; for x; do L+=($x.img); done; qemu-system-x86_64 ${L[@]}",
        "A=1; if [ \"$A\" = 1 ]; then B=y; else B=n; fi; qemu-system-x86_64 $B",
        "A=3; if [[ $A == 1 ]]; then B=1; elif [ $A -gt 2 ]; then B=2; else B=3; fi; qemu-system-x86_64 $B",
        "A=ab; case $A in x|y) B=1 ;; a*) B=2 ;; *) B=3 ;; esac; qemu-system-x86_64 $B",
        "D=; [ -n \"$D\" ] && O=-d; [ -z \"$D\" ] && O=\"$O -e\"; [ -n \"$D\" ] || O=\"$O -f\"; qemu-system-x86_64 $O",
        "(A=in; qemu-system-x86_64 $A); A=${A:-out}; qemu-system-x86_64 -x",
        "C=\"qemu-system-x86_64 -a\"; C=\"$C -b c\"; $C d",
        "c=(qemu-system-x86_64); c+=(-a 'b c'); \"${c[@]}\"",
        "P=qemu-system-; A=x86_64; \"$P$A\" -q",
        "A=1; eval \"qemu-system-x86_64 -a $A \\$A '\\$A'\"",
        "export A=1; B=2; bash -c \"qemu-system-x86_64 -a \\$A $B 'x y'\"",
        "A=1; sh -s <<EOF\nB=2\nqemu-system-x86_64 -a $A \\$B\nEOF",
        "sh -s <<'EOF'\nB=2\nqemu-system-x86_64 -a $B\nEOF",
        "A=1; cat > run.sh <<EOF\nqemu-system-x86_64 \\\\\n  -a $A \\\\\n  -b\nEOF\nsh run.sh",
        "cat >&2 <<EOF\nqemu-system-x86_64 -not $A\nEOF\nqemu-system-x86_64 -a",
        "qemu-system-x86_64 -a x`# y z`,b\"`# c d`\" -c",
        "qemu-system-x86_64 -a `# comment` \\\n  $(: comment) -b",
        "A=x; exec qemu-system-x86_64 \\\n -a file=$A,\\\nb=c \"d \\\n e\"; qemu-system-x86_64 -never",
        "printf -v A 'f=%s/%02d' /x 4; qemu-system-x86_64 \"$A\"",
        "J='{\"a\":\"'\"$HOMELESS\"'\"}'; J=\"{\\\"b\\\":1}\"; qemu-system-x86_64 \"$J\"",
        "f() { echo usage; exit 1; }; A=1; [ \"$A\" = 1 ] || f; qemu-system-x86_64 $A",
        "A=1; true && B=2 && qemu-system-x86_64 $A $B",
        "A=1; A=2 true; A=3 qemu-system-x86_64 -a $A",
        "declare -A T; A=x; while false; do A=y; done; qemu-system-x86_64 $A",
        "run() { echo \"$*\" >&2; \"$@\"; }; A=b; run qemu-system-x86_64 -a $A 2>/dev/null",
        "read -r -d '' O <<'E' || true\n-a b\n-c d\nE\nqemu-system-x86_64 $O",
        "A=1; O=$(cat <<E\n-a $A\n-b\nE\n); qemu-system-x86_64 $O",
        "while read -r p f; do L+=(-d \"$p,$f\"); done <<E\n/a x y\n/b z\nE\nqemu-system-x86_64 \"${L[@]}\"",
        "for s in a:b c:d:e; do IFS=: read -r x y <<< \"$s\"; L+=($x \"$y\"); done; qemu-system-x86_64 \"${L[@]}\" a:b",
        "read -r A B <<< \"x  y z \"; qemu-system-x86_64 $A \"$B\"",
        "mapfile -t L <<'E'\n-a\nb c\nE\nqemu-system-x86_64 \"${L[@]}\"",
        "IFS=, read -ra L <<< \"a,b c,,d\"; qemu-system-x86_64 \"${L[@]}\" ${#L[@]}",
        "o=(a=b c=d); d=$(IFS=,; echo \"${o[*]}\"); qemu-system-x86_64 \"$d\" \"${o[*]}\"",
        "IFS=:; A=a:b; qemu-system-x86_64 $A \"$A\" x:y; unset IFS; B=\"c d\"; qemu-system-x86_64 $B",
        "OLD=$IFS; IFS=$'\\n'; A='a b\nc'; qemu-system-x86_64 $A; IFS=$OLD; qemu-system-x86_64 $A",
        "D1=/a D2=/b; for n in 1 2; do v=D$n; L+=(${!v}); done; qemu-system-x86_64 \"${L[@]}\"",
        "L=(a 'b c'); for i in \"${!L[@]}\"; do M+=(\"$i-${L[$i]}\"); done; qemu-system-x86_64 \"${M[@]}\"",
        "L=(a b); qemu-system-x86_64 ${L[@]/#/-d } \"${L[@]/%/.img}\" ${L[0]/#a/z} ${L[@]%b}",
        "f() { local -n r=$1; r+=(-d \"$2\"); }; l=(-m); f l 'x y'; f l z; r=1; qemu-system-x86_64 \"${l[@]}\" $r",
        "i=1; while [ $i -le 3 ]; do O=\"$O -d$i\"; i=$(expr $i + 1); done; qemu-system-x86_64 $O $i",
        "i=0; while (( i < 2 )); do L+=($i); ((i++)); done; qemu-system-x86_64 \"${L[@]}\"",
        "i=0; until [ $i = 2 ]; do i=$((i+1)); done; qemu-system-x86_64 -$i",
        "set -- a b c; while [ -n \"$1\" ]; do L+=(-x \"$1\"); shift; done; qemu-system-x86_64 \"${L[@]}\" \"$@\"",
        "set -- a b c; while [ $# -gt 1 ]; do L+=(-x \"$1\"); shift; done; qemu-system-x86_64 \"${L[@]}\" \"$@\"",
        "F=1; C=$([ \"$F\" = 1 ] && echo unsafe || echo none); qemu-system-x86_64 $C",
        "L=(-a); L+=( -b ); if (( ${#L[@]} > 1 )); then echo \"${#L[@]}\" >&2; L+=(-c); fi; qemu-system-x86_64 \"${L[@]}\"",
        "d() { local -r p=$1; local o=\"f=$p\"; o+=\",x\"; printf '%s' \"$o\"; }; qemu-system-x86_64 \"$(d /a)\" \"$(d /b)\"",
        "A=$(echo -n a; echo b); qemu-system-x86_64 $A$(echo -e c)",
        "echo start >&2 && B=1; qemu-system-x86_64 $B",
        "while read -r a; do L+=(\"$a\"); done <<< \"x\ny\"; qemu-system-x86_64 \"${L[@]}\" \"[$a]\"",
        "for d in a skip b; do if [ $d = skip ]; then continue; fi; O+=\" -$d\"; done; qemu-system-x86_64 $O",
        "for d in a b c; do O+=\" -$d\"; [ $d = b ] && break; done; qemu-system-x86_64 $O $d",
        "while true; do qemu-system-x86_64 -a; break; done; qemu-system-x86_64 -b",
        "N=0; while ((N < 3)); do N=$((N+1)); [ $N -eq 2 ] && continue; L+=(-$N); done; qemu-system-x86_64 \"${L[@]}\"",
        "for i in a b; do for j in 1 2; do [ $j = 2 ] && break; O+=\" $i$j\"; done; done; qemu-system-x86_64 $O",
        "declare -A C; C[d]=/a; for k in d; do C[$k$k]=/b; qemu-system-x86_64 \"${C[$k]}\" \"${C[dd]}\"; done",
        "e=root:/a.q:qcow2; i=${e%%:*}; r=${e#*:}; qemu-system-x86_64 $i ${r%:*} ${r##*:}",
        "T=raw; [[ -n \"$T\" && \"$T\" != qcow2 ]] && O=a; [[ -z $T || $T == raw && -n $O ]] && P=b; qemu-system-x86_64 $O $P",
        "a=5 b=3; qemu-system-x86_64 $((1<<10)) $((a > b ? 1024 : 512)) $((a < b ? 1 : 16>>2))",
        "D=(/a /b); printf -v O ' -f %s' \"${D[@]}\"; qemu-system-x86_64 $O $(printf -- '%s,%d ' x 1 y 2)",
        "for l in {a..c}; do O+=\" d$l\"; done; qemu-system-x86_64 $O x{b..d}y",
        "L=(a 'b c' d); set -- p 'q r' s; qemu-system-x86_64 \"${L[@]:1}\" \"${L[@]:0:2}\" ${L[@]: -1} \"${@:2}\" \"${@:1:1}\"",
        "A=abcdef; N=2; qemu-system-x86_64 ${A:1:2} ${A:$N} ${A: -2} ${A:N+1:1} ${A:9}",
        "sh -c 'qemu-system-x86_64 -a $1 \"$@\" $3' x 'y z' w; bash -c 'qemu-system-x86_64 -b $1 $#'",
        "declare -i N=2+3; declare -r -i M=\"N * 2\"; f() { local -i n=N-1; qemu-system-x86_64 $n; }; f; qemu-system-x86_64 $N $M",
        "mapfile -t L < <(printf '%s\\n' a 'b c'); while read -r x; do L+=(-$x); done < <(echo d; echo e); qemu-system-x86_64 \"${L[@]}\"",
        "O=$(printf '%s %s\\n' a b c d; printf 'e\\n'); qemu-system-x86_64 \"$O\" $(printf '%s\\n' -x 'y z')",
        "b() { [ \"$1\" -gt 10 ]; }; s() { local n=$1; [[ $n == a* ]]; }; if b 20; then A=1; fi; b 5 || A+=2; s abc && A+=3; qemu-system-x86_64 $A",
        "m() { local -a c=(qemu-system-x86_64); c+=(-a); \"${c[@]}\" \"$@\"; }; m x 'y z'",
        "read -r A <<< ' a,b '; IFS=,; set -- $A; qemu-system-x86_64 \"$1\" \"$2\" \"$*\"",
    ];

    #[test]
    fn what_bash_passes_to_qemu_is_what_the_evaluation_finds() {
        let scripts = KNOWN.map(str::to_owned);
        let Some(real) = real(&scripts) else { return };
        let pairs = scripts.iter().zip(real);
        let wrong = pairs.filter(|(script, real)| evaluated(script) != *real);
        let wrong: Vec<_> = wrong.map(|it| (evaluated(it.0), it)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Random scripts.
    struct Writer(u64);

    impl Writer {
        fn next(&mut self, below: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695);
            usize::try_from(self.0 >> 33).unwrap() % below
        }

        fn of(&mut self, words: &[&str]) -> String {
            words[self.next(words.len())].to_owned()
        }

        fn value(&mut self) -> String {
            self.of(&[
                "x",
                "'a b'",
                "\"$A\"",
                "$B",
                "\"$B-$A\"",
                "${C}c",
                "\"$C d\"",
                "a.img",
                "\"\"",
                "${A%.*}",
                "${B:-z}",
                "\"${A:+q}\"",
                "$((N + 1))",
                "\"${L[*]}\"",
                "\"'$A'\"",
                "${#L[@]}",
                "${L[0]}",
                "\"\\$A\"",
                "$1",
                "\"$*\"",
            ])
        }

        fn condition(&mut self) -> String {
            let (a, b) = (self.value(), self.value());
            match self.next(4) {
                0 => format!("[ -n {a} ]"),
                1 => format!("[[ {a} == {b} ]]"),
                2 => format!("[ \"$N\" -lt {} ]", self.next(4)),
                _ => "[ -e \"$RANDOM_FILE\" ]".to_owned(),
            }
        }

        fn statement(&mut self, depth: usize) -> String {
            let name = self.of(&["A", "B", "C"]);
            let value = self.value();
            let kinds = match depth {
                0 => 14,
                1 | 2 => 13,
                _ => 8,
            };
            match self.next(kinds) {
                0 | 1 => format!("{name}={value}"),
                2 => format!("{name}+={value}"),
                3 => format!("L+=({value} -o)"),
                4 => format!("L=({value} \"${{L[@]}}\")"),
                5 => format!("set -- \"$@\" {value}"),
                6 => format!("N=$((N + {}))", self.next(3)),
                7 => format!("{name}=\"${name} {}\"", self.next(9)),
                8 => {
                    let (a, b) = (self.statement(depth + 1), self.statement(depth + 1));
                    format!("if {}; then\n{a}\nelse\n{b}\nfi", self.condition())
                }
                9 => format!("{} && {}", self.condition(), self.statement(depth + 1)),
                10 => {
                    let body = self.statement(depth + 1);
                    format!("for X in {value} y; do\n{body}; {name}=$X\ndone")
                }
                11 => {
                    let (a, b) = (self.statement(depth + 1), self.statement(depth + 1));
                    format!("case {value} in\n x|a*) {a} ;;\n *) {b} ;;\nesac")
                }
                12 => format!("( {} )", self.statement(depth + 1)),
                _ => {
                    let body = self.statement(depth + 1);
                    format!("f() {{ local B={value}; {body}; {name}=\"$1\"; }}\nf {value} 2")
                }
            }
        }

        fn script(&mut self) -> String {
            let mut lines = vec!["set --; A=a.x; B=; C=c; N=1; L=()".to_owned()];
            let count = 2 + self.next(6);
            lines.extend((0..count).map(|_| self.statement(0)));
            lines.push("qemu-system-x86_64 -a \"$A\" $B -c$C $N \"${L[@]}\" \"$@\" $1".to_owned());
            lines.join("\n")
        }
    }

    #[test]
    fn a_random_script_has_the_words_that_bash_finds_or_holes() {
        let mut writer = Writer(7);
        let scripts: Vec<String> = (0..400).map(|_| writer.script()).collect();
        let Some(real) = real(&scripts) else { return };
        let mut known = 0;
        for (script, real) in scripts.iter().zip(real) {
            let found = evaluated(script);
            assert_eq!(found.len(), 1, "{script}");
            let commands = evaluate(script).commands;
            let last = &commands.last().unwrap().words;
            if !last.iter().any(Text::has_hole) {
                known += 1;
                assert_eq!(found, real, "{script}");
            }
        }
        assert!(known > 150, "only {known} scripts are known");
    }

    /// A script, and the name of its last hole, with the reason and the possible values.
    const HOLES: &[(&str, &str, &str, &str)] = &[
        ("qemu-system-x86_64 -a $X", "$X", UNSET, ""),
        (
            "qemu-system-x86_64 -a ${1}",
            "${1}",
            "it is an argument of the script",
            "",
        ),
        (
            "qemu-system-x86_64 -a \"$(cat 'x y')\"",
            "$(cat…)",
            "it is the output of a command",
            "",
        ),
        (
            "A=1; [ -e x ] && A=2; qemu-system-x86_64 -a $A",
            "$A",
            "a branch sets it",
            "1 or 2",
        ),
        (
            "A=1; if x; then A=2; elif y; then A=3; fi; qemu-system-x86_64 -a $A",
            "$A",
            "a branch sets it",
            "1 or 2 or 3",
        ),
        (
            "O=-a; x && O=\"$O -b\"; qemu-system-x86_64 $O",
            "$O",
            "a branch sets it",
            " or -b",
        ),
        (
            "L=(-a); x && L+=(-b); qemu-system-x86_64 ${L[@]}",
            "$L",
            "a branch sets it",
            " or -b",
        ),
        (
            "[ -z \"$A\" ] && A=1; qemu-system-x86_64 -a $A",
            "$A",
            "a branch sets it",
            "",
        ),
        (
            "f() { x && { A=1; return; }; A=2; }; f; qemu-system-x86_64 -a $A",
            "$A",
            "a branch sets it",
            "1 or 2",
        ),
        (
            "f() { A=1; if x; then return; else exit; fi; }; f; qemu-system-x86_64 -a$A $B",
            "$B",
            "nothing in the file sets it",
            "",
        ),
        (
            "A=1; . ./conf; qemu-system-x86_64 -a $A",
            "$A",
            "`./conf`, which is not read, may set it",
            "",
        ),
        (
            "read A; qemu-system-x86_64 -a $A",
            "$A",
            "`read` sets it",
            "",
        ),
        (
            "for A in *.img; do qemu-system-x86_64 -a $A; done",
            "$A",
            "a loop sets it",
            "",
        ),
        (
            "for d in a b; do [ -e $d ] && break; A=$d; done; qemu-system-x86_64 -a $A",
            "$A",
            "a loop sets it",
            "",
        ),
        (
            "N=$((M + 1)); qemu-system-x86_64 -a $N",
            "$((M…)",
            "it is computed from an unknown value",
            "",
        ),
    ];

    #[test]
    fn a_hole_has_its_place_and_reason() {
        for (script, name, reason, values) in HOLES.iter().copied() {
            let evaluated = evaluate(script);
            let last = evaluated.commands.last().unwrap().words.last().unwrap();
            assert_eq!(last.as_str(), name, "{script}");
            let hole = evaluated.holes.iter().rev().find(|hole| hole.name == name);
            let hole = hole.unwrap_or_else(|| panic!("{script}: {:?}", evaluated.holes));
            assert_eq!(
                (&*hole.reason, &*hole.values.join(" or ")),
                (reason, values),
                "{script}"
            );
            assert!(!hole.span.is_empty(), "{script}");
        }
    }

    #[test]
    fn text_that_grows_without_end_is_refused_soon() {
        let doubled = "A=\"$A $A\"\n".repeat(60);
        let bomb = format!("A=x\n{doubled}qemu-system-x86_64 $A");
        for script in [
            bomb.as_str(),
            "for ((i = 0; 1; i++)); do A=$i; done; qemu-system-x86_64 -a",
            "A=x; while :; do A=\"$A $A\"; done; qemu-system-x86_64 -a",
            "f() { f; f; }; f; qemu-system-x86_64 -a",
            "A=1; eval 'eval \"$A\"'; A='eval \"$A\"'; eval \"$A\"; qemu-system-x86_64 -a",
        ] {
            let start = std::time::Instant::now();
            let _ = try_evaluate(script);
            assert!(start.elapsed().as_secs() < 5, "{script}");
        }
        assert!(try_evaluate(&bomb).is_err());
        let long = "O=\"$O -drive file=/a,format=raw\"\n".repeat(14_000);
        let start = std::time::Instant::now();
        let script = format!("O=\n{long}qemu-system-x86_64 $O");
        assert_eq!(evaluated(&script)[0].len(), 28_001);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
