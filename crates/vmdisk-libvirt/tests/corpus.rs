//! libvirt's own test data, which lives outside this repository (`VMDISK_CORPUS`).
// A test may look at files and print; the crate may not.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use vmdisk_libvirt::read;

/// The corpus, or nothing and a line that says so.
fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("VMDISK_CORPUS");
    if path.is_none() {
        println!("skipped: VMDISK_CORPUS is not set");
    }
    path.map(PathBuf::from)
}

/// Every XML file of a directory, with its text; a corpus without files is no corpus.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no XML in {}", directory.display());
    files
}

#[test]
fn nothing_that_libvirt_accepts_is_reported_and_all_of_it_is_written_back() {
    let Some(corpus) = corpus() else { return };
    let mut disks = 0;
    let mut wrong = Vec::new();
    for (name, text) in files(&corpus.join("qemuxmlconf")) {
        let document = match read(&text) {
            Ok(document) => document,
            Err(failure) => {
                wrong.push(format!("{name}: {failure}"));
                continue;
            }
        };
        disks += document.domain.disks.len();
        for problem in &document.problems {
            wrong.push(format!("{name}: {} at {:?}", problem.message, problem.span));
        }
        let written = document.write().unwrap();
        let again = read(&written).unwrap();
        if again.domain != document.domain || again.write().unwrap() != written {
            wrong.push(format!("{name}: differs when written and read again"));
        }
        if !again.problems.is_empty() {
            wrong.push(format!("{name}: what is written has problems"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(disks > 500, "only {disks} disks: is this the corpus?");
}

#[test]
fn what_libvirt_refuses_is_read_all_the_same() {
    let Some(corpus) = corpus() else { return };
    let mut read_count = 0;
    for (name, text) in files(&corpus.join("qemuxmlconf-refused")) {
        match read(&text) {
            Ok(document) => {
                read_count += 1;
                let written = document.write().unwrap();
                let again = read(&written).unwrap();
                assert_eq!(again.domain, document.domain, "{name}");
            }
            Err(failure) => panic!("{name}: {failure}"),
        }
    }
    assert!(read_count > 20, "only {read_count} files");
}

#[test]
fn a_disk_snippet_is_read_without_a_problem() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    for (name, text) in files(&corpus.join("qemublock-xml2json")) {
        match read(&text) {
            Ok(document) => wrong.extend(
                document
                    .problems
                    .iter()
                    .map(|problem| format!("{name}: {}", problem.message)),
            ),
            Err(failure) => wrong.push(format!("{name}: {failure}")),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
