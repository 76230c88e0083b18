//! Backing chains of the real qemu-img, walked by it and by this crate.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

use std::path::{Path, PathBuf};

use crate::support::agree::read;
use crate::support::qemu;
use serde_json::Value;
use vmdisk_image::chain::{Chain, End, Found, RecordedFormat, Resolution, ResolvedName, Top, walk};
use vmdisk_image::{ImageFormat, Name};

/// Walks from a file, by paths relative to `directory`; identity is the canonical path.
fn chain(directory: &Path, file: &str, format: Option<ImageFormat>) -> Chain<PathBuf> {
    let identity = |name: &str| std::fs::canonicalize(directory.join(name));
    let top = Top {
        identity: identity(file).unwrap(),
        location: Name::from(file),
        header: read(directory, file),
        format,
    };
    walk(top, |reference| {
        let ResolvedName::Path(path) = &reference.place else {
            return Resolution::NotFollowed {
                reason: "not a file".into(),
            };
        };
        let name = path.as_str().unwrap();
        match identity(name) {
            Ok(identity) => Resolution::Found(Box::new(Found {
                identity,
                location: path.clone(),
                header: read(directory, name),
            })),
            Err(error) => Resolution::Missing {
                reason: error.to_string(),
            },
        }
    })
}

#[test]
fn a_chain_through_directories_and_links_is_walked_as_qemu_walks_it() {
    if !qemu::is_installed() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path();
    for sub in ["images", "images/deep", "base"] {
        std::fs::create_dir(directory.join(sub)).unwrap();
    }
    qemu::create(directory, "raw", "", &["base/base.img", "1M"]);
    let overlay = |file: &str, backing: &str, format: &str| {
        qemu::create(directory, "qcow2", "", &["-b", backing, "-F", format, file]);
    };
    overlay("base/one.qcow2", "base.img", "raw");
    overlay("images/two.qcow2", "../base/one.qcow2", "qcow2");
    overlay("images/deep/three.qcow2", "./../two.qcow2", "qcow2");
    let absolute = directory.join("images/deep/three.qcow2");
    overlay("images/four.qcow2", absolute.to_str().unwrap(), "qcow2");
    std::os::unix::fs::symlink("images/four.qcow2", directory.join("link.qcow2")).unwrap();
    overlay("top.qcow2", "images/four.qcow2", "qcow2");

    for top in [
        "top.qcow2",
        "./top.qcow2",
        "images/../top.qcow2",
        "images/four.qcow2",
        "link.qcow2",
    ] {
        let output = qemu::run(
            directory,
            &["info", "-U", "--backing-chain", "--output=json", top],
        );
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let infos: Value = serde_json::from_slice(&output.stdout).unwrap();
        let files: Vec<&str> = infos
            .as_array()
            .unwrap()
            .iter()
            .map(|info| info["filename"].as_str().unwrap())
            .collect();
        let chain = chain(directory, top, Some(ImageFormat::Qcow2));
        let places: Vec<&str> = chain
            .links
            .iter()
            .map(|link| link.location.as_str().unwrap())
            .collect();
        assert_eq!(places, files, "{top}");
        assert_eq!(chain.end, End::Base, "{top}");
        assert!(
            chain.links.iter().all(|link| !link.format_differs()),
            "{top}"
        );
    }
}

#[test]
fn qemu_finds_the_same_loops_and_missing_files() {
    if !qemu::is_installed() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path();
    qemu::create(directory, "qcow2", "", &["a.qcow2", "1M"]);
    for (file, backing) in [("b.qcow2", "a.qcow2"), ("c.qcow2", "b.qcow2")] {
        qemu::create(
            directory,
            "qcow2",
            "",
            &["-b", backing, "-F", "qcow2", file],
        );
    }
    qemu::succeed(
        directory,
        &[
            "rebase",
            "-q",
            "-u",
            "-b",
            "./b.qcow2",
            "-F",
            "qcow2",
            "a.qcow2",
        ],
    );
    let walked = chain(directory, "c.qcow2", Some(ImageFormat::Qcow2));
    assert_eq!((walked.links.len(), walked.end), (3, End::Loop { to: 1 }));
    let output = qemu::run(directory, &["info", "-U", "--backing-chain", "c.qcow2"]);
    assert!(!output.status.success(), "qemu-img walks a loop");
    qemu::succeed(
        directory,
        &[
            "rebase",
            "-q",
            "-u",
            "-b",
            "gone.qcow2",
            "-F",
            "qcow2",
            "a.qcow2",
        ],
    );
    let walked = chain(directory, "c.qcow2", Some(ImageFormat::Qcow2));
    assert_eq!(walked.links.len(), 3);
    assert!(
        matches!(walked.end, End::Missing { place: ResolvedName::Path(path), .. } if path.as_bytes() == b"gone.qcow2")
    );
}

#[test]
fn a_format_that_is_recorded_wrongly_is_seen_and_ends_the_chain_as_in_qemu() {
    if !qemu::is_installed() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path();
    qemu::create(directory, "raw", "", &["base.img", "1M"]);
    qemu::create(
        directory,
        "qcow2",
        "",
        &["-b", "base.img", "-F", "raw", "middle.qcow2"],
    );
    qemu::create(
        directory,
        "qcow2",
        "",
        &["-b", "middle.qcow2", "-F", "qcow2", "top.qcow2"],
    );
    // qcow2 recorded as raw: the base is not followed.
    qemu::succeed(
        directory,
        &[
            "rebase",
            "-q",
            "-u",
            "-b",
            "middle.qcow2",
            "-F",
            "raw",
            "top.qcow2",
        ],
    );
    let walked = chain(directory, "top.qcow2", Some(ImageFormat::Qcow2));
    assert_eq!((walked.links.len(), &walked.end), (2, &End::Base));
    assert!(walked.links[1].format_differs());
    assert_eq!(
        walked.links[1].recorded,
        RecordedFormat::Known(ImageFormat::Raw)
    );
    let output = qemu::run(
        directory,
        &[
            "info",
            "-U",
            "--backing-chain",
            "--output=json",
            "top.qcow2",
        ],
    );
    let infos: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(infos.as_array().unwrap().len(), 2);
    assert_eq!(infos[1]["format"], "raw");
    // raw recorded as qcow2: QEMU does not open it.
    qemu::succeed(
        directory,
        &[
            "rebase",
            "-q",
            "-u",
            "-b",
            "base.img",
            "-F",
            "qcow2",
            "top.qcow2",
        ],
    );
    let walked = chain(directory, "top.qcow2", Some(ImageFormat::Qcow2));
    assert_eq!((walked.links.len(), &walked.end), (2, &End::NotOpened));
    let output = qemu::run(directory, &["info", "-U", "--backing-chain", "top.qcow2"]);
    assert!(!output.status.success());
}

#[test]
fn the_parent_of_a_vmdk_is_opened_as_vmdk() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "vmdk", "", &["base.vmdk", "4M"]);
    let backing = ["-b", "base.vmdk", "-F", "vmdk", "top.vmdk"];
    qemu::create(directory, "vmdk", "", &backing);
    let opens = || qemu::run(directory, &["info", "--backing-chain", "top.vmdk"]).status;
    let walked = || chain(directory, "top.vmdk", None);
    assert!(opens().success());
    assert_eq!(
        walked().links[1].recorded,
        RecordedFormat::Known(ImageFormat::Vmdk)
    );
    assert_eq!(walked().end, End::Base);
    // QEMU does not probe the parent.
    qemu::create(directory, "qcow2", "", &["base.vmdk", "4M"]);
    assert!(!opens().success());
    assert!(walked().links[1].format_differs());
    assert_eq!(walked().end, End::NotOpened);
}
