//! Baselines as files that are written, and messages about stale entries.

use std::path::{Path, PathBuf};

use crate::args::LintArgs;
use crate::baseline::file::Entry;
use crate::baseline::known::{Baseline, Stale, StaleReason};
use crate::baseline::task::BaselineTask;
use crate::color::Colors;
use crate::io::Io;
use crate::render::message::{Message, MessagePlace};
use crate::sanitize::line;
use crate::stop::Stop;

/// The name of the file, unless another one is named.
const NAME: &str = "vmdisk-baseline.json";

/// Stale entries that are named; the others are counted.
const MAX_NAMED: usize = 10;

/// The file to write: the file that the configurations name, if they name one.
pub(crate) fn file_to_write(mut named: Vec<PathBuf>) -> Result<PathBuf, Stop> {
    match (named.pop(), named.is_empty()) {
        (None, _) => Ok(PathBuf::from(NAME)),
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(Stop::new("the configurations name several baselines")
            .help("name one with --baseline, and the inputs that it is for")),
    }
}

/// Fails if the file exists.
pub(crate) fn refuse_to_replace(path: &Path) -> Result<(), Stop> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Stop::new(format!("{} exists", path.display())).help(
        "`vmdisk lint --prune-baseline` removes stale entries; to accept every current finding, add --force",
    ))
}

/// Warns of stale entries, or removes them.
pub(crate) fn finish(
    args: &LintArgs,
    baselines: &[Baseline],
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<(), Stop> {
    match args.task() {
        BaselineTask::Use if !args.quiet => {}
        BaselineTask::Prune => return prune(baselines, io),
        BaselineTask::Use | BaselineTask::Create => return Ok(()),
    }
    for baseline in baselines {
        if let Some(warning) = stale_warning(baseline) {
            io.say(&warning.render(colors.stderr));
        }
    }
    Ok(())
}

/// Removes stale entries, and says what was removed.
fn prune(baselines: &[Baseline], io: &mut Io<'_>) -> Result<(), Stop> {
    for baseline in baselines {
        let path = baseline.path.display().to_string();
        let text = match baseline.prune()? {
            (0, 0) => format!("{path}: no stale entries"),
            (1, 0) => format!("{path}: 1 stale entry removed"),
            (removed, 0) => format!("{path}: {removed} stale entries removed"),
            (removed, lowered) => {
                let entries = if removed == 1 { "entry" } else { "entries" };
                format!(
                    "{path}: {removed} stale {entries} removed, the counts of {lowered} lowered"
                )
            }
        };
        io.say(&format!("{}\n", line(&text)));
    }
    Ok(())
}

/// A warning about the stale entries of a baseline, if there are any.
fn stale_warning(baseline: &Baseline) -> Option<Message> {
    let judged = baseline.judged().into_iter();
    let stale: Vec<String> = judged
        .filter_map(|(entry, stale)| Some(describe(entry, stale?)))
        .collect();
    let number = stale.len();
    let title = match number {
        0 => return None,
        1 => "1 entry of the baseline is stale".to_owned(),
        _ => format!("{number} entries of the baseline are stale"),
    };
    let mut message =
        Message::warning(title).at(MessagePlace::new(baseline.path.display().to_string(), None));
    message.notes = stale.into_iter().take(MAX_NAMED).collect();
    if number > MAX_NAMED {
        message
            .notes
            .push(format!("and {} more", number - MAX_NAMED));
    }
    message.help = Some("run `vmdisk lint --prune-baseline` with the same inputs".to_owned());
    Some(message)
}

fn describe(entry: &Entry, stale: Stale) -> String {
    let Stale { left, why } = stale;
    let disk = entry.disk.as_ref().map(|disk| format!(" of `{disk}`"));
    let disk = disk.unwrap_or_default();
    let rule = &entry.rule;
    let why = match why {
        StaleReason::Found => format!("{left} of {} left", entry.count),
        StaleReason::NoFile => "there is no such file".to_owned(),
        StaleReason::NoRule => "there is no such rule".to_owned(),
    };
    format!("{}: {rule}{disk}: {why}", entry.file)
}
