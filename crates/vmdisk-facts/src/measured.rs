//! Figures that `vmdisk bench` measured on storage of the host.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::filesystem::FsKind;
use crate::record::facts;

facts! {
    /// The figures of one configuration on one storage of the host. They hold for the storage with the same file system
    /// on the same drives.
    pub struct MeasuredStorage {
        /// When the run began, RFC 3339 in UTC.
        pub measured_at: Fact<String>,
        /// The directory, file or device.
        pub path: Fact<String>,
        /// Its file system; absent for a device.
        pub fstype: Fact<FsKind>,
        /// Whether its files are written in place; of btrfs only.
        pub nocow: Fact<bool>,
        /// The drives, by stable names where they have one; without drives, the mount point.
        pub devices: Vec<String>,
        /// What sent the requests (`host-fio`, `storage-daemon`, `guest`).
        pub engine: Fact<String>,
        /// The accelerator of the guest (`kvm`, `tcg`); absent without a guest.
        pub accelerator: Fact<String>,
        /// The format and allocation of the disk (`raw`, `qcow2, preallocation metadata`, `whole disk`).
        pub form: Fact<String>,
        /// The cache mode of QEMU.
        pub cache: Fact<String>,
        /// The I/O interface of QEMU.
        pub io: Fact<String>,
        /// The figures.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub figures: Vec<MeasuredFigure>,
        /// The effects of changes that rules propose.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub effects: Vec<MeasuredEffect>,
    }
}

vmdisk_source::words! {
    /// What a figure is.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Quantity as word {
        /// Mean nanoseconds of a flush after a write.
        Flush = "flush",
        /// Bytes per second of random reads of 4 KiB, one at a time.
        RandomRead = "random-read",
        /// The same with 32 in flight.
        ParallelRead = "parallel-read",
        /// Bytes per second of random writes of 4 KiB, one at a time.
        RandomWrite = "random-write",
        /// The same with 32 in flight.
        ParallelWrite = "parallel-write",
        /// Bytes per second of large reads in order.
        SequentialRead = "sequential-read",
        /// Bytes per second of large writes in order.
        SequentialWrite = "sequential-write",
        /// Bytes per second of large writes in order on new storage.
        FirstWrite = "first-write",
    }
}

/// A figure, with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MeasuredFigure {
    /// What it is, and its unit.
    pub quantity: Quantity,
    /// Geometric mean.
    pub mean: u64,
    /// Lower end of the interval.
    pub low: u64,
    /// Upper end of the interval.
    pub high: u64,
}

/// The effect of a change that a rule proposes, with its 95 % interval, in thousandths: 2000 is twice as fast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MeasuredEffect {
    /// The rule.
    pub rule: String,
    /// The load (`4k-random-write-qd32`).
    pub workload: String,
    /// Geometric mean of the ratios.
    pub ratio: u64,
    /// Lower end of the interval.
    pub low: u64,
    /// Upper end of the interval.
    pub high: u64,
}

impl fmt::Display for MeasuredFigure {
    /// Writes, for example, `flush ≈ 9.00 ms [8.10, 10.2]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, per_unit, units): (_, _, &[&str]) = match self.quantity {
            Quantity::Flush => ("flush", 1, &["ns", "µs", "ms", "s"]),
            Quantity::RandomRead => ("4k random reads", 4096, IOPS),
            Quantity::ParallelRead => ("4k random reads, 32 in flight,", 4096, IOPS),
            Quantity::RandomWrite => ("4k random writes", 4096, IOPS),
            Quantity::ParallelWrite => ("4k random writes, 32 in flight,", 4096, IOPS),
            Quantity::SequentialRead => ("reads in order", 1, RATE),
            Quantity::SequentialWrite => ("writes in order", 1, RATE),
            Quantity::FirstWrite => ("first writes", 1, RATE),
        };
        let [mean, low, high] =
            [self.mean, self.low, self.high].map(|it| it as f64 / f64::from(per_unit));
        let power = units.len() - 1;
        let power = (0..power)
            .find(|nth| mean < 999.5 * 1000_f64.powi(*nth as i32))
            .unwrap_or(power);
        let [mean, low, high] =
            [mean, low, high].map(|it| digits(it / 1000_f64.powi(power as i32)));
        write!(f, "{name} ≈ {mean} {} [{low}, {high}]", units[power])
    }
}

const IOPS: &[&str] = &["IOPS", "k IOPS", "M IOPS"];
const RATE: &[&str] = &["B/s", "kB/s", "MB/s", "GB/s"];

/// A number with three digits.
fn digits(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

impl fmt::Display for MeasuredEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ratio, low, high] =
            [self.ratio, self.low, self.high].map(|it| digits(it as f64 / 1000.0));
        write!(
            f,
            "{ratio} [{low}, {high}] times as fast for {}",
            self.workload
        )
    }
}

impl MeasuredEffect {
    /// True if the interval excludes a gain of more than 10 %.
    pub const fn refutes(&self) -> bool {
        self.high <= 1100
    }
}

impl MeasuredStorage {
    /// The day of the measurement and its conditions, such as `2026-11-20 with raw, cache none, guest, tcg`.
    pub fn conditions(&self) -> String {
        let when = self.measured_at.value().and_then(|at| at.get(..10));
        let words = [
            &self.form,
            &self.cache,
            &self.io,
            &self.engine,
            &self.accelerator,
        ];
        let names = ["", "cache ", "io ", "", ""];
        let words = names
            .iter()
            .zip(words)
            .filter_map(|(name, word)| Some(format!("{name}{}", word.value()?)));
        let words: Vec<String> = words.collect();
        format!(
            "{} with {}",
            when.unwrap_or("an unknown day"),
            words.join(", ")
        )
    }

    /// The reason for which its figures are not those of a disk in this form with this cache mode and I/O interface; `None`
    /// if they do.
    pub fn unlike(&self, form: &str, cache: Option<&str>, io: Option<&str>) -> Option<String> {
        let Some(own) = word(&self.form) else {
            return Some("its form is not known".to_owned());
        };
        let settings = [
            ("", Some(own), Some(form)),
            ("cache ", word(&self.cache), cache),
            ("io ", word(&self.io), io),
        ];
        let (mut measured, mut asked) = (Vec::new(), Vec::new());
        for (name, own, other) in settings {
            if let (Some(own), Some(other)) = (own, other)
                && own != other
            {
                measured.push(format!("{name}{own}"));
                asked.push(format!("{name}{other}"));
            }
        }
        (!measured.is_empty()).then(|| {
            let (measured, asked) = (measured.join(", "), asked.join(", "));
            format!("measured with {measured}; the candidate has {asked}")
        })
    }

    /// True unless it was measured with another format, cache mode or I/O interface.
    pub fn is_like(&self, format: Option<&str>, cache: Option<&str>, io: Option<&str>) -> bool {
        let form = self.form.value().and_then(|form| form.split(", ").next());
        // Without QEMU, the figures are those of the file system under every format.
        let form = form.filter(|form| {
            ["raw", "qcow2"].contains(form) && !self.engine.as_str().is(&"host-fio")
        });
        let pairs = [
            (form, format),
            (word(&self.cache), cache),
            (word(&self.io), io),
        ];
        pairs
            .iter()
            .all(|(measured, asked)| match (measured, asked) {
                (Some(measured), Some(asked)) => measured == asked,
                (None, _) | (_, None) => true,
            })
    }

    /// A figure of it.
    pub fn figure(&self, quantity: Quantity) -> Option<&MeasuredFigure> {
        self.figures
            .iter()
            .find(|figure| figure.quantity == quantity)
    }
}

fn word(fact: &Fact<String>) -> Option<&str> {
    fact.value().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let of = |quantity, mean, low, high| {
            MeasuredFigure {
                quantity,
                mean,
                low,
                high,
            }
            .to_string()
        };
        assert_eq!(
            of(Quantity::Flush, 9_000_000, 8_104_000, 10_240_000),
            "flush ≈ 9.00 ms [8.10, 10.2]"
        );
        assert_eq!(
            of(Quantity::Flush, 999_600, 990_000, 1_010_000),
            "flush ≈ 1.00 ms [0.99, 1.01]"
        );
        assert_eq!(
            of(Quantity::RandomRead, 409_600, 204_800, 819_200),
            "4k random reads ≈ 100 IOPS [50.0, 200]"
        );
        assert_eq!(
            of(Quantity::FirstWrite, 5, 4, 6),
            "first writes ≈ 5.00 B/s [4.00, 6.00]"
        );
        let effect = MeasuredEffect {
            rule: "cache-writethrough".to_owned(),
            workload: "4k-random-write-qd32".to_owned(),
            ratio: 1020,
            low: 970,
            high: 1100,
        };
        assert_eq!(
            effect.to_string(),
            "1.02 [0.97, 1.10] times as fast for 4k-random-write-qd32"
        );
        assert!(effect.refutes());
        assert!(
            !MeasuredEffect {
                high: 1101,
                ..effect
            }
            .refutes()
        );
    }
}
