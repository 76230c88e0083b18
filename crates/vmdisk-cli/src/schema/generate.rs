//! The schemas made from their types, for `cargo xtask codegen`.

use clap::ValueEnum;
use vmdisk::report::{decide, explain, json, lines, trace};
#[cfg(feature = "bench")]
use vmdisk_bench_runner::{BenchResult, report::RunComparison};

use crate::args::SchemaFormat;
use crate::baseline;
use crate::config;
use crate::facts::capabilities;
use crate::output::pretty_json;
use crate::render::statistics;

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
        SchemaFormat::Capture => vmdisk_capture::CapturedStart::json_schema(),
        SchemaFormat::Capabilities => capabilities::schema(),
        SchemaFormat::Recording => capabilities::recording_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::Bench => BenchResult::json_schema(),
        #[cfg(feature = "bench")]
        SchemaFormat::BenchCompare => RunComparison::json_schema(),
    }
}
