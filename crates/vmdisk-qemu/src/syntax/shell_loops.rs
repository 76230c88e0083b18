//! Loops: each round while it is known, or any number of them.

use std::ops::Range;
use std::rc::Rc;

use vmdisk_source::Span;

use super::hole::Choice;
use super::script::{Branches, MAX_COMMANDS};
use super::script_text::Script;
use super::shell_commands::assignment;
use super::shell_state::{ARGUMENTS, Done, Flow, Shell, Value};
use super::shell_words::{Token, TokenKind};
use super::text::Text;

impl Shell {
    pub(super) fn for_loop(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
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
        let is_asked = script.word(start) == Some("select");
        if is_asked || !words.iter().all(is_known) {
            // Options of the caller.
            let is_caller =
                !is_asked && matches!(words.as_slice(), [word] if word.as_str() == "$@");
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

    pub(super) fn while_loop(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
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
