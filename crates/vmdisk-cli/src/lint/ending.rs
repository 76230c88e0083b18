//! How a run ends.

use std::collections::BTreeSet;

use vmdisk::FailedFix;
use vmdisk::report::UncheckedRules;

use crate::age::OldFacts;
use crate::args::{FailOnUnchecked, LintArgs, LintFormat};
use crate::exit::Exit;
use crate::lint::mode::Mode;
use crate::render::concise;
use crate::render::message::{Message, MessagePlace};
use crate::report::input::InputReport;

/// The rules that `--fail-on-unchecked` fails an input for.
fn failing<'a>(args: &LintArgs, input: &'a InputReport) -> Option<&'a UncheckedRules> {
    match args.fail_on_unchecked? {
        FailOnUnchecked::WithFacts if !input.has_facts => None,
        FailOnUnchecked::WithFacts => input.unchecked_rules().filter(|rules| rules.lack_facts()),
        FailOnUnchecked::Always => input.unchecked_rules().filter(|rules| rules.lack_input()),
    }
}

/// The exit status that follows from the results of a run.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    worst: Exit,
    /// Rules that make `--fail-on-unchecked` fail the run.
    pub(crate) failing_rules: BTreeSet<&'static str>,
}

impl Ending {
    /// Adds an input.
    pub(crate) fn add(&mut self, args: &LintArgs, mode: Mode, input: &InputReport) {
        let unchecked = failing(args, input);
        let has_failing = || match mode {
            Mode::Report | Mode::Fix(_) | Mode::Allow => input.failing().next().is_some(),
            Mode::Diff(_) => !input.diff.is_empty(),
        };
        let exit = match &input.outcome {
            Err(_) => Exit::CouldNot,
            Ok(_) if unchecked.is_some() || has_failing() => Exit::Findings,
            Ok(_) => Exit::Clean,
        };
        self.worst = self.worst.max(exit);
        let rules = unchecked.iter().flat_map(|rules| &rules.rules);
        self.failing_rules.extend(rules.map(|rule| rule.name));
    }

    /// The exit status of the run.
    pub(crate) fn exit(&self, args: &LintArgs, old_facts: &[OldFacts]) -> Exit {
        match self.worst {
            Exit::Clean | Exit::Findings if args.exit_zero => Exit::Clean,
            Exit::Clean if old_facts.iter().any(|one| one.fails) => Exit::Findings,
            worst => worst,
        }
    }
}

/// The messages about an input: why it could not be checked, or which fixes were undone.
pub(crate) fn messages(args: &LintArgs, input: &InputReport, is_colored: bool) -> Vec<String> {
    let text = |message: &Message| format!("{}\n", message.render(is_colored));
    match (&input.outcome, args.format) {
        (Err(message), LintFormat::Concise) => vec![concise::failure(&input.path, message)],
        (Err(message), _) => vec![text(message)],
        (Ok(report), _) => {
            let failed = report.failed_fixes.iter();
            failed
                .map(|failed| text(&undone(&input.path, failed)))
                .collect()
        }
    }
}

/// The warning about a fix that was undone.
fn undone(path: &str, failed: &FailedFix) -> Message {
    let FailedFix {
        rule,
        at: _, // The title names the disk.
        title,
        why,
        ..
    } = failed;
    let mut message = Message::warning(format!("the fix of {} was undone: {why}", rule.name));
    message.notes.push(format!("it was meant to fix: {title}"));
    message.at(MessagePlace::new(path.to_owned(), None))
}
