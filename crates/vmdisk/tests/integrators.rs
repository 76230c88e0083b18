//! Disks as other programs write them, with the findings that `docs/decide.md` names.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read fixtures, and fail by panicking"
)]

use std::collections::BTreeSet;
use std::path::Path;

use vmdisk::model::{AioMode, CacheMode};
use vmdisk::{Host, LintOptions, decide, lint, read};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn btrfs() -> Host {
    Host::parse(&text("fixtures/facts/btrfs-checksums-6.1.json")).unwrap()
}

/// The names in backticks.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_configuration_has_the_findings_of_the_guide() {
    let (page, host) = (text("docs/decide.md"), btrfs());
    let rows = page
        .lines()
        .filter_map(|line| line.split_once("](../fixtures/integrators/"));
    let mut seen = 0;
    for (_, row) in rows {
        let (file, cells) = row.split_once(')').unwrap();
        let options = match file.contains("btrfs") {
            true => host.options(),
            false => LintOptions::default(),
        };
        let document = read(&text(&format!("fixtures/integrators/{file}"))).unwrap();
        let found = lint(&document, &options).diagnostics;
        let found: BTreeSet<String> = found.iter().map(|it| it.rule.name.to_owned()).collect();
        let findings = cells.trim_end_matches(" |").rsplit('|').next().unwrap();
        assert_eq!(found, names(findings), "{file}");
        seen += 1;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/integrators");
    assert_eq!(seen, std::fs::read_dir(folder).unwrap().count());
}

#[test]
fn ours_for_the_disk_on_btrfs_has_no_finding_about_its_cache() {
    let theirs = text("fixtures/integrators/kubevirt-nova-btrfs.xml");
    let open = theirs.replace(" cache='none' io='native'", "");
    let host = btrfs();
    let decisions = decide(&read(&open).unwrap(), |_| true, &read, &host.options());
    let decided = decisions.disks[0].options.as_ref().unwrap();
    let backend = &decided.disk.backend;
    assert_eq!(
        (backend.cache, backend.aio),
        (Some(CacheMode::Writeback), Some(AioMode::Threads))
    );
    let mut rules = decisions.disks[0].findings.iter().map(|it| it.rule.name);
    assert!(!rules.any(|rule| rule.starts_with("cache-") || rule == "btrfs-dio-csum-corruption"));
}
