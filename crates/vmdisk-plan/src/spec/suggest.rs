//! The word that was probably meant.

/// Words that people bring along from other tools, and ours.
const SYNONYMS: &[(&str, &str)] = &[
    ("aio", "io"),
    ("boot-order", "boot"),
    ("bootindex", "boot"),
    ("capacity", "size"),
    ("dev", "path"),
    ("device", "media"),
    ("file", "path"),
    ("filename", "path"),
    ("interface", "bus"),
    ("lv", "volume"),
    ("memory-size", "memory"),
    ("num-queues", "queues"),
    ("prealloc", "preallocation"),
    ("read-only", "readonly"),
    ("rerror", "read-error-policy"),
    ("sector-size", "logical-block-size"),
    ("socket-path", "socket"),
    ("source", "path"),
    ("throttle", "iotune"),
    ("throttling", "iotune"),
    ("vg", "group"),
    ("virtual-size", "size"),
    ("werror", "error-policy"),
    ("write-cache", "cache"),
];

/// The candidate nearest to `word`, if one is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    let synonym = SYNONYMS
        .iter()
        .find(|(theirs, _)| *theirs == word)
        .and_then(|(_, ours)| candidates.iter().find(|candidate| *candidate == ours));
    if let Some(synonym) = synonym {
        return Some(synonym);
    }
    // A long word cannot be near to any of ours, and comparing it would cost its length squared.
    if word.chars().count() > 64 {
        return None;
    }
    candidates
        .iter()
        .map(|candidate| {
            let theirs = candidate.to_lowercase().replace('_', "-");
            let allowed = 1 + theirs.chars().count().max(word.chars().count()) / 4;
            let length = theirs.chars().count();
            (distance(&word, &theirs), allowed, length, *candidate)
        })
        .filter(|(distance, allowed, length, _)| distance <= allowed && distance < length)
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., candidate)| candidate)
}

/// Number of characters to insert, delete, replace or swap with their neighbour to get from one
/// word to the other.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, left) in from.iter().enumerate() {
        let mut current = Vec::with_capacity(to.len() + 1);
        current.push(row + 1);
        for (column, right) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(left != right);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap =
                row > 0 && column > 0 && *left == to[column - 1] && from[row - 1] == *right;
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        const KEYS: [&str; 6] = [
            "cluster-size",
            "size",
            "cache",
            "io",
            "preallocation",
            "discard",
        ];
        for (word, meant) in [
            ("cluster_size", Some("cluster-size")),
            ("clustersize", Some("cluster-size")),
            ("discrad", Some("discard")),
            ("Cache", Some("cache")),
            ("preallocaton", Some("preallocation")),
            ("aio", Some("io")),
            ("capacity", Some("size")),
            ("oi", Some("io")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &KEYS), meant, "{word}");
        }
        assert_eq!(nearest(&"cache".repeat(1000), &KEYS), None);
    }

    #[test]
    fn the_distance_counts_single_slips() {
        for (from, to, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("abcd", "abd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), slips, "{from} {to}");
            assert_eq!(distance(to, from), slips, "{to} {from}");
        }
    }
}
