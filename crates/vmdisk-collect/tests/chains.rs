//! Backing and data files: collected on request, however the chain ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use vmdisk_collect::{Request, collect};
use vmdisk_facts::{Fact, Facts};

/// Builds a qcow2 image of version 3 with a backing file and its format.
fn qcow2(backing: &str, format: &str) -> Vec<u8> {
    let mut image = vec![0; 4 * 65536];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\x00\x00\x00\x03");
    put(8, &200u64.to_be_bytes());
    put(16, &(backing.len() as u32).to_be_bytes());
    put(20, &16u32.to_be_bytes());
    put(24, &65536u64.to_be_bytes());
    put(36, &1u32.to_be_bytes());
    put(40, &(3u64 * 65536).to_be_bytes());
    put(48, &65536u64.to_be_bytes());
    put(56, &1u32.to_be_bytes());
    put(96, &4u32.to_be_bytes());
    put(100, &104u32.to_be_bytes());
    put(104, &[0xe2, 0x79, 0x2a, 0xca]);
    put(108, &(format.len() as u32).to_be_bytes());
    put(112, format.as_bytes());
    put(200, backing.as_bytes());
    image
}

/// Collects the facts of `top` in a folder, with its chain.
fn facts(folder: &Path, is_followed: bool) -> Facts {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    let top = folder.join("top");
    if is_followed {
        request.chains.push(top.clone());
    }
    request.paths.push(top);
    collect(&request)
}

/// Returns the names of the inspected files, with true if the file exists.
fn names(facts: &Facts) -> Vec<(String, bool)> {
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    facts
        .files
        .iter()
        .map(|file| (name(&file.path), file.present == Fact::Known(true)))
        .collect()
}

fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn told(expected: &[(&str, bool)]) -> Vec<(String, bool)> {
    expected
        .iter()
        .map(|(name, present)| ((*name).to_owned(), *present))
        .collect()
}

#[test]
fn a_chain_is_followed_on_request_down_to_a_missing_file() {
    let folder = folder(&[
        ("top", qcow2("middle", "qcow2")),
        ("middle", qcow2("gone", "qcow2")),
    ]);
    assert_eq!(names(&facts(folder.path(), false)), told(&[("top", true)]));
    assert_eq!(
        names(&facts(folder.path(), true)),
        told(&[("gone", false), ("middle", true), ("top", true)])
    );
}

#[test]
fn a_chain_ends_at_an_image_opened_as_raw() {
    let folder = folder(&[
        ("top", qcow2("guests", "raw")),
        ("guests", qcow2("secret", "raw")),
        ("secret", vec![1; 512]),
    ]);
    assert_eq!(
        names(&facts(folder.path(), true)),
        told(&[("guests", true), ("top", true)])
    );
}

#[test]
fn a_loop_ends() {
    let folder = folder(&[("top", qcow2("b", "qcow2")), ("b", qcow2("top", "qcow2"))]);
    assert_eq!(
        names(&facts(folder.path(), true)),
        told(&[("b", true), ("top", true)])
    );
}

#[test]
fn a_chain_of_endlessly_new_names_ends() {
    let folder = folder(&[("top", qcow2("x/../top", "qcow2"))]);
    std::fs::create_dir(folder.path().join("x")).unwrap();
    let facts = facts(folder.path(), true);
    assert!(facts.files.len() <= 201, "{}", facts.files.len());
}

#[test]
fn the_length_of_a_chain_is_limited() {
    let mut files: Vec<(String, Vec<u8>)> = (0..300)
        .map(|depth| {
            (
                format!("{depth}"),
                qcow2(&format!("{}", depth + 1), "qcow2"),
            )
        })
        .collect();
    files.push(("top".to_owned(), qcow2("0", "qcow2")));
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let folder = folder(&files);
    assert_eq!(facts(folder.path(), true).files.len(), 201);
}
