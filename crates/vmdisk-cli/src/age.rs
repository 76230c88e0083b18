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

/// Why facts are too old, or do not say how old they are.
pub(crate) fn complaint(collected_at: &Fact<String>, max_age: u64, now: u64) -> Option<String> {
    let Fact::Known(text) = collected_at else {
        return Some("collected_at: the facts do not say when they were collected".to_owned());
    };
    let Some(then) = clock::seconds_of(text) else {
        return Some(format!(
            "collected_at: '{text}' is not a time such as 2026-11-20T05:00:00Z"
        ));
    };
    // The clocks of two hosts may differ by an hour.
    if then > now + 3600 {
        return Some(format!("collected_at: {text} is in the future"));
    }
    let age = now.saturating_sub(then);
    (age > max_age).then(|| {
        format!(
            "collected_at: {text} is {} days and {} hours ago; collect the facts again",
            age / DAY,
            age % DAY / 3_600
        )
    })
}

/// A warning for each facts file that is older than was allowed.
pub(crate) fn warnings<'a>(
    hosts: impl Iterator<Item = (&'a str, &'a Facts)>,
    max_age: u64,
) -> Vec<Message> {
    let now = clock::reference();
    hosts
        .filter_map(|(path, facts)| {
            let complaint = complaint(&facts.collected_at, max_age, now)?;
            Some(Message::warning(format!("{path}: {complaint}")))
        })
        .collect()
}

/// The lines of a summary about old facts; empty if there are none.
pub(crate) fn summary<'a>(hosts: impl Iterator<Item = (&'a str, &'a Facts)>) -> String {
    let now = clock::reference();
    let old: Vec<(&str, u64)> = hosts
        .filter_map(|(path, facts)| {
            let then = clock::seconds_of(facts.collected_at.value()?)?;
            let age = now.checked_sub(then).filter(|age| *age > OLD)?;
            Some((path, age / DAY))
        })
        .collect();
    let mut out = String::new();
    for (path, days) in old.iter().take(MAX_NAMED) {
        let path = line(path);
        out.push_str(&format!(
            "the facts in {path} are {days} days old; collect them again with `vmdisk facts`\n"
        ));
    }
    if old.len() > MAX_NAMED {
        let more = old.len() - MAX_NAMED;
        out.push_str(&format!("{more} more facts files are older than 30 days\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_facts_and_facts_without_a_valid_time_are_reported() {
        let at = |text: &str| Fact::Known(text.to_owned());
        let now = clock::seconds_of("2026-11-20T05:00:00Z").unwrap();
        let month = 30 * DAY;
        assert_eq!(complaint(&at("2026-10-21T05:00:00Z"), month, now), None);
        let old = complaint(&at("2026-10-21T04:59:59Z"), month, now);
        assert!(old.is_some_and(|text| text.contains("30 days and 0 hours")));
        for bad in [at("soon"), at("2026-11-21T05:00:00Z"), Fact::NotCollected] {
            assert!(complaint(&bad, month, now).is_some(), "{bad:?}");
        }
    }
}
