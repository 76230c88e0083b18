//! What samples say: intervals of ratios, and figures that describe a cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student;

/// A ratio with the interval that holds the true one, at the confidence of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Geometric mean of the ratios of each round.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of a mean of logarithms.
    fn of_logarithm(mean: f64, half_width: f64) -> Self {
        Interval {
            ratio: mean.exp(),
            low: (mean - half_width).exp(),
            high: (mean + half_width).exp(),
        }
    }

    /// True if the interval does not include 1.
    pub fn shows_a_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Half of the width relative to the ratio: 0.05 means ±5 %.
    pub fn precision(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }

    /// The largest difference from 1 that the interval includes: what "no difference shown (±x %)" names.
    pub fn largest_difference(&self) -> f64 {
        (self.high - 1.0).max(1.0 / self.low - 1.0)
    }
}

/// The interval of the true ratio, from the ratio of each round; Student's t on logarithms.
///
/// `alpha` is the probability that the interval misses the true ratio. `None` for fewer than two rounds.
///
/// With six rounds a percentile bootstrap covers only 85 % instead of 95 %; this covers what it says if
/// logarithms of ratios are about normal, and nearly so if they are not.
pub fn ratio_interval(ratios: &[f64], alpha: f64) -> Option<Interval> {
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let (mean, deviation) = mean_and_deviation(&logarithms)?;
    let n = logarithms.len();
    let t = student::quantile(1.0 - alpha / 2.0, n as f64 - 1.0);
    Some(Interval::of_logarithm(
        mean,
        t * deviation / (n as f64).sqrt(),
    ))
}

/// The interval of the ratio of two groups that were not measured together (Welch 1947), on logarithms.
///
/// `None` if a group has fewer than two values.
pub fn unpaired_interval(values: &[f64], baseline: &[f64], alpha: f64) -> Option<Interval> {
    let of = |values: &[f64]| {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let (mean, deviation) = mean_and_deviation(&logarithms)?;
        let n = logarithms.len() as f64;
        Some((mean, deviation * deviation / n, n))
    };
    let (mean, error, n) = of(values)?;
    let (baseline_mean, baseline_error, baseline_n) = of(baseline)?;
    let total = error + baseline_error;
    // Welch's degrees of freedom; groups without any spread have those of the smaller.
    let degrees = if total > 0.0 {
        total * total
            / (error * error / (n - 1.0) + baseline_error * baseline_error / (baseline_n - 1.0))
    } else {
        n.min(baseline_n) - 1.0
    };
    let t = student::quantile(1.0 - alpha / 2.0, degrees.max(1.0));
    Some(Interval::of_logarithm(
        mean - baseline_mean,
        t * total.sqrt(),
    ))
}

/// Mean and standard deviation; `None` for fewer than two numbers.
fn mean_and_deviation(numbers: &[f64]) -> Option<(f64, f64)> {
    if numbers.len() < 2 {
        return None;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some((mean, (squares / (n - 1.0)).sqrt()))
}

/// What describes the samples of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many samples were counted.
    pub count: usize,
    /// Median.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation divided by the mean; unset for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<f64>,
    /// Places among the samples of those that lie far from the rest; they are counted all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<usize>,
}

impl Summary {
    /// Describes the values of a cell, in the order in which they were measured; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let spread = self::median(&distances)?;
        // hyperfine's rule: a modified z-score above 10. Four values cannot say which of them is odd.
        let is_odd = |distance: f64| values.len() > 4 && distance > 14.826 * spread && spread > 0.0;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Summary {
            count: values.len(),
            median,
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            variation: mean_and_deviation(values).map(|(mean, deviation)| deviation / mean),
            outliers: distances
                .iter()
                .enumerate()
                .filter(|(_, distance)| is_odd(**distance))
                .map(|(index, _)| index)
                .collect(),
        })
    }
}

/// The value in the middle; `None` without any.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) {
        0.5 * (upper + sorted[middle - 1])
    } else {
        upper
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_textbooks() {
        // Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, and t(0.975, 2) = 4.303.
        let ratios = [0.1_f64.exp(), 0.2_f64.exp(), 0.3_f64.exp()];
        let interval = ratio_interval(&ratios, 0.05).unwrap();
        let half = 4.3027 * 0.1 / 3.0_f64.sqrt();
        assert!((interval.ratio.ln() - 0.2).abs() < 1e-12);
        assert!((interval.low.ln() - (0.2 - half)).abs() < 1e-4);
        assert!((interval.high.ln() - (0.2 + half)).abs() < 1e-4);
        assert!(!interval.shows_a_difference());
        assert!((interval.precision() - (half.exp() - 1.0)).abs() < 1e-4);
        assert!((interval.largest_difference() - ((0.2 + half).exp() - 1.0)).abs() < 1e-3);
        assert_eq!(ratio_interval(&[1.0], 0.05), None);
    }

    #[test]
    fn groups_apart_are_compared_as_welch_does() {
        let of = |numbers: &[f64]| numbers.iter().map(|n| n.exp()).collect::<Vec<_>>();
        // Equal spread and size: degrees are 2n - 2 = 4, t = 2.776, error = sqrt(2 * 0.01 / 3).
        let interval =
            unpaired_interval(&of(&[1.1, 1.2, 1.3]), &of(&[0.1, 0.2, 0.3]), 0.05).unwrap();
        let half = 2.7764 * (2.0_f64 * 0.01 / 3.0).sqrt();
        assert!((interval.ratio.ln() - 1.0).abs() < 1e-12);
        assert!((interval.high.ln() - (1.0 + half)).abs() < 1e-4);
        assert!(interval.shows_a_difference());
        let still = unpaired_interval(&[2.0, 2.0], &[1.0, 1.0], 0.05).unwrap();
        assert_eq!((still.low, still.high), (2.0, 2.0));
    }

    #[test]
    fn an_outlier_is_named_and_counted() {
        let values = [100.0, 101.0, 99.0, 100.5, 99.5, 10.0];
        let summary = Summary::of(&values).unwrap();
        assert_eq!(summary.outliers, [5]);
        assert_eq!(summary.count, 6);
        assert_eq!(summary.min, 10.0);
        assert_eq!(summary.median, 99.75);
        assert_eq!(Summary::of(&[]), None);
    }
}
