//! "Did you mean": the nearest known word.

/// The known word nearest to `word`, if one is near enough to be meant.
///
/// Near enough is one mistake in a short word and up to a third of the letters in a longer one; a
/// mistake is a letter too many, too few, wrong, or two neighbours swapped. Case does not count.
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
    if word.len() > LONGEST {
        return None;
    }
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let most = (word.len() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: edits, with a swap of neighbours counted once.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, letter) in a.iter().enumerate() {
        let mut now = Vec::with_capacity(b.len() + 1);
        now.push(row + 1);
        for (column, other) in b.iter().enumerate() {
            let wrong = last[column] + usize::from(letter != other);
            let mut best = wrong.min(last[column + 1] + 1).min(now[column] + 1);
            if row > 0 && column > 0 && *letter == b[column - 1] && a[row - 1] == *other {
                best = best.min(before[column - 1] + 1);
            }
            now.push(best);
        }
        before = std::mem::replace(&mut last, now);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins_and_far_ones_are_not_suggested() {
        let modes = ["default", "none", "writethrough", "writeback", "unsafe"];
        assert_eq!(nearest("WriteBack", modes), Some("writeback"));
        assert_eq!(nearest("non", modes), Some("none"));
        assert_eq!(nearest("qcow", ["qcow2", "raw"]), Some("qcow2"));
        assert_eq!(nearest("", modes), None);
        assert_eq!(nearest(&"x".repeat(10_000), modes), None);
    }
}
