//! Results of runs in all formats.

mod answer;
mod compare;
mod conclude;
mod csv;
mod figures;
mod fio;
mod latency;
mod markdown;
mod pairs;
mod remarks;
mod result;
mod table;
mod text;

pub use compare::{BaselineChange, CellChange, ChangeVerdict, Difference, RunComparison, compare};
pub use csv::csv;
pub use figures::{bytes, duration};
pub use fio::fio_jobs;
pub use latency::{Distribution, Operation};
pub use markdown::markdown;
pub use pairs::pairs;
pub use result::{BenchResult, CellResult, DeviceShare};
pub use text::text;
