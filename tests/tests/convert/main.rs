//! Conversions lose nothing in silence: what a document says is in the output, or named on standard error, or refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "the tests show their figures")]

mod conversion;
mod inputs;
mod options;
mod plans;
mod schema;
mod xml;
