//! Replays the committed inputs of the fuzz targets, and holds each to its bound of memory.
//!
//! A program of its own, because its allocator counts. `cargo xtask fuzz` looks for inputs that fail here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;

use vmdisk_tests::fixtures;
use vmdisk_tests::fuzz::allocator::{Counting, most_held};
use vmdisk_tests::fuzz::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest input that is committed.
const LARGEST: usize = 64 * 1024;

fn inputs(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fixtures().join("fuzz").join(target.name);
    let mut inputs: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            (path, input)
        })
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_committed_input_holds_what_must_hold_in_bounded_memory() {
    for target in TARGETS {
        let inputs = inputs(target);
        assert!(
            inputs.len() >= 6,
            "{}: {} inputs",
            target.name,
            inputs.len()
        );
        for (path, input) in inputs {
            assert!(input.len() <= LARGEST, "{} is large", path.display());
            let result = std::panic::catch_unwind(|| target.run(&input));
            assert!(result.is_ok(), "{}", path.display());
        }
    }
}

#[test]
fn the_allocator_counts() {
    let held = most_held(|| drop(std::hint::black_box(vec![0_u8; 123_456])));
    assert!((123_456..130_000).contains(&held), "{held}");
}

#[test]
fn every_folder_of_inputs_has_its_target() {
    for entry in std::fs::read_dir(fixtures().join("fuzz")).unwrap() {
        let name = entry.unwrap().file_name();
        let name = name.to_string_lossy();
        assert!(
            TARGETS.iter().any(|target| target.name == name),
            "{name} has no target"
        );
    }
}
