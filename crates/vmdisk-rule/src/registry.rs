//! Lists of rules, checked and joined at compile time.

use crate::Rule;

/// True if a list of rules is sorted by name.
pub const fn has_sorted_names(rules: &[&Rule]) -> bool {
    let mut nth = 1;
    while nth < rules.len() {
        if !is_before(rules[nth - 1].name, rules[nth].name) {
            return false;
        }
        nth += 1;
    }
    true
}

/// Merges sorted lists of rules into one; `N` is the number of rules.
///
/// # Panics
/// Panics if a list is not sorted, or `N` is not the number of rules.
pub const fn joined<const N: usize>(lists: &[&[&'static Rule]]) -> [&'static Rule; N] {
    let mut all = [lists[0][0]; N];
    let mut length = 0;
    let mut list = 0;
    while list < lists.len() {
        assert!(
            has_sorted_names(lists[list]),
            "a list of rules is not sorted by name"
        );
        let mut nth = 0;
        while nth < lists[list].len() {
            // The lists are short and this runs at compile time: insertion sort.
            let mut at = length;
            while at > 0 && is_before(lists[list][nth].name, all[at - 1].name) {
                all[at] = all[at - 1];
                at -= 1;
            }
            all[at] = lists[list][nth];
            length += 1;
            nth += 1;
        }
        list += 1;
    }
    assert!(length == N, "`N` is not the number of rules");
    all
}

/// True if one text sorts before another.
const fn is_before(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}
