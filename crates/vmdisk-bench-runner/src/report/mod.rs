//! Results of runs in all formats.

mod answer;
mod compare;
mod conclude;
mod csv;
mod document;
mod figures;
mod fio;
mod history;
mod latency;
mod of_run;
mod pairs;
mod remarks;
mod result;
mod table;

pub use crate::method::ratio;
pub use compare::{BaselineChange, CellChange, ChangeVerdict, Difference, RunComparison, compare};
pub use csv::csv;
pub use document::{BenchReport, ReportRow, ReportTable};
pub use figures::{bytes, duration, figure, time};
pub use fio::fio_jobs;
pub use history::history;
pub use latency::{Distribution, Operation};
pub use pairs::pairs;
pub use remarks::LIMIT;
pub use result::{BenchResult, CellResult, DeviceShare};
