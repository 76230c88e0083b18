//! "Did you mean": the known word that was meant.

/// Returns the known word that was probably meant; `None` if none is near, or two are equally near.
///
/// Near enough is one mistake in a short word and one for every three letters in a longer one, three at most;
/// a mistake is a letter too many, too few, wrong, or two neighbours swapped. Case is ignored, and
/// hyphen, underscore and space are equal.
///
/// ```
/// use vmdisk_source::nearest;
/// assert_eq!(nearest("writebak", ["none", "writeback", "writethrough"]), Some("writeback"));
/// assert_eq!(nearest("virtoi", ["virtio", "scsi"]), Some("virtio"));
/// assert_eq!(nearest("xyz", ["none", "unsafe"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer input is not a misspelt word, and the distance costs more with each letter.
    const MAX_LENGTH: usize = 64;
    if word.is_empty() || word.len() > MAX_LENGTH {
        return None;
    }
    let word = letters(word);
    let length = word.chars().count();
    let most = (length / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in known {
        let other = letters(candidate);
        let other_length = other.chars().count();
        if length.abs_diff(other_length) > most {
            continue;
        }
        let distance = strsim::osa_distance(&word, &other);
        // A word of two letters is one change away from too much: `no` from `on`.
        if distance > most || distance > 0 && other_length <= 2 {
            continue;
        }
        match best {
            Some((least, _)) if distance > least => {}
            // Two spellings of one word are not a tie.
            Some((least, best)) if distance == least => is_tied |= letters(best) != other,
            Some(_) | None => {
                best = Some((distance, candidate));
                is_tied = false;
            }
        }
    }
    best.filter(|_| !is_tied).map(|(_, candidate)| candidate)
}

/// The letters in the form in which they are compared.
fn letters(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .map(|letter| match letter {
            '-' | ' ' => '_',
            letter => letter,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [&str; 6] = [
        "default",
        "none",
        "writethrough",
        "writeback",
        "directsync",
        "unsafe",
    ];

    #[test]
    fn a_typo_finds_the_intended_word() {
        for (word, meant) in [
            ("writebak", Some("writeback")),
            ("WriteBack", Some("writeback")),
            ("writeback ", Some("writeback")),
            ("Write-Back", Some("writeback")),
            ("nnoe", Some("none")),
            ("non", Some("none")),
            ("NONE", Some("none")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, MODES), meant, "{word}");
        }
        assert_eq!(nearest("qcow", ["qcow2", "raw"]), Some("qcow2"));
        assert_eq!(
            nearest("discrad", ["discard", "detect_zeroes"]),
            Some("discard")
        );
        assert_eq!(
            nearest("detect-zeros", ["detect_zeroes"]),
            Some("detect_zeroes")
        );
        assert_eq!(nearest("cat", ["bat", "car"]), None, "two are as near");
        assert_eq!(nearest("cahce", ["cache", "aio", "cache"]), Some("cache"));
        assert_eq!(nearest("ox", ["on", "off"]), None, "too short to guess");
        assert_eq!(nearest("no", ["on", "off"]), None, "its contrary");
        assert_eq!(nearest("x", ["io", "bus"]), None);
    }

    #[test]
    fn a_word_too_long_for_a_typo_is_not_compared() {
        assert_eq!(nearest(&"x".repeat(10_000), MODES), None);
        assert_eq!(nearest(&"é".repeat(40), MODES), None);
    }
}
