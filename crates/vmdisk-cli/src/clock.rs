//! The time, as facts write it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now in RFC 3339, in UTC.
pub(crate) fn now() -> String {
    rfc3339(seconds_now())
}

/// Seconds since 1970.
pub(crate) fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Seconds since 1970 that ages are counted to: now, or `SOURCE_DATE_EPOCH`, with which reproducible builds pin
/// their clock.
pub(crate) fn reference() -> u64 {
    let pinned = std::env::var("SOURCE_DATE_EPOCH").ok();
    let pinned = pinned.and_then(|text| text.parse().ok());
    pinned.unwrap_or_else(seconds_now)
}

/// Seconds since 1970 of a time as [`now`] writes it.
pub(crate) fn seconds_of(text: &str) -> Option<u64> {
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years are counted from March on, as in `rfc3339`.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    let seconds = days.checked_sub(719_468)? * 86_400 + hour * 3_600 + minute * 60 + second;
    // A value that does not survive the round trip is not a time.
    (rfc3339(seconds) == text).then_some(seconds)
}

/// The day of a time in seconds since 1970.
pub(crate) fn day(seconds: u64) -> String {
    rfc3339(seconds)[..10].to_owned()
}

/// Seconds since 1970 as RFC 3339.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March on, so that a leap day is the last of its year; 400 of them have
    // 146,097 days, and 1970-01-01 is day 719,468 counted from 0000-03-01.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_leap_days_and_centuries_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
            assert_eq!(seconds_of(text), Some(seconds));
        }
        for bad in [
            "",
            "yesterday",
            "2024-02-30T00:00:00Z",
            "2024-01-01 00:00:00",
        ] {
            assert_eq!(seconds_of(bad), None, "{bad}");
        }
    }
}
