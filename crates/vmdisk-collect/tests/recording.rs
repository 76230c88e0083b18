//! A recording of the running system yields the same facts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vmdisk_collect::{FactGroup, Request, collect};
use vmdisk_facts::capability::CapabilityRow;
use vmdisk_facts::{Fact, Facts, HostIndex, Probe};

/// Collects facts about paths while recording, and again from the recording.
fn both(paths: &[&Path], recording: &Path) -> (Facts, Facts) {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = paths.iter().map(PathBuf::from).collect();
    request.groups = BTreeSet::from([FactGroup::Core, FactGroup::Lvm]);
    request.record = Some(recording.to_owned());
    let found = collect(&request);
    request.record = None;
    request.root = recording.to_owned();
    (found, collect(&request))
}

#[test]
fn a_recording_yields_the_same_facts() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("disk.img");
    fs::write(&image, vec![1; 70_000]).unwrap();
    let link = directory.path().join("link.img");
    std::os::unix::fs::symlink(&image, &link).unwrap();
    let missing = directory.path().join("missing/disk.img");
    let recording = tempfile::tempdir().unwrap();
    let paths = [
        image.as_path(),
        &link,
        &missing,
        Path::new("/"),
        Path::new("/dev/null"),
    ];
    let (found, again) = both(&paths, recording.path());
    assert_eq!(found.errors, []);
    assert_eq!(again.to_json(), found.to_json());
    // The facts come from the recording: the system has changed.
    fs::remove_file(&image).unwrap();
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = recording.path().to_owned();
    request.paths = vec![image.clone()];
    let later = collect(&request);
    assert_eq!(later.files[0].size.value(), Some(&70_000));
    // Images are not copied.
    let copy = recording.path().join(image.strip_prefix("/").unwrap());
    assert_eq!(fs::metadata(copy).unwrap().len(), 0);
}

#[test]
fn missing_directories_of_a_new_image_are_recorded_as_missing() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("a");
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = vec![missing.join("b/disk.img"), missing.clone()];
    let facts = collect(&request);
    let of = |path: &Path| {
        let mut entries = facts.dirs.iter();
        let found = entries.find(|entry| Path::new(&entry.path) == path);
        found.map(|entry| entry.present.clone())
    };
    assert_eq!(of(&missing.join("b")), Some(Fact::Known(false)));
    assert_eq!(of(&missing), Some(Fact::Known(false)));
    assert_eq!(of(directory.path()), Some(Fact::Known(true)));
    let file = facts
        .files
        .iter()
        .find(|file| Path::new(&file.path) == missing);
    assert!(
        file.is_some_and(|file| file.present.is_false()),
        "{facts:?}"
    );
    let index = HostIndex::new(&facts);
    let of_parent = index.nocow(directory.path().join("new.img").to_str().unwrap());
    let image = missing.join("b/disk.img");
    assert_eq!(index.nocow(image.to_str().unwrap()), of_parent);
}

#[test]
fn an_empty_request_repeats_the_request_of_the_recording() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("disk.img");
    fs::write(&image, vec![1; 70_000]).unwrap();
    let recording = tempfile::tempdir().unwrap();
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = vec![image];
    request.groups = FactGroup::ALL.iter().copied().collect();
    // Only the outcome of a trial guest is recorded.
    request.record = Some(recording.path().to_owned());
    let found = collect(&request);
    let mut later = Request::new("2031-01-01T00:00:00Z");
    later.root = recording.path().to_owned();
    assert_eq!(collect(&later).to_json(), found.to_json());
}

#[test]
fn a_qemu_reports_its_capabilities() {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.groups = BTreeSet::from([FactGroup::Core, FactGroup::Programs]);
    let facts = collect(&request);
    let Some(qemu) = facts.newest_qemu().known() else {
        return vmdisk_testing::skipped("needs QEMU");
    };
    let version = qemu.version.clone().known().unwrap();
    let table = vmdisk_facts::capability::TABLE.iter();
    // Drivers of images on a network are packages of their own.
    let is_package = |row: &&CapabilityRow| matches!(row.probe, Probe::BlockDriver(_));
    let table = table.filter(|row| !is_package(row));
    let asked = table.filter_map(|row| Some((row, *qemu.capabilities.get(row.name)?)));
    let asked: Vec<_> = asked.collect();
    let number = asked.len();
    let mut agreeing = 0;
    for (row, has) in asked {
        let is_due = version >= row.since && row.until.is_none_or(|until| version < until);
        // A distribution may omit or backport features, but most must agree with the version.
        agreeing += usize::from(is_due == has);
    }
    assert!(qemu.capabilities.len() > 20, "{:?}", qemu.capabilities);
    assert!(agreeing + 3 >= number, "{:?}", qemu.capabilities);
    assert!(qemu.capabilities["blockdev"]);
}

#[test]
fn a_recording_that_cannot_be_written_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let (found, again) = both(&[Path::new("/")], &file);
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.errors[0].what, "the recording");
    assert!(!again.errors.is_empty());
}

#[test]
fn invalid_answers_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("vmdisk")).unwrap();
    fs::write(directory.path().join("vmdisk/answers.json"), "{").unwrap();
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = directory.path().to_owned();
    let found = collect(&request);
    assert!(
        found
            .errors
            .iter()
            .any(|error| error.what == "/vmdisk/answers.json")
    );
}
