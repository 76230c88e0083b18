//! What a run came to, and every form in which people and programs read it.

mod compare;
mod csv;
mod figures;
mod html;
mod markdown;
mod remarks;
mod result;
mod svg;
mod table;
mod text;

pub use compare::{Difference, Side, TwoRuns, compare};
pub use csv::csv;
pub use figures::{bytes, duration};
pub use html::{MOST_BYTES, html};
pub use markdown::markdown;
pub use result::{BenchResult, CellResult};
pub use text::text;
