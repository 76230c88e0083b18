//! `vmdisk schema`.

#[cfg(feature = "bench")]
use vmdisk_bench_runner::{BenchResult, report::RunComparison};

use crate::args::{SchemaArgs, SchemaFormat};
use crate::capabilities;
use crate::config;
use crate::exit::Exit;
use crate::image;
use crate::io::Io;
use crate::output::deliver;
use crate::render::{json, statistics};
use crate::stop::Stop;

/// Prints the JSON Schema of a format.
pub(crate) fn run(args: &SchemaArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let schema = match args.format {
        SchemaFormat::Report => json::v1::schema(),
        SchemaFormat::ReportLine => json::lines::schema(),
        SchemaFormat::Statistics => statistics::schema(),
        SchemaFormat::Config => config::schema(),
        SchemaFormat::Facts => vmdisk::Facts::json_schema(),
        SchemaFormat::Spec => vmdisk::plan::Spec::json_schema(),
        SchemaFormat::FactsDiff => crate::facts::diff::schema(),
        SchemaFormat::Explain => crate::generate::explain::schema(),
        SchemaFormat::Image => image::json::schema(),
        SchemaFormat::Capabilities => capabilities::schema(),
        SchemaFormat::CapabilitiesDiff => capabilities::diff::schema(),
        SchemaFormat::Recording => capabilities::recording_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::Bench => BenchResult::json_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::BenchCompare => RunComparison::json_schema(),
    };
    let mut text = serde_json::to_string_pretty(&schema)
        .expect("a schema holds only text, numbers, lists and maps");
    text.push('\n');
    deliver(io, None, &text)?;
    Ok(Exit::Clean)
}
