//! "Did you mean": the known word that was meant.

/// The one known word that `word` most likely stands for; `None` if none is near, or two are as near.
///
/// Near enough is one mistake in a short word and one for every three letters in a longer one, three at most;
/// a mistake is a letter too many, too few, wrong, or two neighbours swapped. Case counts for nothing, and
/// hyphen, underscore and space are the same letter.
///
/// ```
/// use vmdisk_source::nearest;
/// assert_eq!(nearest("writebak", ["none", "writeback", "writethrough"]), Some("writeback"));
/// assert_eq!(nearest("virtoi", ["virtio", "scsi"]), Some("virtio"));
/// assert_eq!(nearest("xyz", ["none", "unsafe"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer input is no misspelt word, and the table below would grow with it.
    const LONGEST: usize = 64;
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = letters(word);
    let most = (word.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in known {
        let other = letters(candidate);
        let Some(distance) = distance(&word, &other, most) else {
            continue;
        };
        // A word of two letters is one change away from too much: `no` from `on`.
        if distance > 0 && other.len() <= 2 {
            continue;
        }
        match best {
            Some((least, _)) if distance > least => {}
            Some((least, _)) if distance == least => is_tied = true,
            Some(_) | None => {
                best = Some((distance, candidate));
                is_tied = false;
            }
        }
    }
    best.filter(|_| !is_tied).map(|(_, candidate)| candidate)
}

/// The letters that count, as they count.
fn letters(text: &str) -> Vec<char> {
    text.chars()
        .flat_map(char::to_lowercase)
        .map(|letter| match letter {
            '-' | ' ' => '_',
            letter => letter,
        })
        .collect()
}

/// Optimal string alignment distance: edits, with a swap of neighbours counted once; `None` above `most`.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut now = vec![0; b.len() + 1];
    for (row, letter) in a.iter().enumerate() {
        now[0] = row + 1;
        for (column, other) in b.iter().enumerate() {
            let wrong = last[column] + usize::from(letter != other);
            let mut best = wrong.min(last[column + 1] + 1).min(now[column] + 1);
            if row > 0 && column > 0 && *letter == b[column - 1] && a[row - 1] == *other {
                best = best.min(before[column - 1] + 1);
            }
            now[column + 1] = best;
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut now);
    }
    Some(last[b.len()]).filter(|distance| *distance <= most)
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
    fn a_slip_of_the_fingers_leads_to_the_word_that_was_meant() {
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
        assert_eq!(nearest("ox", ["on", "off"]), None, "too short to guess");
        assert_eq!(nearest("no", ["on", "off"]), None, "its contrary");
        assert_eq!(nearest("x", ["io", "bus"]), None);
    }

    #[test]
    fn what_is_too_long_to_be_a_slip_costs_nothing() {
        assert_eq!(nearest(&"x".repeat(10_000), MODES), None);
        assert_eq!(nearest(&"é".repeat(40), MODES), None);
    }

    #[test]
    fn the_distance_counts_single_slips() {
        let between = |a: &str, b: &str, most| distance(&letters(a), &letters(b), most);
        for (from, to, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("abcd", "abd", 1),
            ("discrad", "discard", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(between(from, to, 3), Some(slips), "{from} {to}");
            assert_eq!(between(to, from, 3), Some(slips), "{to} {from}");
        }
        assert_eq!(between("abcdef", "ghijkl", 3), None);
        assert_eq!(between("kitten", "sitting", 2), None);
    }
}
