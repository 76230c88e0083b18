//! Formatting of numbers.

use crate::Metric;

/// Formats a number with three significant digits: `85.9 k`, `1.23 M`, `7.0`.
fn three_digits(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

/// Formats a figure of a workload with its unit: `85.9 k IOPS`, `109 MB/s`.
pub fn figure(value: f64, metric: Metric) -> String {
    match metric {
        Metric::Iops => format!("{} IOPS", three_digits(value)),
        Metric::Throughput if value >= 1e6 => format!("{} MB/s", plain(value / 1e6)),
        Metric::Throughput => format!("{} kB/s", plain(value / 1e3)),
        Metric::Latency => time(1e9 / value),
    }
}

fn plain(value: f64) -> String {
    let digits = match value {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Formats nanoseconds: `12 µs`, `3.4 ms`.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns >= 1e9 => format!("{} s", plain(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", plain(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} µs", plain(ns / 1e3)),
        ns => format!("{ns:.0} ns"),
    }
}

/// Formats seconds: `45 s`, `3 min 20 s`, `1 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.round().max(0.0) as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Formats a number with its noun: `1 round`, `6 rounds`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats bytes: `256 MiB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        many if many >= 10 << 30 => format!("{} GiB", many >> 30),
        many if many >= 1 << 30 => format!("{:.1} GiB", many as f64 / f64::from(1 << 30)),
        many if many >= 1 << 20 => format!("{} MiB", many >> 20),
        many if many >= 1 << 10 => format!("{} KiB", many >> 10),
        few => format!("{few} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(figure(85_912.0, Metric::Iops), "85.9 k IOPS");
        assert_eq!(figure(901.3, Metric::Iops), "901 IOPS");
        assert_eq!(figure(1_230_000.0, Metric::Iops), "1.23 M IOPS");
        assert_eq!(figure(109_400_000.0, Metric::Throughput), "109 MB/s");
        assert_eq!(figure(12_345.0, Metric::Throughput), "12.3 kB/s");
        assert_eq!(figure(500.0, Metric::Latency), "2.00 ms");
        assert_eq!(time(1_234_567.0), "1.23 ms");
        assert_eq!(time(999.0), "999 ns");
        assert_eq!(crate::method::ratio(0.0871), "0.087");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(3_900.0), "1 h 5 min");
        assert_eq!(bytes(256 << 20), "256 MiB");
        assert_eq!(bytes(5_368_709_120), "5.0 GiB");
    }
}
