//! The word that was probably meant.

/// Words that people bring along from other tools, and ours.
const SYNONYMS: &[(&str, &str)] = &[
    ("aio", "io"),
    ("boot-order", "boot"),
    ("bootindex", "boot"),
    ("cache-size", "metadata-cache-size"),
    ("capacity", "size"),
    ("dev", "path"),
    ("device", "media"),
    ("file", "path"),
    ("filename", "path"),
    ("interface", "bus"),
    ("l2-cache-size", "metadata-cache-size"),
    ("lv", "volume"),
    ("memory-size", "memory"),
    ("metadata-cache", "metadata-cache-size"),
    ("num-queues", "queues"),
    // Too short for a guess, and there is no other key it could be.
    ("oi", "io"),
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

/// The candidate that `word` was probably meant for: what another tool calls it, else the nearest.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let plain = word.to_lowercase().replace('_', "-");
    SYNONYMS
        .iter()
        .find(|(theirs, _)| *theirs == plain)
        .and_then(|(_, ours)| {
            candidates
                .iter()
                .copied()
                .find(|candidate| candidate == ours)
        })
        .or_else(|| vmdisk_source::nearest(word, candidates.iter().copied()))
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
}
