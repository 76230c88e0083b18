//! Quantiles of Student's t distribution and of Fisher's F distribution.
//!
//! Confidence intervals need no other statistics, which does not justify a dependency.

/// Returns the value that a t-distributed variable stays below with `probability`.
///
/// # Panics
/// Unless `0 < probability < 1` and `degrees >= 1`.
pub(crate) fn quantile(probability: f64, degrees: f64) -> f64 {
    if probability < 0.5 {
        return -quantile(1.0 - probability, degrees);
    }
    // The square of a t-distributed variable is a variance of one degree over another one.
    ratio_quantile(2.0 * probability - 1.0, 1.0, degrees).sqrt()
}

/// Returns the value that the ratio of two measured variances stays below with `probability` if the true ones are equal (the F
/// distribution), from the degrees of freedom of both.
///
/// # Panics
/// Unless `0 <= probability < 1` and the degrees are at least 1.
pub(crate) fn ratio_quantile(probability: f64, upper: f64, lower: f64) -> f64 {
    assert!((0.0..1.0).contains(&probability) && upper >= 1.0 && lower >= 1.0);
    let exceeds =
        |ratio: f64| incomplete_beta(lower / (lower + upper * ratio), 0.5 * lower, 0.5 * upper);
    let mut high = 1.0;
    while exceeds(high) > 1.0 - probability {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Each step halves the interval: 200 steps exceed the precision of a double.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if exceeds(middle) > 1.0 - probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns the probability that a t-distributed variable is at least as far from 0 as `t`.
pub(crate) fn two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(degrees / (degrees + t * t), 0.5 * degrees, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast only below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        1.0 - beta_fraction(1.0 - x, b, a)
    } else {
        beta_fraction(x, a, b)
    }
}

/// The regularised incomplete beta function as a continued fraction (Abramowitz and Stegun 26.5.8, evaluated by Lentz's
/// method), for `x` below the mean.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function for positive numbers, by Stirling's series.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let square = x * x;
    let series = 1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_tables() {
        // Columns: 0.90, 0.95, 0.975, 0.99, 0.995 (any printed table of the distribution).
        for (degrees, row) in [
            (1.0, [3.078, 6.314, 12.706, 31.821, 63.657]),
            (2.0, [1.886, 2.920, 4.303, 6.965, 9.925]),
            (3.0, [1.638, 2.353, 3.182, 4.541, 5.841]),
            (4.0, [1.533, 2.132, 2.776, 3.747, 4.604]),
            (5.0, [1.476, 2.015, 2.571, 3.365, 4.032]),
            (9.0, [1.383, 1.833, 2.262, 2.821, 3.250]),
            (20.0, [1.325, 1.725, 2.086, 2.528, 2.845]),
            (30.0, [1.310, 1.697, 2.042, 2.457, 2.750]),
            (120.0, [1.289, 1.658, 1.980, 2.358, 2.617]),
        ] {
            for (probability, expected) in [0.90, 0.95, 0.975, 0.99, 0.995].into_iter().zip(row) {
                let found = quantile(probability, degrees);
                assert!(
                    (found - expected).abs() < 0.0006,
                    "t({probability}, {degrees}) = {found}, but tables have {expected}"
                );
                assert_eq!(quantile(1.0 - probability, degrees).signum(), -1.0);
            }
        }
    }

    #[test]
    fn quantiles_of_variances_agree_with_the_printed_tables() {
        for (upper, lower, expected) in [
            (1.0, 1.0, 161.4),
            (3.0, 2.0, 19.16),
            (3.0, 8.0, 4.07),
            (4.0, 1.0, 224.6),
            (5.0, 10.0, 3.33),
            (20.0, 20.0, 2.12),
        ] {
            let found = ratio_quantile(0.95, upper, lower);
            let error = (found / expected - 1.0).abs();
            assert!(
                error < 0.002,
                "F({upper}, {lower}) = {found}, not {expected}"
            );
        }
    }

    #[test]
    fn the_gamma_function_of_whole_numbers_is_the_factorial() {
        for (x, factorial) in [(1.0, 1.0_f64), (2.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0)] {
            assert!((ln_gamma(x) - factorial.ln()).abs() < 1e-10, "{x}");
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-10);
    }
}
