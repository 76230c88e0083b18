//! `vmdisk facts check`.

use std::fmt::Write as _;

use vmdisk::facts::Fact;

use crate::age;
use crate::args::CheckArgs;
use crate::clock;
use crate::exit::Exit;
use crate::facts_file::from_file;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;

/// Says what is not understood in a facts file, whether it is too old, or that it is valid.
pub(super) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let CheckArgs { file, max_age } = args;
    let (facts, warnings) = from_file(file)?;
    let mut complaints: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    if let Some(most) = max_age {
        complaints.extend(age::complaint(&facts, *most, clock::reference()));
    }
    let mut text = String::new();
    for complaint in &complaints {
        let complaint = format!("{}: {complaint}", file.display());
        let _ = writeln!(text, "{}", sanitize::line(&complaint));
    }
    if complaints.is_empty() {
        let host = facts
            .host
            .id
            .value()
            .map_or_else(String::new, |id| format!(" on {id}"));
        let collected = match &facts.collected_at {
            Fact::Known(at) => format!(
                "collected{host} at {at}{}",
                age::ago(at, clock::reference())
            ),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => "without a date".to_owned(),
        };
        let found = format!("{}: valid, {collected}", file.display());
        let _ = writeln!(text, "{}", sanitize::line(&found));
    }
    deliver(io, None, &text)?;
    Ok(Exit::clean_if(complaints.is_empty()))
}
