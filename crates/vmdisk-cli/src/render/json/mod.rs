//! The report for programs, by version.

pub(crate) mod lines;
pub(crate) mod v1;
