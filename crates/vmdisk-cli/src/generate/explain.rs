//! Why everything was chosen, a line for each option.

use std::fmt::Write;

use vmdisk::plan::{Choice, ChoiceSource, Plan};

use crate::sanitize::line;

/// The choices of a plan: `vda: cache=none because … (fact)`.
pub(super) fn choices(plan: &Plan) -> String {
    let mut out = String::new();
    // By disk, the guest first; within each in the order of the decisions.
    let mut choices: Vec<&Choice> = plan.choices.iter().collect();
    choices.sort_by_key(|choice| choice.at.disk());
    for choice in choices {
        let Choice {
            at,
            option,
            value,
            reason,
            rule,
            source,
        } = choice;
        let what = match at.disk().and_then(|index| plan.domain.disks.get(index)) {
            Some(disk) => line(disk.name()),
            None => "guest".into(),
        };
        let _ = write!(out, "{what}: {option}={}: {}", line(value), line(reason));
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
    }
    out
}
