//! `vmdisk facts check`.

use std::fmt::Write as _;

use vmdisk::facts::Fact;

use crate::args::CheckArgs;
use crate::clock;
use crate::exit::Exit;
use crate::facts_file::from_file;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;

/// Says what is not understood in a facts file, and whether it is too old.
pub(super) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let CheckArgs { file, max_age } = args;
    let (facts, warnings) = from_file(file)?;
    let mut complaints: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    if let Some(most) = max_age {
        complaints.extend(complaint_about_age(
            &facts.collected_at,
            *most,
            clock::seconds_now(),
        ));
    }
    let mut text = String::new();
    for complaint in &complaints {
        let complaint = format!("{}: {complaint}", file.display());
        let _ = writeln!(text, "{}", sanitize::line(&complaint));
    }
    deliver(io, None, &text)?;
    Ok(if complaints.is_empty() {
        Exit::Clean
    } else {
        Exit::Findings
    })
}

fn complaint_about_age(collected_at: &Fact<String>, most: u64, now: u64) -> Option<String> {
    let Fact::Known(text) = collected_at else {
        return Some("collected_at: it does not say when it was collected".to_owned());
    };
    let Some(then) = clock::seconds_of(text) else {
        return Some(format!(
            "collected_at: '{text}' is no time such as 2026-11-20T05:00:00Z"
        ));
    };
    // An hour of clocks that do not agree is nothing to talk about.
    if then > now + 3600 {
        return Some(format!("collected_at: {text} is in the future"));
    }
    let age = now.saturating_sub(then);
    (age > most).then(|| {
        format!(
            "collected_at: {text} is {} days and {} hours ago; collect the facts again",
            age / 86_400,
            age % 86_400 / 3_600
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_old_is_told_and_so_is_a_time_that_says_nothing() {
        let at = |text: &str| Fact::Known(text.to_owned());
        let now = clock::seconds_of("2026-11-20T05:00:00Z").unwrap();
        let month = 30 * 86_400;
        assert_eq!(
            complaint_about_age(&at("2026-10-21T05:00:00Z"), month, now),
            None
        );
        let old = complaint_about_age(&at("2026-10-21T04:59:59Z"), month, now);
        assert!(old.is_some_and(|text| text.contains("30 days and 0 hours")));
        for bad in [at("soon"), at("2026-11-21T05:00:00Z"), Fact::NotCollected] {
            assert!(complaint_about_age(&bad, month, now).is_some(), "{bad:?}");
        }
    }
}
