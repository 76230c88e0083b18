//! Baselines: known findings of a repository, which do not count. New findings do.

pub(crate) mod create;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod known;
pub(crate) mod report;
pub(crate) mod task;
