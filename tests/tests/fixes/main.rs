//! A fix never makes anything worse.
#![allow(clippy::print_stdout, reason = "the tests show their figures")]

mod harmless;
mod releases;
mod spelling;
