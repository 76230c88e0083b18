//! The parts of a result that the versions of the target do not support.

use std::collections::HashSet;

use vmdisk::model::FieldPath;
use vmdisk::rules::Group;
use vmdisk::{Diagnostic, Document, LintOptions, Severity, Target, lint};

use crate::render::message::Message;

/// A warning for each mistake of a written text that prevents a start and that the text it was converted from does not
/// have, and for each that only this target has: a feature that it ignores or refuses.
pub(super) fn by(target: &Target, source: Option<&Document>, text: &str) -> Vec<Message> {
    // The result is a document, except an empty list of disks.
    let Ok(document) = vmdisk::read(text) else {
        return Vec::new();
    };
    let any = Target::default();
    let without = found(&document, &any);
    let mut messages = Vec::new();
    if let Some(source) = source {
        let known = places(&found(source, &any));
        let errors = without.iter().filter(|it| it.severity == Severity::Error);
        let new = errors.filter(|it| !known.contains(&(it.rule.name, it.at)));
        messages.extend(new.cloned().map(message));
    }
    if *target != any {
        let known = places(&without);
        let mut only_there = found(&document, target);
        only_there.retain(|it| !known.contains(&(it.rule.name, it.at)));
        messages.extend(only_there.into_iter().map(message));
    }
    messages
}

/// The rules of findings, with the fields that they are about.
fn places(found: &[Diagnostic]) -> HashSet<(&'static str, FieldPath)> {
    found.iter().map(|it| (it.rule.name, it.at)).collect()
}

/// The findings of a document that prevent a start, and the settings that have no effect.
fn found(document: &Document, target: &Target) -> Vec<Diagnostic> {
    let options = LintOptions::default().target(target.clone());
    let mut found = lint(document, &options).diagnostics;
    found.retain(|found| found.rule.group == Group::Startup && found.severity >= Severity::Warning);
    found
}

fn message(diagnostic: Diagnostic) -> Message {
    let Diagnostic {
        rule,
        title,
        notes,
        help,
        ..
    } = diagnostic;
    Message::warning(format!("{title} [{}]", rule.name))
        .notes(notes)
        .help(help)
}
