//! `vmdisk bench presets`.

use vmdisk_bench_runner::{PRESETS, factors};
use vmdisk_source::table::labelled;

use super::args::{LINT, PresetsArgs};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::stop::Stop;

/// Lists the presets, or prints the plan of one.
pub(super) fn run(args: &PresetsArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let text = match args.preset.as_deref() {
        Some(LINT) => {
            "# Built from the guest given with --domain: for each fixable finding about speed,\n\
            # the disk before and after the fix.\n"
                .to_owned()
        }
        Some(name) => text_of(name).to_owned(),
        None => list(io.stdout_width),
    };
    deliver_exact(io, None, &text)?;
    Ok(Exit::Clean)
}

/// Returns the plan of a preset that has a fixed one.
pub(super) fn text_of(name: &str) -> &'static str {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .map_or("", |preset| preset.text)
}

fn list(width: Option<usize>) -> String {
    let question = |text: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("question: "));
        line.unwrap_or_default().to_owned()
    };
    let mut rows: Vec<(&str, String)> = PRESETS
        .iter()
        .map(|preset| (preset.name, question(preset.text)))
        .collect();
    rows.push((
        LINT,
        "What is the effect of the changes that the linter proposes for a guest?".to_owned(),
    ));
    let mut text = String::new();
    for (name, question) in rows {
        labelled(&mut text, &format!("{name:<16} "), &question, width);
    }
    text.push('\n');
    let own = "Your own plan is a YAML file (`vmdisk bench presets PRESET` prints an example) with these factors:";
    labelled(&mut text, "", own, width);
    for (factor, meaning) in factors() {
        labelled(&mut text, &format!("{factor:<16} "), meaning, width);
    }
    text
}
