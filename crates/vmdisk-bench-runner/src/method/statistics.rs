//! Statistics of samples: intervals of ratios, and summaries of a cell.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student;

/// A ratio with its confidence interval, at the confidence of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Geometric mean of the ratios of all rounds.
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

    /// Returns the interval of the geometric mean of independent ratios, which misses the true ratio with probability
    /// `alpha`; `None` for fewer than two ratios.
    pub fn of_ratios(ratios: &[f64], alpha: f64) -> Option<Self> {
        Some(LogRatio::of(ratios)?.interval(alpha))
    }

    /// Returns the distance of the ratio from 1, in either direction.
    pub(crate) fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }

    /// Returns half of the width relative to the ratio: 0.05 means ±5 %.
    pub fn precision(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }

    /// Returns the largest difference from 1 within the interval, the x of "about equal (within ±x %)".
    pub fn largest_difference(&self) -> f64 {
        (self.high - 1.0).max(1.0 / self.low - 1.0)
    }
}

/// The estimated logarithm of a ratio: a mean and its standard error.
///
/// With six rounds a percentile bootstrap covers only 85 % instead of 95 %. Student's t has the stated coverage if the
/// logarithms of ratios are normal, and nearly so otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogRatio {
    mean: f64,
    error: f64,
    degrees: f64,
}

impl LogRatio {
    /// Estimates the mean of the ratios of all rounds; `None` for fewer than two rounds.
    pub(crate) fn of(ratios: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let (mean, deviation) = mean_and_deviation(&logarithms)?;
        let n = logarithms.len() as f64;
        Some(LogRatio {
            mean,
            error: deviation / n.sqrt(),
            degrees: n - 1.0,
        })
    }

    /// Divides by a ratio that was measured independently (Welch 1947).
    pub(crate) fn over(self, other: LogRatio) -> LogRatio {
        let (one, two) = (self.error * self.error, other.error * other.error);
        let total = one + two;
        // Without any spread, use the degrees of freedom of the smaller group.
        let degrees = if total > 0.0 {
            total * total / (one * one / self.degrees + two * two / other.degrees)
        } else {
            self.degrees.min(other.degrees)
        };
        LogRatio {
            mean: self.mean - other.mean,
            error: total.sqrt(),
            degrees: degrees.max(1.0),
        }
    }

    /// Returns the interval that misses the true ratio with probability `alpha`.
    pub(crate) fn interval(self, alpha: f64) -> Interval {
        let half_width = student::quantile(1.0 - alpha / 2.0, self.degrees) * self.error;
        Interval::of_logarithm(self.mean, half_width)
    }

    /// Returns the probability of a mean this far from 0 if there is no difference.
    pub(crate) fn p_value(self) -> f64 {
        if self.mean == 0.0 {
            return 1.0;
        }
        student::two_sided(self.mean / self.error, self.degrees)
    }
}

/// Returns which comparisons show a difference, so that the probability of any false claim is at most `alpha`
/// (Holm 1979).
pub(crate) fn holm(p_values: &[Option<f64>], alpha: f64) -> Vec<bool> {
    let mut known: Vec<(f64, usize)> = p_values
        .iter()
        .enumerate()
        .filter_map(|(index, p)| Some(((*p)?, index)))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut shown = vec![false; p_values.len()];
    for (rank, (p, index)) in known.iter().enumerate() {
        if *p > alpha / (known.len() - rank) as f64 {
            break;
        }
        shown[*index] = true;
    }
    shown
}

/// Returns the geometric mean; `None` for an empty list.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// Returns the standard deviation of the logarithms of ratios; `None` for fewer than two.
pub(crate) fn deviation(ratios: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    Some(mean_and_deviation(&logarithms)?.1)
}

/// Returns mean and standard deviation; `None` for fewer than two numbers.
fn mean_and_deviation(numbers: &[f64]) -> Option<(f64, f64)> {
    if numbers.len() < 2 {
        return None;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some((mean, (squares / (n - 1.0)).sqrt()))
}

/// The summary of a cell's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Number of samples that count.
    pub count: usize,
    /// Geometric mean: the means of two cells that were measured in the same rounds have the ratio that their comparison shows.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation divided by the mean; unset for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<f64>,
    /// Positions of samples far from the rest; they count like the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<usize>,
}

impl Summary {
    /// Summarizes the values of a cell in the order of measurement; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let spread = self::median(&distances)?;
        // hyperfine's rule: a modified z-score above 10. With four values or fewer, no outlier can be identified.
        let is_odd = |distance: f64| values.len() > 4 && distance > 14.826 * spread && spread > 0.0;
        Some(Summary {
            count: values.len(),
            mean: geometric_mean(values)?,
            median,
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

/// Returns the median; `None` for an empty list.
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
    fn an_interval_agrees_with_the_textbook() {
        // Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, and t(0.975, 2) = 4.303.
        let ratios = [0.1_f64.exp(), 0.2_f64.exp(), 0.3_f64.exp()];
        let known = LogRatio::of(&ratios).unwrap();
        let interval = known.interval(0.05);
        let half = 4.3027 * 0.1 / 3.0_f64.sqrt();
        assert!((interval.ratio.ln() - 0.2).abs() < 1e-12);
        assert!((interval.low.ln() - (0.2 - half)).abs() < 1e-4);
        assert!((interval.high.ln() - (0.2 + half)).abs() < 1e-4);
        // t = 0.2 / (0.1 / sqrt(3)) = 3.464 with two degrees of freedom.
        assert!(
            (known.p_value() - 0.0742).abs() < 1e-3,
            "{}",
            known.p_value()
        );
        assert!((interval.precision() - (half.exp() - 1.0)).abs() < 1e-4);
        assert!((interval.largest_difference() - ((0.2 + half).exp() - 1.0)).abs() < 1e-3);
        assert_eq!(LogRatio::of(&[1.0]), None);
    }

    #[test]
    fn independent_groups_are_compared_by_welchs_method() {
        let of = |numbers: &[f64]| numbers.iter().map(|n| n.exp()).collect::<Vec<_>>();
        // Equal spread and size: 2n - 2 = 4 degrees of freedom, t = 2.776, error = sqrt(2 * 0.01 / 3).
        let group = |numbers: &[f64]| LogRatio::of(&of(numbers)).unwrap();
        let difference = group(&[1.1, 1.2, 1.3]).over(group(&[0.1, 0.2, 0.3]));
        let interval = difference.interval(0.05);
        let half = 2.7764 * (2.0_f64 * 0.01 / 3.0).sqrt();
        assert!((interval.ratio.ln() - 1.0).abs() < 1e-12);
        assert!((interval.high.ln() - (1.0 + half)).abs() < 1e-4);
        assert!(difference.p_value() < 0.001);
        let still = LogRatio::of(&[2.0, 2.0])
            .unwrap()
            .over(LogRatio::of(&[1.0, 1.0]).unwrap());
        assert_eq!(still.p_value(), 0.0);
        let same = LogRatio::of(&[2.0, 2.0]).unwrap();
        assert_eq!(same.over(same).p_value(), 1.0);
    }

    #[test]
    fn holm_accepts_p_values_in_ascending_order_until_one_exceeds_its_share() {
        // The shares of 5 % are 1/4, 1/3, 1/2 and 1.
        let p = [Some(0.04), Some(0.001), None, Some(0.012), Some(0.03)];
        assert_eq!(holm(&p, 0.05), [false, true, false, true, false]);
        assert_eq!(holm(&[Some(0.04)], 0.05), [true]);
        // After the first rejected p-value, all larger ones are rejected too.
        assert_eq!(holm(&[Some(0.026), Some(0.026)], 0.05), [false, false]);
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn an_outlier_is_reported_and_still_counts() {
        let values = [100.0, 101.0, 99.0, 100.5, 99.5, 10.0];
        let summary = Summary::of(&values).unwrap();
        assert_eq!(summary.outliers, [5]);
        assert_eq!(summary.count, 6);
        assert_eq!(summary.min, 10.0);
        assert_eq!(summary.median, 99.75);
        assert!((summary.mean - 68.1).abs() < 0.1, "{}", summary.mean);
        assert_eq!(Summary::of(&[]), None);
    }
}
