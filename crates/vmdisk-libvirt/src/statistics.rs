//! `driver/statistics`: QEMU's statistics of a disk's requests.

use vmdisk_model::{LatencyHistogram, Statistics};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{unsigned32, unsigned64};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("driver/statistics");
const STATISTIC: &str = "driver/statistics/statistic";
const HISTOGRAM: &str = "driver/statistics/latency-histogram";
const BIN: &str = "driver/statistics/latency-histogram/bin";

/// Reads the statistics of a `<driver>`; an element without a readable number is kept unchanged.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    driver: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Statistics {
    let mut statistics = Statistics::default();
    let Some(mut element) = reader.child(driver, "statistics") else {
        return statistics;
    };
    for node in element.children("statistic") {
        let interval = node.attribute("interval").and_then(unsigned32);
        let Some(interval) = interval else {
            element.give_back(node);
            continue;
        };
        let mut statistic = reader.open_child(&element, node, element.owner);
        statistic.take_known("interval");
        let at = UnmodeledPath::nth(STATISTIC, statistics.intervals.len());
        kept.note(at, reader.close(statistic));
        statistics.intervals.push(interval);
    }
    let mut bin_count = 0;
    for node in element.children("latency-histogram") {
        let mut histogram = reader.open_child(&element, node, element.owner);
        let request = histogram.take_text("type");
        let mut bin_starts = Vec::new();
        for node in histogram.children("bin") {
            let start = node.attribute("start").and_then(unsigned64);
            let Some(start) = start else {
                histogram.give_back(node);
                continue;
            };
            let mut bin = reader.open_child(&histogram, node, histogram.owner);
            bin.take_known("start");
            kept.note(UnmodeledPath::nth(BIN, bin_count), reader.close(bin));
            bin_count += 1;
            bin_starts.push(start);
        }
        let at = UnmodeledPath::nth(HISTOGRAM, statistics.histograms.len());
        kept.note(at, reader.close(histogram));
        statistics.histograms.push(LatencyHistogram {
            request,
            bin_starts,
        });
    }
    kept.note(AT, reader.close(element));
    statistics
}

/// Writes the requested statistics.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    statistics: &Statistics,
    kept: &'k UnmodeledContent,
) {
    let Statistics {
        intervals,
        histograms,
    } = statistics;
    if intervals.is_empty() && histograms.is_empty() && kept.at(AT).is_empty() {
        return;
    }
    writer.start("statistics", kept.at(AT));
    for (nth, interval) in intervals.iter().enumerate() {
        writer.start("statistic", kept.at(UnmodeledPath::nth(STATISTIC, nth)));
        writer.attribute("interval", interval);
        writer.end();
    }
    let mut bin_count = 0;
    for (nth, histogram) in histograms.iter().enumerate() {
        let LatencyHistogram {
            request,
            bin_starts,
        } = histogram;
        writer.start(
            "latency-histogram",
            kept.at(UnmodeledPath::nth(HISTOGRAM, nth)),
        );
        writer.optional("type", request.as_ref());
        for start in bin_starts {
            writer.start("bin", kept.at(UnmodeledPath::nth(BIN, bin_count)));
            writer.attribute("start", start);
            writer.end();
            bin_count += 1;
        }
        writer.end();
    }
    writer.end();
}
