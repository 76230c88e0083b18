//! Guessing which word was meant.

/// How many single-letter changes (insert, delete, replace, swap of neighbours) lead from `a` to `b`;
/// `None` if more than `limit`.
pub fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            row[j] = (last[j] + 1)
                .min(row[j - 1] + 1)
                .min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[b.len()]).filter(|distance| *distance <= limit)
}

/// The one known word that `word` most likely stands for; `None` if none is near or two are as near.
///
/// Case, and `-` for `_`, count for nothing; else one change is allowed per three letters.
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes that much, and a long word costs time with each candidate.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let given = plain(word);
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in known {
        let Some(distance) = edit_distance(&given, &plain(candidate), limit) else {
            continue;
        };
        // A word of two letters is one change away from too much.
        if distance > 0 && candidate.chars().count() <= 2 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_leads_to_the_word_that_was_meant() {
        let modes = ["none", "writethrough", "writeback", "directsync", "unsafe"];
        for (word, meant) in [
            ("writebak", Some("writeback")),
            ("writeback ", Some("writeback")),
            ("Write-Back", Some("writeback")),
            ("nnoe", Some("none")),
            ("NONE", Some("none")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(suggest(word, modes), meant, "{word}");
        }
        assert_eq!(
            suggest("discrad", ["discard", "detect_zeroes"]),
            Some("discard")
        );
        assert_eq!(suggest("cat", ["bat", "car"]), None, "two are as near");
        assert_eq!(suggest("ox", ["on", "off"]), None, "too short to guess");
    }

    #[test]
    fn swapped_neighbours_are_one_change() {
        assert_eq!(edit_distance("discrad", "discard", 3), Some(1));
        assert_eq!(edit_distance("abcdef", "ghijkl", 3), None);
        assert_eq!(edit_distance("", "ab", 3), Some(2));
    }
}
