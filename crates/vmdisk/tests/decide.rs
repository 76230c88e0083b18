//! What is decided for the disks of a guest is never worse than what the guest leaves open.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::collections::BTreeSet;

use vmdisk::plan::ChoiceSource;
use vmdisk::{Facts, Host, Severity, decide, lint, read};

use crate::fixtures::{facts_of, files};

fn findings(report: &[vmdisk::Diagnostic]) -> BTreeSet<(&'static str, Option<usize>)> {
    let severe = report.iter().filter(|it| it.severity >= Severity::Advice);
    let site = |it: &vmdisk::Diagnostic| (it.rule.name, it.disk.as_ref().map(|disk| disk.index));
    severe.map(site).collect()
}

#[test]
fn decisions_bring_no_finding_on_any_host() {
    let facts: Vec<(String, Facts)> = files("facts", ".json")
        .into_iter()
        .map(|path| (path.display().to_string(), facts_of(&path)))
        .collect();
    let guests = ["clean", "healthy", "mistakes", "guests"];
    let guests: Vec<_> = guests
        .iter()
        .flat_map(|folder| files(folder, ".xml"))
        .collect();
    let mut decided = 0;
    let mut faults = Vec::new();
    for path in guests {
        let Ok(document) = read(&std::fs::read_to_string(&path).unwrap()) else {
            continue;
        };
        for (name, facts) in &facts {
            let options = Host::new(facts.clone()).options();
            let before = findings(&lint(&document, &options).diagnostics);
            let decisions = decide(&document, |_| true, &read, &options);
            let after = findings(&lint(&decisions.document, &options).diagnostics);
            // Options that the author set and that exclude each other end, and what they cause then begins.
            let ended: BTreeSet<_> = before.difference(&after).map(|(_, disk)| *disk).collect();
            let new = after
                .difference(&before)
                .filter(|(_, disk)| !ended.contains(disk));
            let new: Vec<_> = new.collect();
            if !new.is_empty() {
                faults.push(format!("{} on {name}: {new:?}", path.display()));
            }
            let again = decide(&decisions.document, |_| true, &read, &options);
            for disk in again
                .disks
                .iter()
                .filter_map(|disk| disk.options.as_ref().ok())
            {
                let open = |it: &&vmdisk::plan::Choice| it.source != ChoiceSource::Asked;
                let open: Vec<_> = disk
                    .choices
                    .iter()
                    .filter(open)
                    .map(|it| it.option)
                    .collect();
                let is_left =
                    |option: &&str| !decisions.not_written.is_empty() || *option == "iothread";
                assert!(
                    open.iter().all(is_left),
                    "{} on {name}: {open:?}",
                    path.display()
                );
            }
            decided += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(decided > 500, "only {decided}");
}
