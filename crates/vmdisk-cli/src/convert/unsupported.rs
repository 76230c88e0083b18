//! The parts of a result that the versions of the target do not support.

use vmdisk::rules::Group;
use vmdisk::{Detail, Diagnostic, LintOptions, Severity, Target, lint};

use crate::render::message::Message;

/// A warning for each mistake of a written text that only this target has: a feature that it ignores or refuses.
pub(super) fn by(target: &Target, text: &str) -> Vec<Message> {
    if *target == Target::default() {
        return Vec::new();
    }
    // The result is a document, except an empty list of disks.
    let Ok(document) = vmdisk::read(text) else {
        return Vec::new();
    };
    let found = |target: Target| {
        let options = LintOptions {
            target,
            detail: Detail::Everything,
            ..LintOptions::default()
        };
        let mut found = lint(&document, &options).diagnostics;
        found.retain(|found| {
            found.rule.group == Group::Startup && found.severity >= Severity::Warning
        });
        found
    };
    let without = found(Target::default());
    let is_there = |found: &Diagnostic| {
        without
            .iter()
            .any(|other| (other.rule.name, &other.title) == (found.rule.name, &found.title))
    };
    let mut added = found(target.clone());
    added.retain(|found| !is_there(found));
    added.into_iter().map(message).collect()
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
