//! Changes to the host are reverted, even if the run was killed: on the queue of a loop device.
//!
//! Needs root and loop devices. Without them each test prints the reason and passes; with `VMDISK_REAL=require` it fails.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use vmdisk_bench_runner::host_changes::{HostChange, HostChanges, QueueSetting, revert_left_over};
use vmdisk_facts::DeviceNumber;
use vmdisk_testing::{LoopDevice, needed};

struct Loop {
    _device: LoopDevice,
    number: DeviceNumber,
    _directory: tempfile::TempDir,
}

impl Loop {
    fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let device = LoopDevice::new(&directory.path().join("disk"), 16 << 20, &[])?;
        let number = fs::metadata(device.path())
            .map_err(|error| error.to_string())?
            .rdev();
        Ok(Self {
            _device: device,
            number: DeviceNumber {
                major: rustix::fs::major(number),
                minor: rustix::fs::minor(number),
            },
            _directory: directory,
        })
    }

    fn setting(&self, name: &str) -> String {
        let path = format!("/sys/dev/block/{}/queue/{name}", self.number);
        fs::read_to_string(path).unwrap().trim().to_owned()
    }
}

fn device(test: &str) -> Option<Loop> {
    needed(Loop::new().map_err(|reason| format!("{test}: {reason}")))
}

/// Returns a scheduler other than the current one.
fn other_scheduler(device: &Loop) -> Option<String> {
    let all = device.setting("scheduler");
    all.split(' ')
        .find(|name| !name.starts_with('['))
        .map(str::to_owned)
}

#[test]
fn a_scheduler_is_reverted_with_the_settings_that_the_kernel_changed() {
    let Some(device) = device("a_scheduler_is_set_and_taken_back") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("state");
    let path = format!("/sys/dev/block/{}/queue/nr_requests", device.number);
    let Some(other) = other_scheduler(&device) else {
        vmdisk_testing::skipped_even_if_required("this kernel has one scheduler");
        return;
    };
    let _ = fs::write(&path, "77");
    let before: Vec<String> = ["scheduler", "nr_requests", "read_ahead_kb"]
        .map(|name| device.setting(name))
        .into();
    let mut changes = HostChanges::begin(&folder).unwrap();
    changes
        .make(HostChange::queue(device.number, QueueSetting::Scheduler, &other).unwrap())
        .unwrap();
    changes
        .make(HostChange::queue(device.number, QueueSetting::ReadAheadKb, "1236").unwrap())
        .unwrap();
    assert!(device.setting("scheduler").contains(&format!("[{other}]")));
    assert_eq!(device.setting("read_ahead_kb"), "1236");
    let outcome = changes.revert();
    assert_eq!(outcome.done.len(), 2, "{outcome:?}");
    let after: Vec<String> = ["scheduler", "nr_requests", "read_ahead_kb"]
        .map(|name| device.setting(name))
        .into();
    assert_eq!(after, before);
    assert!(revert_left_over(&folder).done.is_empty());
    fs::remove_dir(&folder).expect("nothing stays behind");
}

#[test]
fn changes_of_a_killed_run_are_reverted_by_the_next_start() {
    let Some(device) = device("what_a_killed_run_changed") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("state");
    let before = device.setting("read_ahead_kb");
    let mut changes = HostChanges::begin(&folder).unwrap();
    changes
        .make(HostChange::queue(device.number, QueueSetting::ReadAheadKb, "1236").unwrap())
        .unwrap();
    assert!(revert_left_over(&folder).done.is_empty(), "its run lives");
    assert_eq!(device.setting("read_ahead_kb"), "1236");
    let journal = fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    // As after kill -9: the file exists, but its lock is gone.
    let text = fs::read(&journal).unwrap();
    std::mem::forget(changes);
    let copy = folder.join("1-0.jsonl");
    fs::write(&copy, text).unwrap();
    fs::remove_file(&journal).unwrap();
    let outcome = revert_left_over(&folder);
    assert_eq!(outcome.done.len(), 1, "{outcome:?}");
    assert_eq!(device.setting("read_ahead_kb"), before);
    assert!(!Path::new(&copy).exists());
}

#[test]
fn an_interrupted_revert_is_finished_by_the_next_start() {
    let Some(device) = device("a_run_that_was_killed_while_it_took_back") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("state");
    let Some(other) = other_scheduler(&device) else {
        vmdisk_testing::skipped_even_if_required("this kernel has one scheduler");
        return;
    };
    let queue = |name: &str| format!("/sys/dev/block/{}/queue/{name}", device.number);
    fs::write(queue("nr_requests"), "77").unwrap();
    let change = HostChange::queue(device.number, QueueSetting::Scheduler, &other).unwrap();
    let mut changes = HostChanges::begin(&folder).unwrap();
    changes.make(change).unwrap();
    // The scheduler is reverted, but not yet the settings that the kernel changed with it.
    fs::write(queue("scheduler"), "none").unwrap();
    assert_ne!(device.setting("nr_requests"), "77");
    assert_eq!(changes.revert().done.len(), 1);
    assert_eq!(device.setting("nr_requests"), "77");
}

#[test]
fn a_later_change_by_another_program_is_kept() {
    let Some(device) = device("what_somebody_set_since_then_is_left_alone") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("state");
    let mut changes = HostChanges::begin(&folder).unwrap();
    changes
        .make(HostChange::queue(device.number, QueueSetting::ReadAheadKb, "1236").unwrap())
        .unwrap();
    let path = format!("/sys/dev/block/{}/queue/read_ahead_kb", device.number);
    fs::write(path, "244").unwrap();
    assert!(changes.revert().done.is_empty());
    assert_eq!(device.setting("read_ahead_kb"), "244");
}
