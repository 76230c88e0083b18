//! More cases than belong in a page, for the rules about cache modes, direct I/O, formats and thin storage.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the recorded hosts and the articles' guests"
)]

mod articles;
mod cache;
mod direct;
mod format;
mod support;
mod thin;
