//! Answers about paths, kept for the next question.

use std::sync::Mutex;

/// Answers about paths. Each rule asks about the disks of a guest again, so most questions repeat soon.
///
/// Each path maps to one slot, where a later path replaces an earlier one, so that memory does not grow with the number of
/// guests. A thread that finds the memo locked computes its own answer instead of waiting.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    slots: Mutex<Vec<Option<Kept<T>>>>,
}

/// An answer, with its question.
#[derive(Debug)]
struct Kept<T> {
    path: Box<str>,
    answer: T,
}

/// The number of slots.
const SLOTS: usize = 256;

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Memo {
            slots: Mutex::new(Vec::new()),
        }
    }
}

impl<T: Clone> Memo<T> {
    /// The kept answer about a path, otherwise the computed one.
    pub(crate) fn get(&self, path: &str, compute: impl FnOnce() -> T) -> T {
        let slot = slot(path);
        if let Ok(slots) = self.slots.try_lock()
            && let Some(Some(kept)) = slots.get(slot)
            && *kept.path == *path
        {
            return kept.answer.clone();
        }
        let answer = compute();
        if let Ok(mut slots) = self.slots.try_lock() {
            slots.resize_with(SLOTS, || None);
            slots[slot] = Some(Kept {
                path: path.into(),
                answer: answer.clone(),
            });
        }
        answer
    }
}

/// The slot of a path.
fn slot(path: &str) -> usize {
    let mixed = path.bytes().fold(0_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(byte))
    });
    mixed % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_computed_once() {
        let memo = Memo::default();
        assert_eq!(memo.get("/srv/a.img", || 1), 1);
        assert_eq!(memo.get("/srv/a.img", || 2), 1);
        assert_eq!(memo.get("/srv/b.img", || 3), 3);
    }

    #[test]
    fn paths_with_one_slot_have_their_own_answers() {
        let memo = Memo::default();
        let paths: Vec<String> = (0..2 * SLOTS)
            .map(|nth| format!("/srv/{nth}.img"))
            .collect();
        for _ in 0..2 {
            for path in &paths {
                assert_eq!(memo.get(path, || path.clone()), *path);
            }
        }
        let slots = memo.slots.lock().unwrap();
        assert_eq!(slots.len(), SLOTS);
    }

    #[test]
    fn a_locked_memo_does_not_block() {
        let memo = Memo::default();
        let locked = memo.slots.lock().unwrap();
        assert_eq!(memo.get("/srv/a.img", || 1), 1);
        drop(locked);
        assert_eq!(memo.get("/srv/a.img", || 2), 2);
    }
}
