//! More cases than belong in a page, for the rules about names, threads, memory and host devices.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the facts fixtures that they name"
)]

mod host;
mod limits;
mod memory;
mod names;
mod one_cause;
mod sectors;
mod sharing;
mod support;
mod threads;
