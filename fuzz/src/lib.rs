//! The checks of `tests/src/fuzz/`, and the allocator that counts what they hold.

#[path = "../../tests/src/fuzz/mod.rs"]
#[allow(unsafe_code, reason = "the allocator that counts")]
pub mod fuzz;

#[global_allocator]
static ALLOCATOR: fuzz::allocator::Counting = fuzz::allocator::Counting;
