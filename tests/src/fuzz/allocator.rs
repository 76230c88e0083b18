//! An allocator that counts what one thread holds, so that a test can bound what an input makes a reader allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST_HELD: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with counters for each thread.
pub struct Counting;

fn took(bytes: usize) {
    // A thread that is ending has no counters any more, and is not asked about.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        let _ = MOST_HELD.try_with(|most| most.set(most.get().max(held.get())));
    });
}

fn gave_back(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call is handed to the system's allocator unchanged; the counters are plain numbers that allocate nothing.
#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        gave_back(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // While it moves, both are there.
        took(new_size);
        gave_back(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The most bytes that this thread held at once while `work` ran, beyond what it held before. Zero where
/// [`Counting`] is not the allocator.
pub fn most_held(work: impl FnOnce()) -> usize {
    let before = HELD.with(Cell::get);
    MOST_HELD.with(|most| most.set(before));
    work();
    MOST_HELD.with(Cell::get).saturating_sub(before)
}
