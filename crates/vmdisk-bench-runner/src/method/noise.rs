//! Other activity on the machine, and the speed of the machine without a disk.

use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::random::Random;

/// Other activity on the machine, where known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Share of the last 10 s in which a task waited for a processor; read only before a run, because
    /// the run itself raises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<f64>,
    /// Share of the last 10 s in which a task waited for I/O; read only before a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<f64>,
    /// Share of processor time in use while the run was idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Share of the time since the previous check that the hypervisor took from this machine (steal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Number of thermal throttling events since the previous check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// Number of times that the cgroup's processor limit stopped this program since the previous check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<u64>,
    /// I/O requests per second of other programs, while the run was idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_iops: Option<f64>,
    /// Arrays that are resynchronizing or being checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resyncing: Vec<String>,
}

/// Maximum pressure before a run.
const MAX_PRESSURE: f64 = 0.20;
/// Maximum processor use of other programs.
const MAX_BUSY: f64 = 0.20;
/// Maximum I/O of other programs.
const MAX_OTHER_IOPS: f64 = 200.0;
/// Maximum steal time.
const MAX_STEAL: f64 = 0.01;

impl Noise {
    /// Returns the disturbances of a measurement; empty if the machine is quiet.
    pub fn disturbances(&self) -> Vec<String> {
        let Noise {
            cpu_pressure,
            io_pressure,
            busy,
            steal,
            throttled,
            limited,
            other_iops,
            resyncing,
        } = self;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut found = Vec::new();
        let mut share = |value: &Option<f64>, most: f64, text: &dyn Fn(f64) -> String| {
            if let Some(value) = value.filter(|value| *value > most) {
                found.push(text(value));
            }
        };
        share(cpu_pressure, MAX_PRESSURE, &|value| {
            format!(
                "tasks waited for a processor {} of the time",
                percent(value)
            )
        });
        share(io_pressure, MAX_PRESSURE, &|value| {
            format!("tasks waited for I/O {} of the time", percent(value))
        });
        share(busy, MAX_BUSY, &|value| {
            format!("other programs used {} of the processors", percent(value))
        });
        share(steal, MAX_STEAL, &|value| {
            format!("the hypervisor took {} of the time (steal)", percent(value))
        });
        if let Some(times) = throttled.filter(|times| *times > 0) {
            found.push(format!("processors were throttled for heat {times} times"));
        }
        if let Some(times) = limited.filter(|times| *times > 0) {
            found.push(format!(
                "the cgroup's processor limit stopped the run {times} times"
            ));
        }
        if let Some(iops) = other_iops.filter(|iops| *iops > MAX_OTHER_IOPS) {
            found.push(format!(
                "other programs sent {iops:.0} I/O requests per second"
            ));
        }
        for array in resyncing {
            found.push(format!("{array} is resynchronizing or being checked"));
        }
        found
    }
}

/// The run's view of the machine; tests can replace it.
pub trait MachineMonitor {
    /// Returns the duration of the run, without the time for which it was stopped.
    fn elapsed(&mut self) -> Duration;
    /// Checks for other activity; `is_before_run` is true once.
    fn noise(&mut self, is_before_run: bool) -> Noise;
    /// Returns the speed of a fixed arithmetic loop, in steps per second.
    fn control(&mut self) -> f64;
}

/// The machine of this process.
#[derive(Debug)]
pub struct HostMonitor {
    began: Instant,
    before: Duration,
    last: Option<(CpuTimes, u64)>,
    /// The cgroup's throttle count at the previous check.
    limited: Option<u64>,
}

impl HostMonitor {
    /// Starts counting time.
    pub fn new() -> Self {
        HostMonitor::after(Duration::ZERO)
    }

    /// Continues counting for a run that has already taken this long.
    pub fn after(before: Duration) -> Self {
        HostMonitor {
            began: Instant::now(),
            before,
            last: None,
            limited: None,
        }
    }
}

impl Default for HostMonitor {
    fn default() -> Self {
        HostMonitor::new()
    }
}

/// Observation time during which the run is idle.
const WATCHED: Duration = Duration::from_millis(250);
/// Duration of the arithmetic loop.
const CONTROLLED: Duration = Duration::from_millis(100);

impl MachineMonitor for HostMonitor {
    fn elapsed(&mut self) -> Duration {
        self.before + self.began.elapsed()
    }

    fn noise(&mut self, is_before_run: bool) -> Noise {
        let (before, requests_before) = (CpuTimes::read(), disk_requests());
        std::thread::sleep(WATCHED);
        let (after, requests_after) = (CpuTimes::read(), disk_requests());
        let limited = times_limited();
        let throttled = throttle_count();
        let pressure = |resource: &str| {
            let text = std::fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
            some_avg10(&text)
        };
        let since = after.as_ref().zip(self.last.as_ref());
        let noise = Noise {
            cpu_pressure: is_before_run.then(|| pressure("cpu")).flatten(),
            io_pressure: is_before_run.then(|| pressure("io")).flatten(),
            busy: before
                .as_ref()
                .zip(after.as_ref())
                .and_then(|(before, after)| after.busy_since(before)),
            steal: since.and_then(|(after, (before, _))| after.steal_since(before)),
            throttled: self
                .last
                .as_ref()
                .map(|(_, count)| throttled.saturating_sub(*count)),
            limited: limited
                .zip(self.limited)
                .map(|(now, before)| now.saturating_sub(before)),
            other_iops: requests_before
                .zip(requests_after)
                .map(|(before, after)| after.saturating_sub(before) as f64 / WATCHED.as_secs_f64()),
            resyncing: resyncing(Path::new("/sys/block")),
        };
        self.limited = limited;
        self.last = after.map(|times| (times, throttled));
        noise
    }

    fn control(&mut self) -> f64 {
        let mut random = Random::new(1);
        let mut steps = 0_u64;
        let began = Instant::now();
        loop {
            for _ in 0..1_000 {
                std::hint::black_box(random.next());
            }
            steps += 1_000;
            let elapsed = began.elapsed();
            if elapsed >= CONTROLLED {
                return steps as f64 / elapsed.as_secs_f64();
            }
        }
    }
}

/// The first line of `/proc/stat`.
#[derive(Clone, Debug, PartialEq)]
struct CpuTimes {
    total: u64,
    idle: u64,
    steal: u64,
}

impl CpuTimes {
    fn read() -> Option<Self> {
        CpuTimes::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .filter_map(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else {
            return None;
        };
        Some(CpuTimes {
            total: user + nice + system + idle + iowait + irq + softirq + steal,
            idle: idle + iowait,
            steal,
        })
    }

    fn share(part: u64, whole: u64) -> Option<f64> {
        (whole > 0).then(|| part as f64 / whole as f64)
    }

    fn busy_since(&self, before: &CpuTimes) -> Option<f64> {
        let total = self.total.saturating_sub(before.total);
        let idle = self.idle.saturating_sub(before.idle);
        CpuTimes::share(total.saturating_sub(idle), total)
    }

    fn steal_since(&self, before: &CpuTimes) -> Option<f64> {
        let total = self.total.saturating_sub(before.total);
        CpuTimes::share(self.steal.saturating_sub(before.steal), total)
    }
}

/// Parses `some avg10=` of a file in `/proc/pressure` as a share.
fn some_avg10(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let number = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?;
    Some(number.parse::<f64>().ok()? / 100.0)
}

/// Counts the requests completed by the disks of this machine; stacked devices count once.
fn disk_requests() -> Option<u64> {
    requests_in(&std::fs::read_to_string("/proc/diskstats").ok()?, &|name| {
        Path::new("/sys/block").join(name).join("device").exists()
    })
}

fn requests_in(diskstats: &str, is_disk: &dyn Fn(&str) -> bool) -> Option<u64> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        is_disk(fields.get(2)?).then_some(number(3)? + number(7)?)
    };
    let counts: Vec<u64> = diskstats.lines().filter_map(of_line).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// Returns how often the cgroup's processor limit stopped this program; `None` without a limit.
fn times_limited() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new("/sys/fs/cgroup").join(group).join("cpu.stat");
    limited_in(&std::fs::read_to_string(path).ok()?)
}

fn limited_in(cpu_stat: &str) -> Option<u64> {
    let mut lines = cpu_stat.lines();
    lines
        .find_map(|line| line.strip_prefix("nr_throttled "))?
        .trim()
        .parse()
        .ok()
}

/// Returns the number of thermal throttling events since boot.
fn throttle_count() -> u64 {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu") else {
        return 0;
    };
    let counts = entries.flatten().filter_map(|entry| {
        let path = entry.path().join("thermal_throttle/core_throttle_count");
        std::fs::read_to_string(path)
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    });
    counts.sum()
}

/// Returns the `md` arrays that are resynchronizing or being checked.
fn resyncing(blocks: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(blocks) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let action = std::fs::read_to_string(entry.path().join("md/sync_action")).ok()?;
            (action.trim() != "idle" && action.trim() != "frozen")
                .then(|| entry.file_name().to_string_lossy().into_owned())
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_parsed() {
        let text = "some avg10=25.00 avg60=64.93 avg300=44.03 total=5663000191\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_avg10(text), Some(0.25));
        assert_eq!(some_avg10(""), None);
        let before = CpuTimes::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1").unwrap();
        let after = CpuTimes::parse("cpu  130 0 60 840 60 0 0 10 30 0\n").unwrap();
        assert_eq!(after.busy_since(&before), Some(0.5));
        assert_eq!(after.steal_since(&before), Some(0.1));
        assert_eq!(CpuTimes::parse("cpu  1 2\n"), None);
        let disks = "254 0 vda 100 0 0 0 50 0 0 0\n254 1 vda1 90 0 0 0 40 0 0 0\n7 0 loop0 5 0 0 0 5 0 0 0\n";
        assert_eq!(requests_in(disks, &|name| name == "vda"), Some(150));
        assert_eq!(requests_in("", &|_| true), None);
        let stat = "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 8\n";
        assert_eq!(limited_in(stat), Some(3));
        assert_eq!(limited_in("usage_usec 9\n"), None);
    }

    #[test]
    fn an_array_being_checked_is_a_disturbance() {
        let root = tempfile::tempdir().unwrap();
        for (name, action) in [("md0", "check\n"), ("md1", "idle\n")] {
            let folder = root.path().join(name).join("md");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("sync_action"), action).unwrap();
        }
        let noise = Noise {
            resyncing: resyncing(root.path()),
            busy: Some(0.5),
            steal: Some(0.001),
            limited: Some(2),
            other_iops: Some(900.0),
            ..Noise::default()
        };
        assert_eq!(
            noise.disturbances(),
            [
                "other programs used 50 % of the processors",
                "the cgroup's processor limit stopped the run 2 times",
                "other programs sent 900 I/O requests per second",
                "md0 is resynchronizing or being checked"
            ]
        );
        assert!(Noise::default().disturbances().is_empty());
    }

    #[test]
    fn this_machine_can_be_monitored() {
        let mut machine = HostMonitor::new();
        assert!(machine.control() > 1_000_000.0);
        assert!(
            machine.noise(true).steal.is_none(),
            "there was no previous check"
        );
        let noise = machine.noise(false);
        assert!(noise.cpu_pressure.is_none());
        assert!(noise.busy.is_none_or(|busy| (0.0..=1.0).contains(&busy)));
    }
}
