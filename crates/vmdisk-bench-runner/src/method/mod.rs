//! The method: sampling and comparison.

mod estimate;
mod looks;
mod noise;
mod random;
mod round;
mod run;
mod statistics;
mod student;
#[cfg(test)]
mod tests;
mod values;

pub use estimate::{Estimate, SLOWEST, estimate};
pub use looks::{MIN_ROUNDS, Repetition};
pub use noise::{HostMonitor, MachineMonitor, Noise};
pub use round::{Ended, Round, Settings};
pub(crate) use run::complete_rounds;
pub use run::{Event, Runner};
pub use statistics::{Interval, Summary};
pub use values::{CellValues, Comparison, Verdict};

pub(crate) use random::Random;
pub(crate) use statistics::{LogRatio, geometric_mean, holm, median};
pub use values::ratio;
pub(crate) use values::{ABOUT_EQUAL, percent};
