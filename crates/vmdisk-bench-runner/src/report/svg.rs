//! Bars, ticks and lines, without text: what they show stands beside them as text.
//!
//! Each picture is 1,000 wide and stretched to the width that the page has, which is why it holds
//! nothing that stretching would spoil.

use std::collections::BTreeMap;

use crate::{Interval, SeriesPoint, Verdict};

/// The ends of an axis on which ratios or times are drawn by their logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that holds these values; `None` if there are none that can be drawn.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let drawn = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = drawn.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        // Room at the ends, and a width where all values are the same.
        Some(Axis {
            low: low / 1.08,
            high: high * 1.08,
        })
    }

    /// Where a value is, from 0 to 1,000.
    fn place(self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        1000.0 * (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Round values to label, with their places in percent; at most five, and none on an axis of many decades.
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
                // Divided, a tenth is the number that prints as 0.1.
                let decade = |step: f64| {
                    if exponent < 0 {
                        step / 10_f64.powi(-exponent)
                    } else {
                        step * 10_f64.powi(exponent)
                    }
                };
                let values = steps.iter().map(|step| decade(*step));
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

/// Opens a picture. It says nothing itself: the text beside it does.
fn open(height: u32) -> String {
    format!("<svg viewBox='0 0 1000 {height}' preserveAspectRatio='none' aria-hidden='true'>")
}

/// A ratio: a bar from 1, with its interval as a line.
pub(crate) fn ratio(interval: &Interval, verdict: Verdict, axis: Axis) -> String {
    let one = axis.place(1.0);
    let at = axis.place(interval.ratio);
    let (low, high) = (axis.place(interval.low), axis.place(interval.high));
    let class = match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifferenceShown | Verdict::TooFewRounds => "unclear",
    };
    format!(
        "{}<rect class='{class}' x='{:.1}' y='5' width='{:.1}' height='14'/>\
         <path class='interval' d='M{low:.1} 12H{high:.1}M{low:.1} 7V17M{high:.1} 7V17'/>\
         <path class='one' d='M{one:.1} 0V24'/></svg>",
        open(24),
        one.min(at),
        (one - at).abs().max(1.0),
    )
}

/// A figure that is compared with nothing: a bar from 0.
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

/// Percentiles of a latency: a tick for each, higher for the rarer.
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

/// Most points of a course that are drawn.
const MOST_POINTS: usize = 60;

/// The course of a measurement: a line from 0 up to `largest`.
pub(crate) fn course(series: &[SeriesPoint], largest: f64) -> String {
    let end = series
        .last()
        .map_or(1.0, |point| point.seconds)
        .max(f64::MIN_POSITIVE);
    let step = series.len().div_ceil(MOST_POINTS).max(1);
    let points: Vec<String> = series
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
        "{}<path class='floor' d='M0 40H1000'/><polyline class='course' points='{}'/></svg>",
        open(40),
        points.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_few_labels_in_order_inside_of_it() {
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
    fn a_ratio_below_1_is_drawn_to_the_left_of_it() {
        let axis = Axis::of([0.5, 2.0].into_iter()).unwrap();
        assert!((axis.place(1.0) - 500.0).abs() < 1e-9);
        let interval = Interval {
            ratio: 0.5,
            low: 0.45,
            high: 0.55,
        };
        let drawn = ratio(&interval, Verdict::Slower, axis);
        assert!(drawn.contains("class='slower' x='50."), "{drawn}");
    }
}
