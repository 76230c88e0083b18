//! A fix never makes anything worse.
#![allow(clippy::print_stdout, reason = "the tests show their figures")]

mod allow;
mod expansions;
mod harmless;
mod misspelt;
mod named;
mod releases;
mod scripts;
mod spelling;
mod without_facts;
