//! libvirt's own test images, where `VMDISK_CORPUS` says where its test data is: what libvirt found in each, and at the
//! end of which chain.
//!
//! Nothing of the corpus is copied here; its expectations are read from it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests read files, stop at a failure and say what they skip"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::counting::{Counting, File};
use vmdisk_image::chain::{Chain, End, Found, RecordedFormat, Resolution, ResolvedName, Top, walk};
use vmdisk_image::{
    BackingReference, DefectKind, Effect, Header, ImageFormat, MAX_BYTES_READ, Name, RawContent,
    probe,
};

/// The corpus' part for storage; `None` with a line where it is not asked for.
fn corpus() -> Option<PathBuf> {
    let Some(root) = std::env::var_os("VMDISK_CORPUS") else {
        eprintln!("skipped: VMDISK_CORPUS is not set");
        return None;
    };
    let path = Path::new(&root).join("virstorage");
    assert!(
        path.join("images").is_dir(),
        "VMDISK_CORPUS is set, and there is no {}",
        path.display()
    );
    Some(path)
}

fn header(path: &Path) -> Header {
    let mut input = Counting::new(File(std::fs::File::open(path).unwrap()));
    let header = probe(&mut input).unwrap();
    assert!(input.bytes_read <= MAX_BYTES_READ);
    header
}

/// The directory libvirt's expectations are written for.
const SOURCE: &str = "ABS_SRCDIR/virstoragetestdata/images/";

/// Links that libvirt's test makes when it runs, and what they lead to.
const LINKS: [(&str, &str); 2] = [
    ("sub/link1", "qcow2_raw-raw-reldir.qcow2"),
    (
        "sub/link2",
        "qcow2_qcow2-qcow2-symlink_raw-raw-reldir.qcow2",
    ),
];

/// The file behind a location of the expectations; `..` is taken out as the kernel does it where no link is a directory.
fn file(images: &Path, location: &str) -> Option<PathBuf> {
    let relative = location.strip_prefix(SOURCE)?;
    let mut parts: Vec<&str> = Vec::new();
    for part in relative.split('/') {
        match part {
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let clean = parts.join("/");
    let target = LINKS
        .iter()
        .find(|(link, _)| *link == clean)
        .map_or(clean.as_str(), |(_, target)| target);
    Some(images.join(target)).filter(|path| path.is_file())
}

fn chain(images: &Path, location: &str, format: Option<ImageFormat>) -> Chain<PathBuf> {
    let path = file(images, location).unwrap();
    let top = Top {
        header: header(&path),
        identity: path,
        location: location.into(),
        format,
    };
    walk(top, |reference| match &reference.place {
        ResolvedName::Path(location) => match file(images, location.as_str().unwrap()) {
            Some(path) => Resolution::Found(Box::new(Found {
                header: header(&path),
                identity: path,
                location: location.clone(),
            })),
            None => Resolution::Missing {
                reason: "no such file".into(),
            },
        },
        place @ (ResolvedName::WorkingDirectory(_)
        | ResolvedName::Protocol(_)
        | ResolvedName::Json(_)
        | ResolvedName::Unresolvable) => Resolution::NotFollowed {
            reason: format!("{place:?}"),
        },
    })
}

/// One image of an expectation: its lines, by key.
type Block = BTreeMap<String, String>;

fn blocks(text: &str) -> Vec<Block> {
    text.split("\n\n")
        .map(|block| {
            block
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
                .collect::<Block>()
        })
        .filter(|block| !block.is_empty())
        .collect()
}

fn value<'a>(block: &'a Block, key: &str) -> Option<&'a str> {
    block
        .get(key)
        .map(String::as_str)
        .filter(|value| *value != "<null>")
}

#[test]
fn every_image_of_the_corpus_reads_without_a_refusal() {
    let Some(corpus) = corpus() else { return };
    let mut count = 0;
    for entry in std::fs::read_dir(corpus.join("images")).unwrap() {
        let path = entry.unwrap().path();
        let header = header(&path);
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = match name.as_str() {
            "raw" => ImageFormat::Raw,
            "qed_raw-raw-relative" => ImageFormat::Qed,
            _ => ImageFormat::Qcow2,
        };
        assert_eq!(header.format(), expected, "{name}");
        let refused: Vec<_> = header
            .defects()
            .iter()
            .filter(|defect| defect.effect() == Effect::Refused)
            .map(|defect| &defect.kind)
            .collect();
        match name.as_str() {
            // Its data file's name is empty: QEMU needs another one.
            "datafile-emptystr.qcow2" => assert_eq!(refused, [&DefectKind::DataFileMissing]),
            _ => assert!(refused.is_empty(), "{name}: {refused:?}"),
        }
        if let Header::Raw(guess) = header {
            assert_eq!(guess.content, RawContent::Zero, "{name}");
        }
        count += 1;
    }
    assert!(
        count > 10,
        "{count} images: the corpus is there and has too few"
    );
}

#[test]
fn chains_of_the_corpus_end_where_libvirt_found_the_end() {
    let Some(corpus) = corpus() else { return };
    let images = corpus.join("images");
    let mut compared = 0;
    for entry in std::fs::read_dir(corpus.join("out")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (chain_text, data_file_text) = match text.split_once("dataFileRaw:") {
            Some((before, after)) => (before, Some(after.lines().next().unwrap().trim())),
            None => (text.as_str(), None),
        };
        let blocks = blocks(chain_text);
        let top = value(&blocks[0], "path").unwrap();
        // Directories are not images, and some files exist only while libvirt's test runs.
        if file(&images, top).is_none() {
            assert!(
                name.starts_with("directory-") || top.starts_with("ABS_BUILDDIR"),
                "{name}"
            );
            continue;
        }
        let format = ImageFormat::from_libvirt_name(blocks[0]["format"].as_bytes());
        compare(&name, &chain(&images, top, format), &blocks, data_file_text);
        compared += 1;
    }
    assert!(compared >= 14, "{compared} expectations compared");
}

fn compare(name: &str, chain: &Chain<PathBuf>, blocks: &[Block], data_file: Option<&str>) {
    let local = blocks
        .iter()
        .filter(|block| block["type"] == "file")
        .count();
    assert_eq!(chain.links.len(), local, "{name}: {chain:?}");
    for (index, (link, block)) in chain.links.iter().zip(blocks).enumerate() {
        assert_eq!(link.location.as_str(), value(block, "path"), "{name}");
        let opened = link.opened_as().unwrap();
        assert_eq!(opened.libvirt_name(), value(block, "format"), "{name}");
        // Opened as raw, nobody reads a header.
        if opened == ImageFormat::Raw {
            assert_eq!(
                (value(block, "backingStoreRaw"), &*block["capacity"]),
                (None, "0"),
                "{name}"
            );
            continue;
        }
        let backing = link.header.backing();
        let recorded = backing.map(|backing| backing.reference.name().to_string());
        // libvirt leaves out the protocol of a local file.
        let plain = recorded
            .as_deref()
            .map(|name| name.strip_prefix("file:").unwrap_or(name));
        assert_eq!(plain, value(block, "backingStoreRaw"), "{name}");
        let format = match backing {
            None => "none(0)",
            Some(backing) if backing.implied == Some(ImageFormat::Raw) => "raw(1)",
            Some(backing) => match backing.format.and_then(Name::as_str) {
                None => "<null>(-1)",
                // A protocol driver's name is one of a format without a header.
                Some("raw" | "file" | "nbd") => "raw(1)",
                Some("qcow2") => "qcow2(14)",
                Some(other) => panic!("{name}: {other}"),
            },
        };
        assert_eq!(block["backingStoreRawFormat"], format, "{name}");
        assert_eq!(
            link.header.virtual_size().unwrap().to_string(),
            block["capacity"],
            "{name}"
        );
        assert_eq!(
            link.header.is_encrypted(),
            block["encryption"] != "0",
            "{name}"
        );
        if let (Some(backing), Some(next)) = (backing, blocks.get(index + 1)) {
            let relative = match backing.reference {
                BackingReference::Relative(name) => name.as_str(),
                BackingReference::Absolute(_)
                | BackingReference::Json(_)
                | BackingReference::Protocol { .. } => None,
            };
            assert_eq!(relative, value(next, "relPath"), "{name}");
        }
    }
    match blocks.get(local) {
        None => assert_eq!(chain.end, End::Base, "{name}"),
        Some(block) => {
            assert_eq!(block["type"], "network", "{name}");
            let End::NotFollowed {
                place: ResolvedName::Protocol(remote),
                ..
            } = &chain.end
            else {
                panic!("{name}: {:?}", chain.end)
            };
            let remote = remote.as_str().unwrap();
            for key in ["path", "protocol", "hostname"] {
                assert!(
                    remote.contains(&block[key]),
                    "{name}: {remote} has no {}",
                    block[key]
                );
            }
        }
    }
    let last = chain.links.last().unwrap();
    let opened = last.opened_as() == Some(ImageFormat::Qcow2);
    let found = if let (Header::Qcow2(header), true) = (&last.header, opened) {
        header.data_file.as_ref()
    } else {
        None
    };
    assert_eq!(
        found.and_then(|file| file.name().as_str()),
        data_file,
        "{name}"
    );
}

#[test]
fn broken_chains_of_the_corpus_are_broken_where_libvirt_says() {
    let Some(corpus) = corpus() else { return };
    let images = corpus.join("images");
    let end = |name: &str| {
        let chain = chain(
            &images,
            &format!("{SOURCE}{name}"),
            Some(ImageFormat::Qcow2),
        );
        (chain.links.len(), chain.end)
    };
    assert_eq!(end("loop-self.qcow2"), (1, End::Loop { to: 0 }));
    assert_eq!(end("loop-1.qcow2"), (2, End::Loop { to: 0 }));
    assert_eq!(end("loop-2.qcow2"), (2, End::Loop { to: 0 }));
    let (links, missing) = end("qcow2_qcow2-missing.qcow2");
    assert_eq!(links, 1);
    assert!(
        matches!(
            missing,
            End::Missing {
                place: ResolvedName::Path(_),
                ..
            }
        ),
        "{missing:?}"
    );
    // Nothing recorded, all the way down: QEMU probes, libvirt refuses.
    let chain = chain(
        &images,
        &format!("{SOURCE}qcow2_qcow2-auto_qcow2-auto.qcow2"),
        Some(ImageFormat::Qcow2),
    );
    let recorded: Vec<&RecordedFormat> =
        chain.links[1..].iter().map(|link| &link.recorded).collect();
    assert_eq!(recorded, [&RecordedFormat::None, &RecordedFormat::None]);
    assert_eq!(chain.end, End::Base);
}
