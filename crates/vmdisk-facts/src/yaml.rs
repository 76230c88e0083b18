//! How much work a YAML text can make for its reader, told before it is read.

/// How many open brackets the reader may look at for one text: about a second's work.
const MOST_LOOKED_AT: u64 = 1 << 31;

/// Where in a text its brackets come to more work than a YAML reader should be given: line and column from 1, the column
/// in characters. `None` where they do not.
///
/// The reader looks at every open bracket again for each word, so that a few hundred thousand of them keep it busy for
/// minutes. Which brackets are closed, and which are quoted, only a reader of YAML can tell; so every bracket counts
/// as one that stays open. What people and programs write is far below the limit all the same.
///
/// ```
/// use vmdisk_facts::yaml::overworked;
/// assert_eq!(overworked("a: [b, {c: d}]\n"), None);
/// assert!(overworked(&"{a: ".repeat(100_000)).is_some());
/// ```
pub fn overworked(text: &str) -> Option<(usize, usize)> {
    work_passes(text, MOST_LOOKED_AT).map(|at| place(text, at))
}

/// The byte at which the work is more than `most`.
fn work_passes(text: &str, most: u64) -> Option<usize> {
    let (mut brackets, mut looked_at) = (0_u64, 0_u64);
    let mut is_in_word = false;
    for (at, byte) in text.bytes().enumerate() {
        let is_bracket = matches!(byte, b'[' | b'{');
        let is_mark = is_bracket || matches!(byte, b']' | b'}' | b',' | b':' | b'?' | b'"' | b'\'');
        let is_space = byte.is_ascii_whitespace();
        // Each mark and each beginning of a word may be what it looks for.
        if is_mark || !is_space && !is_in_word {
            looked_at = looked_at.saturating_add(brackets);
        }
        if looked_at > most {
            return Some(at);
        }
        brackets += u64::from(is_bracket);
        is_in_word = !is_mark && !is_space;
    }
    None
}

fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at];
    let line_start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    // Every byte that does not continue a character begins one.
    let begins = |byte: &&u8| !(0x80..0xc0).contains(*byte);
    let column = 1 + before[line_start..].iter().filter(begins).count();
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_no_work() {
        let flow = "- {name: vda, size: 10G, lvm: {group: vg0, volume: \"a[1\"}}\n".repeat(5000);
        assert_eq!(overworked(&flow), None);
        let block = "- name: \"vda\"\n  size: 1G\n".repeat(100_000);
        assert_eq!(work_passes(&block, 0), None);
    }

    #[test]
    fn brackets_that_look_closed_or_quoted_count_too() {
        for unit in ["[", "{", "[a,", "[\"]\",", "[']',", "{a: "] {
            let text = unit.repeat(70_000);
            assert!(overworked(&text).is_some(), "{unit}");
        }
    }

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = "a\né [ x ]";
        let at = work_passes(text, 0).unwrap();
        assert_eq!(place(text, at), (2, 5));
    }
}
