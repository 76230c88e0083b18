//! `vmdisk print schema`.
//!
//! The schemas are files: `cargo xtask codegen` makes them from the types, so that the command has none of the code that
//! does this.

#[cfg(feature = "schema")]
mod generate;

use crate::args::{SchemaArgs, SchemaFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::stop::Stop;

#[cfg(feature = "schema")]
pub use generate::generate_schemas;

/// Prints the JSON Schema of a format.
pub(crate) fn run(args: &SchemaArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let text = match args.format {
        SchemaFormat::Report => include_str!("schemas/report.json"),
        SchemaFormat::ReportLine => include_str!("schemas/report-line.json"),
        SchemaFormat::Statistics => include_str!("schemas/statistics.json"),
        SchemaFormat::Trace => include_str!("schemas/trace.json"),
        SchemaFormat::Decide => include_str!("schemas/decide.json"),
        SchemaFormat::Advise => include_str!("schemas/advise.json"),
        SchemaFormat::Config => include_str!("schemas/config.json"),
        SchemaFormat::Baseline => include_str!("schemas/baseline.json"),
        SchemaFormat::Facts => include_str!("schemas/facts.json"),
        SchemaFormat::Spec => include_str!("schemas/spec.json"),
        SchemaFormat::FactsDiff => include_str!("schemas/facts-diff.json"),
        SchemaFormat::Explain => include_str!("schemas/explain.json"),
        SchemaFormat::Steps => include_str!("schemas/steps.json"),
        SchemaFormat::Capture => include_str!("schemas/capture.json"),
        SchemaFormat::Capabilities => include_str!("schemas/capabilities.json"),
        SchemaFormat::Recording => include_str!("schemas/recording.json"),
        #[cfg(feature = "bench")]
        SchemaFormat::Bench => include_str!("schemas/bench.json"),
        #[cfg(feature = "bench")]
        SchemaFormat::BenchCompare => include_str!("schemas/bench-compare.json"),
    };
    deliver_exact(io, None, text)?;
    Ok(Exit::Clean)
}
