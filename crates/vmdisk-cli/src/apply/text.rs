//! The report of a run, for people.

use vmdisk::model::Bytes;
use vmdisk::plan::{ChangeKind, shell_word};
use vmdisk::report::changes::{ListedChange, ListedDifference};

use super::json::Envelope;
use crate::args::ApplyFormat;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;

/// Prints the report, or the script of what is not refused.
pub(super) fn finish(
    format: ApplyFormat,
    report: &Envelope,
    script: impl FnOnce() -> String,
    io: &mut Io<'_>,
) -> Result<(), Stop> {
    if format == ApplyFormat::Json {
        return deliver(io, None, &report.text());
    }
    let mut text = String::new();
    for step in &report.steps {
        let (made, what) = (sanitize::line(&step.makes), sanitize::line(&step.what));
        text += &format!("{}: {made}: {what}\n", step.state);
    }
    if let Some(guest) = &report.guest {
        text += &format!("{}: guest {}\n", guest.state, sanitize::line(&guest.name));
    }
    text += &report.changes.iter().map(change_text).collect::<String>();
    let result = report.result.unwrap_or("incomplete");
    if ["incomplete", "done"].contains(&result) {
        for ListedDifference {
            key,
            existing,
            planned,
            ..
        } in &report.unchanged
        {
            let line = format!("{key} is {existing}, and the plan has {planned}");
            io.say(&format!("{result}: {}\n", sanitize::line(&line)));
        }
    }
    let result = report.result.unwrap_or("planned");
    for reason in &report.reasons {
        // The message of a program may have several lines.
        let reason = sanitize::lines(reason).replace('\n', "\n  ");
        io.say(&format!("{result}: {reason}\n"));
    }
    match (format, report.result) {
        (ApplyFormat::Script, Some("refused")) => return Ok(()),
        (ApplyFormat::Script, _) => text = script(),
        _ => text += &format!("{result}\n"),
    }
    deliver(io, None, &text)
}

/// A change, with its costs where it is still to be made.
fn change_text(change: &ListedChange) -> String {
    let ListedChange {
        kind,
        disk,
        what,
        argv,
        comparison,
        live,
        undo,
        is_final,
        bytes,
        down_time,
        afterwards,
        refusal,
        state,
        ..
    } = change;
    let (disk, what) = (sanitize::line(disk), sanitize::line(what));
    let mut text = format!("{state}: {kind} {disk}: {what}\n");
    let command = |argv: &[String]| {
        let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
        words.join(" ")
    };
    if ["planned", "not-asked"].contains(state) {
        let undo = match is_final {
            Some(why) => format!("nothing: {why}"),
            // Its definition stays.
            None if *kind == ChangeKind::Reclaim.word() => command(undo),
            None => format!("{}, with the definition before", command(undo)),
        };
        let commands = [
            ("command", command(argv)),
            ("then", command(comparison)),
            ("then", command(live)),
            ("undo", undo),
        ];
        for (key, value) in commands.iter().filter(|(_, value)| !value.is_empty()) {
            text += &format!("  {key}: {}\n", sanitize::line(value));
        }
        text += &format!("  down time: {down_time}\n");
        if let Some(bytes) = bytes {
            text += &format!("  storage: at most {} more\n", Bytes(*bytes));
        }
    }
    if let Some(why) = refusal {
        text += &format!("  refused: {}\n", sanitize::line(why));
    }
    if let Some(afterwards) = afterwards {
        text += &format!("  then: {}\n", sanitize::line(afterwards));
    }
    text
}
