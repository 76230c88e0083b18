//! The parts of a result that the versions of the target do not support.

use vmdisk::rules::Group;
use vmdisk::{Detail, Diagnostic, Document, LintOptions, Severity, Target, lint};

use crate::render::message::Message;

/// A warning for each mistake of a written text that prevents a start and that the text it was converted from does not
/// have, and for each that only this target has: a feature that it ignores or refuses.
pub(super) fn by(target: &Target, source: Option<&Document>, text: &str) -> Vec<Message> {
    // The result is a document, except an empty list of disks.
    let Ok(document) = vmdisk::read(text) else {
        return Vec::new();
    };
    let any = Target::default();
    let known: Vec<Diagnostic> = source.map_or_else(Vec::new, |source| found(source, &any));
    let without = found(&document, &any);
    let is_known = |list: &[Diagnostic], found: &Diagnostic| {
        let mut list = list.iter();
        list.any(|other| (other.rule.name, other.at) == (found.rule.name, found.at))
    };
    let new = without.iter().filter(|found| {
        source.is_some() && found.severity == Severity::Error && !is_known(&known, found)
    });
    let mut messages: Vec<Message> = new.cloned().map(message).collect();
    if *target != any {
        let only_there = found(&document, target).into_iter();
        let only_there = only_there.filter(|found| !is_known(&without, found));
        messages.extend(only_there.map(message));
    }
    messages
}

/// The findings of a document that prevent a start, and the settings that have no effect.
fn found(document: &Document, target: &Target) -> Vec<Diagnostic> {
    let options = LintOptions {
        target: target.clone(),
        detail: Detail::Everything,
        ..LintOptions::default()
    };
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
    Message {
        notes,
        help,
        ..Message::warning(format!("{title} [{}]", rule.name))
    }
}
