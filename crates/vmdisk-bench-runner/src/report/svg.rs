//! Bars, ticks and lines without text: their values are next to them as text.
//!
//! Each picture is 1,000 units wide and stretched to the width of the page, so it contains nothing
//! that stretching would distort.

use std::collections::BTreeMap;

use crate::{Interval, SeriesPoint, Verdict};

/// The range of an axis with a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Returns an axis for these values; `None` if none of them can be drawn.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let drawn = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = drawn.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        // Add margins, and a minimum width if all values are equal.
        Some(Axis {
            low: low / 1.08,
            high: high * 1.08,
        })
    }

    /// Returns the position of a value, from 0 to 1,000.
    fn place(self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        1000.0 * (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Returns round values for labels, with their positions in percent: at most five, none on an axis of many decades.
    pub(crate) fn labels(self) -> Vec<(f64, f64)> {
        let mut steps = vec![1.0, 2.0, 5.0];
        for keep in [3, 2, 1] {
            steps.truncate(keep);
            let mut labels = Vec::new();
            let (first, last) = (
                self.low.log10().floor() as i32,
                self.high.log10().ceil() as i32,
            );
            for exponent in first..=last {
                let values = steps.iter().map(|step| in_decade(*step, exponent));
                let inside = values.filter(|value| (self.low..=self.high).contains(value));
                labels.extend(inside.map(|value| (value, self.place(value) / 10.0)));
            }
            if labels.len() <= 5 {
                return labels;
            }
        }
        Vec::new()
    }
}

/// Returns `step` times ten to the power of `exponent`.
fn in_decade(step: f64, exponent: i32) -> f64 {
    if exponent < 0 {
        // Division yields the number that prints as 0.1.
        step / 10_f64.powi(-exponent)
    } else {
        step * 10_f64.powi(exponent)
    }
}

/// Opens a picture, hidden from screen readers because the text next to it has its values.
fn open(height: u32) -> String {
    format!("<svg viewBox='0 0 1000 {height}' preserveAspectRatio='none' aria-hidden='true'>")
}

/// Draws a ratio: its interval as a thick line with a tick at the ratio, and a dot for each round below it.
pub(crate) fn ratio(interval: &Interval, rounds: &[f64], verdict: Verdict, axis: Axis) -> String {
    let [one, at, low, high] =
        [1.0, interval.ratio, interval.low, interval.high].map(|value| axis.place(value));
    let class = match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::AboutEqual | Verdict::Inconclusive | Verdict::TooFewRounds => "unclear",
    };
    // A line of length 0 with round ends is a dot that stretching keeps round.
    let dots: String = rounds
        .iter()
        .map(|ratio| format!("M{:.1} 19h0", axis.place(*ratio)))
        .collect();
    let dots = match dots.is_empty() {
        true => String::new(),
        false => format!("<path class='dot' d='{dots}'/>"),
    };
    format!(
        "{}<path class='one' d='M{one:.1} 0V24'/><path class='interval {class}' d='M{low:.1} 8H{high:.1}'/>\
         <path class='mean' d='M{at:.1} 2V14'/>{dots}</svg>",
        open(24)
    )
}

/// Draws a figure without a comparison: a bar from 0.
pub(crate) fn value(value: f64, largest: f64) -> String {
    let width = if largest > 0.0 {
        1000.0 * value / largest
    } else {
        0.0
    };
    format!(
        "{}<rect class='plain' x='0' y='5' width='{width:.1}' height='14'/></svg>",
        open(24)
    )
}

/// Draws percentiles of a latency: a tick for each, higher for rarer ones.
pub(crate) fn percentiles(latencies: &BTreeMap<String, f64>, axis: Axis) -> String {
    let mut sorted: Vec<f64> = latencies.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let mut path = String::new();
    for (rank, nanoseconds) in sorted.iter().enumerate() {
        let height = (8 + 4 * rank).min(24);
        let x = axis.place(*nanoseconds);
        path.push_str(&format!("M{x:.1} 24V{}", 24 - height));
    }
    let (first, last) = match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => (axis.place(*first), axis.place(*last)),
        (None, _) | (_, None) => (0.0, 0.0),
    };
    format!(
        "{}<path class='span' d='M{first:.1} 22H{last:.1}'/><path class='tick' d='{path}'/></svg>",
        open(24)
    )
}

/// Number of steps of a distribution.
const STEPS: usize = 80;

/// Draws a distribution on a logarithmic axis, as an area whose highest step fills the picture.
pub(crate) fn distribution(histogram: &[(u64, u64)], axis: Axis) -> String {
    let mut steps = [0_u64; STEPS];
    for (value, count) in histogram {
        let step = (axis.place(*value as f64) / 1000.0 * STEPS as f64) as usize;
        steps[step.min(STEPS - 1)] += count;
    }
    let highest = steps.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = 1000.0 / STEPS as f64;
    let mut path = String::from("M0 40");
    for (step, count) in steps.iter().enumerate() {
        let y = 40.0 - 38.0 * *count as f64 / highest;
        path.push_str(&format!(
            "L{:.1} {y:.1}H{:.1}",
            step as f64 * width,
            (step + 1) as f64 * width
        ));
    }
    format!(
        "{}<path class='floor' d='M0 40H1000'/><path class='area' d='{path}V40Z'/></svg>",
        open(40)
    )
}

/// Maximum number of points drawn in a time series.
const MAX_POINTS: usize = 60;

/// Draws a time series: a line, scaled from 0 to `largest`.
pub(crate) fn series(points: &[SeriesPoint], largest: f64) -> String {
    let end = points
        .last()
        .map_or(1.0, |point| point.seconds)
        .max(f64::MIN_POSITIVE);
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let places: Vec<String> = points
        .iter()
        .step_by(step)
        .map(|point| {
            let y = 40.0 - 38.0 * (point.iops / largest.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            format!(
                "{:.0},{y:.1}",
                1000.0 * (point.seconds / end).clamp(0.0, 1.0)
            )
        })
        .collect();
    format!(
        "{}<path class='floor' d='M0 40H1000'/><polyline class='series' points='{}'/></svg>",
        open(40),
        places.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_at_most_five_ordered_labels_within_its_range() {
        for (low, high) in [(0.9, 1.1), (0.3, 1.0), (0.01, 30.0), (1e3, 1e9), (1.0, 1.0)] {
            let axis = Axis::of([low, high].into_iter()).unwrap();
            let labels = axis.labels();
            assert!(labels.len() <= 5, "{low} {high} {labels:?}");
            for (value, place) in &labels {
                assert!((0.0..=100.0).contains(place), "{value} {place}");
            }
            assert!(labels.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }
        assert_eq!(Axis::of([f64::NAN, -1.0].into_iter()), None);
    }

    #[test]
    fn a_distribution_is_highest_where_most_requests_are() {
        let axis = Axis::of([1e3, 1e6].into_iter()).unwrap();
        let drawn = distribution(&[(1_000, 10), (30_000, 90), (1_000_000, 1)], axis);
        assert_eq!(drawn.matches(" 2.0H").count(), 1, "{drawn}");
    }

    #[test]
    fn a_ratio_below_1_is_drawn_to_the_left_of_it() {
        let axis = Axis::of([0.5, 2.0].into_iter()).unwrap();
        assert!((axis.place(1.0) - 500.0).abs() < 1e-9);
        let interval = Interval {
            ratio: 0.5,
            low: 0.45,
            high: 0.55,
        };
        let drawn = ratio(&interval, &[0.5, 0.52], Verdict::Slower, axis);
        assert!(drawn.contains("class='interval slower' d='M"), "{drawn}");
        assert!(drawn.contains("class='mean' d='M5"), "{drawn}");
        assert_eq!(drawn.matches("h0").count(), 2, "a dot for each round");
    }
}
