//! Functions and their calls.

use std::rc::Rc;

use vmdisk_source::Span;

use super::script_text::{MAX_DEPTH, Script};
use super::shell_state::{Changes, Done, Flow, Function, Shell};
use super::text::Text;

impl Shell {
    pub(super) fn function(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let name = script.word(*at).unwrap_or_default().to_owned();
        *at += 1;
        // The body may be in parentheses, too.
        if script.operator(*at) == Some("(") && script.operator(*at + 1) == Some(")") {
            *at += 2;
        }
        script.skip_lines(at);
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

    /// Calls the functions without a call: another script may call them.
    pub(super) fn call_the_rest(&mut self) {
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
}
