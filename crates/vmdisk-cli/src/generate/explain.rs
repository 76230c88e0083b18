//! Why everything was chosen: a line for each option.

use std::fmt::Write;

use vmdisk::plan::{Choice, ChoiceSource, Plan};
use vmdisk::report::explain::sorted;

use crate::sanitize::line;

/// The choices of a plan, each as [`line_of`] writes it.
pub(crate) fn choices(plan: &Plan) -> String {
    sorted(plan)
        .map(|(disk, choice)| line_of(&disk.map_or("guest".into(), line), choice))
        .collect()
}

/// A choice: `vda: cache=none: … (fact)`.
pub(crate) fn line_of(what: &str, choice: &Choice) -> String {
    let Choice {
        at: _, // `what` says it.
        option,
        value,
        reason,
        rule,
        source,
    } = choice;
    let mut out = format!("{what}: {option}={}: {}", line(value), line(reason));
    let source = match source {
        // The reason says so.
        ChoiceSource::Asked => None,
        ChoiceSource::Fact | ChoiceSource::Default => Some(source.word().to_owned()),
    };
    let page = rule.map(|rule| format!("see `vmdisk explain {rule}`"));
    let more: Vec<String> = source.into_iter().chain(page).collect();
    if !more.is_empty() {
        let _ = write!(out, " ({})", more.join("; "));
    }
    out.push('\n');
    out
}
