//! What real libvirts take and refuse, held to what the linter says.
#![allow(clippy::print_stdout, reason = "the tests show their figures")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apparmor;
mod breaks;
mod compare;
mod difference;
mod element;
mod fixes;
mod guest;
mod help;
mod machines;
mod moves;
mod pages;
mod peers;
mod quoted;
mod sources;
mod starts;
