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
        FailOnUnchecked::Always | FailOnUnchecked::WithFacts => {
            input.unchecked_rules().filter(|rules| rules.lack_input())
        }
    }
}

/// Rules that make `--fail-on-unchecked` fail the run.
pub(crate) fn failing_rules(args: &LintArgs, inputs: &[InputReport]) -> BTreeSet<&'static str> {
    let failing = inputs.iter().filter_map(|input| failing(args, input));
    let rules = failing.flat_map(|rules| &rules.rules);
    rules.map(|rule| rule.name).collect()
}

/// The exit status of a run by its results.
pub(crate) fn exit(
    args: &LintArgs,
    mode: Mode,
    inputs: &[InputReport],
    old_facts: &[OldFacts],
) -> Exit {
    let of_input = |input: &InputReport| {
        let has_failing = || match mode {
            Mode::Report | Mode::Fix(_) | Mode::Allow => input.failing().next().is_some(),
            Mode::Diff(_) => !input.diff.is_empty(),
        };
        match &input.outcome {
            Err(_) => Exit::CouldNot,
            Ok(_) if has_failing() || failing(args, input).is_some() => Exit::Findings,
            Ok(_) => Exit::Clean,
        }
    };
    let worst = inputs.iter().map(of_input).max().unwrap_or(Exit::Clean);
    match worst {
        Exit::Clean | Exit::Findings if args.exit_zero => Exit::Clean,
        Exit::Clean if old_facts.iter().any(|one| one.fails) => Exit::Findings,
        worst => worst,
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
    } = failed;
    let mut message = Message::warning(format!("the fix of {} was undone: {why}", rule.name));
    message.notes.push(format!("it was meant to fix: {title}"));
    message.at(MessagePlace::new(path.to_owned(), None))
}
