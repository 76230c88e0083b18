//! The report for programs, by version.

pub(crate) mod v1;
