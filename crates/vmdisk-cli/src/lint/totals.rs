//! The state of a run across all inputs.

use std::collections::BTreeSet;

use vmdisk::FailedFix;

use crate::age::OldFacts;
use crate::args::{LintArgs, LintFormat};
use crate::exit::Exit;
use crate::lint::mode::Mode;
use crate::render::concise;
use crate::render::message::{Message, MessagePlace};
use crate::render::spool::Spool;
use crate::render::summary::{Missed, Summary};
use crate::report::caveats::Caveats;
use crate::report::input::{InputReport, Tally};
use crate::stop::Stop;

/// The numbers of a run, and its messages. Their size does not depend on the number of findings.
pub(crate) struct Totals<'a> {
    args: &'a LintArgs,
    mode: Mode,
    /// True if messages have colour.
    colors_messages: bool,
    pub(crate) summary: Summary,
    /// What could not be checked, for `--verbose`.
    pub(crate) missed: Missed,
    /// Rules that make `--fail-on-unchecked` fail the run.
    pub(crate) incomplete: BTreeSet<&'static str>,
    /// Facts that are old.
    pub(crate) old_facts: Vec<OldFacts>,
    /// Why inputs could not be checked, and which fixes were undone.
    pub(crate) messages: Spool,
    /// Standard input after fixing.
    pub(crate) fixed: Option<String>,
    worst: Exit,
}

impl<'a> Totals<'a> {
    pub(crate) fn new(
        args: &'a LintArgs,
        mode: Mode,
        colors_messages: bool,
        old_facts: Vec<OldFacts>,
    ) -> Self {
        Totals {
            args,
            mode,
            colors_messages,
            summary: Summary::default(),
            missed: Missed::default(),
            incomplete: BTreeSet::new(),
            old_facts,
            messages: Spool::default(),
            fixed: None,
            worst: Exit::Clean,
        }
    }

    /// Counts an input.
    pub(crate) fn add(&mut self, checked: &InputReport) -> Result<(), Stop> {
        let tally = match &checked.outcome {
            Ok(report) => report.tally(),
            Err(_) => Tally::default(),
        };
        self.summary.add(checked, &tally);
        if self.args.verbose {
            self.missed.add(checked);
        }
        let is_unchecked = self.args.fail_on_unchecked && tally.is_incomplete();
        self.worst = self.worst.max(match (&checked.outcome, self.mode) {
            (Err(_), _) => Exit::CouldNot,
            (Ok(_), _) if is_unchecked => Exit::Findings,
            (Ok(report), Mode::Report | Mode::Fix(_) | Mode::Allow)
                if tally.has_at_least(report.fail_on) =>
            {
                Exit::Findings
            }
            (Ok(_), _) => Exit::Clean,
        });
        if is_unchecked {
            self.incomplete.extend(&tally.not_checked);
        }
        self.add_messages(checked)
    }

    /// Notes that a fix would change something.
    pub(crate) fn add_change(&mut self) {
        self.worst = self.worst.max(Exit::Findings);
    }

    /// How the run ends by what was found.
    pub(crate) fn exit(&self) -> Exit {
        let fails = self.old_facts.iter().any(|one| one.fails);
        match self.worst {
            Exit::Clean | Exit::Findings if self.args.exit_zero => Exit::Clean,
            Exit::Clean if fails => Exit::Findings,
            worst => worst,
        }
    }

    /// The limits of the run.
    pub(crate) fn caveats(&self) -> Caveats<'_> {
        Caveats {
            not_checked: self.summary.not_checked(),
            unchecked_fails: !self.incomplete.is_empty() && !self.args.exit_zero,
            old_facts: &self.old_facts,
            old_facts_fail: !self.args.exit_zero,
        }
    }

    /// Says why an input could not be checked, or which fixes were undone.
    fn add_messages(&mut self, checked: &InputReport) -> Result<(), Stop> {
        let text = |message: &Message| format!("{}\n", message.render(self.colors_messages));
        let texts: Vec<String> = match (&checked.outcome, self.args.format) {
            (Err(message), LintFormat::Concise) => vec![concise::failure(&checked.path, message)],
            (Err(message), _) => vec![text(message)],
            (Ok(report), _) => {
                let failed = report.failed_fixes.iter();
                failed
                    .map(|failed| text(&undone(&checked.path, failed)))
                    .collect()
            }
        };
        let mut texts = texts.iter();
        texts.try_for_each(|text| self.messages.push(text.as_bytes()))
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
    message.at(MessagePlace {
        path: path.to_owned(),
        quoted: None,
    })
}
