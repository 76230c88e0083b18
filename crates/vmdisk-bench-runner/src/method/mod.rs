//! How samples are taken, and what may be said of them.

mod looks;
#[cfg(test)]
mod random;
mod statistics;
mod student;

pub use looks::{FEWEST_ROUNDS, Repetition};
pub use statistics::{Interval, Summary, ratio_interval, unpaired_interval};

