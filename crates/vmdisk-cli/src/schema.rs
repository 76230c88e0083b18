//! `vmdisk schema`.
//!
//! The schemas are files: `cargo xtask codegen` makes them from the types, so that the command has none of the code that
//! does this.

use clap::ValueEnum;
use vmdisk::report::{decide, explain, json, lines, trace};
#[cfg(feature = "bench")]
use vmdisk_bench_runner::{BenchResult, report::RunComparison};

use crate::args::{SchemaArgs, SchemaFormat};
use crate::baseline;
use crate::capabilities;
use crate::config;
use crate::exit::Exit;
use crate::image;
use crate::io::Io;
use crate::output::{deliver, pretty_json};
use crate::render::statistics;
use crate::stop::Stop;

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
        SchemaFormat::Image => include_str!("schemas/image.json"),
        SchemaFormat::Capabilities => include_str!("schemas/capabilities.json"),
        SchemaFormat::Recording => include_str!("schemas/recording.json"),
        #[cfg(feature = "bench")]
        SchemaFormat::Bench => include_str!("schemas/bench.json"),
        #[cfg(feature = "bench")]
        SchemaFormat::BenchCompare => include_str!("schemas/bench-compare.json"),
    };
    deliver(io, None, text)?;
    Ok(Exit::Clean)
}

/// Makes the JSON Schema of every format from its types, by the names of the formats.
pub fn generate_schemas() -> Vec<(String, String)> {
    let named = |format: &SchemaFormat| {
        let name = format.to_possible_value()?.get_name().to_owned();
        Some((name, pretty_json(&generate(*format))))
    };
    let formats = SchemaFormat::value_variants().iter();
    formats.filter_map(named).collect()
}

fn generate(format: SchemaFormat) -> schemars::Schema {
    match format {
        SchemaFormat::Report => json::schema(),
        SchemaFormat::ReportLine => lines::schema(),
        SchemaFormat::Statistics => statistics::schema(),
        SchemaFormat::Trace => trace::schema(),
        SchemaFormat::Decide => decide::schema(),
        SchemaFormat::Advise => crate::advise::json::schema(),
        SchemaFormat::Config => config::schema(),
        SchemaFormat::Baseline => baseline::file::schema(),
        SchemaFormat::Facts => vmdisk::Facts::json_schema(),
        SchemaFormat::Spec => vmdisk::plan::Spec::json_schema()
            .try_into()
            .expect("a schema is an object"),
        SchemaFormat::FactsDiff => crate::facts::diff::schema(),
        SchemaFormat::Explain => explain::schema(),
        SchemaFormat::Steps => crate::apply::json::schema(),
        SchemaFormat::Image => image::json::schema(),
        SchemaFormat::Capabilities => capabilities::schema(),
        SchemaFormat::Recording => capabilities::recording_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::Bench => BenchResult::json_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::BenchCompare => RunComparison::json_schema(),
    }
}
