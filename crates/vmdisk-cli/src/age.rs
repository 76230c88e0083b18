//! The age of facts.

use vmdisk::Facts;
use vmdisk::facts::Fact;

use crate::clock;
use crate::render::message::Message;
use crate::sanitize::line;

const DAY: u64 = 86_400;

/// Facts older than this are always mentioned.
const OLD: u64 = 30 * DAY;

/// Hosts with old facts that are named before the rest is counted.
const MAX_NAMED: usize = 5;

/// Why facts or measured figures are too old, or do not say how old they are.
pub(crate) fn complaint(facts: &Facts, max_age: u64, now: u64) -> Option<String> {
    let measured = facts
        .measured
        .iter()
        .map(|it| ("measured_at", &it.measured_at));
    let mut dates = std::iter::once(("collected_at", &facts.collected_at)).chain(measured);
    dates.find_map(|(key, date)| complaint_about(key, date, max_age, now))
}

fn complaint_about(key: &str, date: &Fact<String>, max_age: u64, now: u64) -> Option<String> {
    let (verb, again) = match key {
        "measured_at" => ("measured", "measure again with `vmdisk bench`"),
        _ => ("collected", "collect the facts again"),
    };
    let Fact::Known(text) = date else {
        return Some(format!("{key}: the facts do not say when they were {verb}"));
    };
    let Some(then) = clock::seconds_of(text) else {
        return Some(format!(
            "{key}: '{text}' is not a time such as 2026-11-20T05:00:00Z"
        ));
    };
    // The clocks of two hosts may differ by an hour.
    if then > now + 3600 {
        return Some(format!("{key}: {text} is in the future"));
    }
    let age = now.saturating_sub(then);
    let (days, hours) = (age / DAY, age % DAY / 3_600);
    (age > max_age).then(|| format!("{key}: {text} is {days} days and {hours} hours ago; {again}"))
}

/// How long ago a time was, in brackets; empty if that is not known.
pub(crate) fn ago(text: &str, now: u64) -> String {
    let age = clock::seconds_of(text).and_then(|then| now.checked_sub(then));
    let Some(age) = age else { return String::new() };
    let (number, unit) = match age {
        ..3_600 => (age / 60, "minute"),
        3_600..DAY => (age / 3_600, "hour"),
        DAY.. => (age / DAY, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!(" ({number} {unit}{plural} ago)")
}

/// Facts that are old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldFacts {
    /// Their file.
    pub(crate) path: String,
    pub(crate) text: String,
    /// True if they are older than was allowed, which fails the run.
    pub(crate) fails: bool,
}

/// The facts that are older than the maximum age; without a maximum, those older than a month.
pub(crate) fn old<'a>(
    hosts: impl Iterator<Item = (&'a str, &'a Facts)>,
    max_age: Option<u64>,
) -> Vec<OldFacts> {
    let now = clock::reference();
    let old = hosts.filter_map(|(path, facts)| {
        let text = match max_age {
            Some(max_age) => complaint(facts, max_age, now)?,
            None => {
                let then = clock::seconds_of(facts.collected_at.value()?)?;
                let age = now.checked_sub(then).filter(|age| *age > OLD)?;
                let days = age / DAY;
                format!(
                    "the facts in {path} are {days} days old; collect them again with `vmdisk facts`"
                )
            }
        };
        Some(OldFacts {
            path: path.to_owned(),
            text,
            fails: max_age.is_some(),
        })
    });
    old.collect()
}

/// A warning for each facts file that is older than was allowed.
pub(crate) fn warnings(old: &[OldFacts]) -> impl Iterator<Item = Message> {
    let failing = old.iter().filter(|one| one.fails);
    failing.map(|one| Message::warning(format!("{}: {}", one.path, one.text)))
}

/// The lines of a summary about old facts that are allowed; empty if there are none.
pub(crate) fn summary(old: &[OldFacts]) -> String {
    let allowed: Vec<&OldFacts> = old.iter().filter(|one| !one.fails).collect();
    let mut out = String::new();
    for one in allowed.iter().take(MAX_NAMED) {
        out.push_str(&line(&one.text));
        out.push('\n');
    }
    match allowed.len().saturating_sub(MAX_NAMED) {
        0 => {}
        1 => out.push_str("1 more facts file is older than 30 days\n"),
        more => out.push_str(&format!("{more} more facts files are older than 30 days\n")),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_facts_and_facts_without_a_valid_time_are_reported() {
        let at = |text: &str| Facts {
            collected_at: Fact::Known(text.to_owned()),
            ..Facts::default()
        };
        let now = clock::seconds_of("2026-11-20T05:00:00Z").unwrap();
        let month = 30 * DAY;
        assert_eq!(complaint(&at("2026-10-21T05:00:00Z"), month, now), None);
        let old = complaint(&at("2026-10-21T04:59:59Z"), month, now);
        assert!(old.is_some_and(|text| text.contains("30 days and 0 hours")));
        for bad in [at("soon"), at("2026-11-21T05:00:00Z"), Facts::default()] {
            assert!(complaint(&bad, month, now).is_some(), "{bad:?}");
        }
        let mut measured = at("2026-11-20T05:00:00Z");
        for (date, complains) in [
            ("2026-10-21T05:00:00Z", false),
            ("2026-10-21T04:59:59Z", true),
        ] {
            measured.measured = vec![vmdisk::facts::MeasuredStorage {
                measured_at: Fact::Known(date.to_owned()),
                ..Default::default()
            }];
            let text = complaint(&measured, month, now);
            assert_eq!(
                text.is_some_and(|text| text.starts_with("measured_at: ")),
                complains
            );
        }
    }
}
