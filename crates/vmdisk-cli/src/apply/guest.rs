//! The guest of libvirt that is defined on the storage.

use vmdisk::Document;
use vmdisk::model::Domain;
use vmdisk::plan::{Difference, Spec};

use super::program;

/// A guest of libvirt that a run asked for.
pub(super) enum Existing {
    Missing,
    There(Box<Document>),
    /// libvirt does not say.
    Unknown(String),
}

/// The guest as it is defined, or as it runs.
pub(super) fn existing(name: &str, is_inactive: bool) -> Existing {
    let mut argv = vec!["virsh", "dumpxml"];
    argv.extend(is_inactive.then_some("--inactive"));
    argv.extend(["--", name]);
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let answer = match program::ask(&argv) {
        Ok(answer) => answer,
        Err(why) => return Existing::Unknown(why),
    };
    let said = answer.stderr.trim();
    if !answer.is_success {
        let is_missing = ["failed to get domain", "Domain not found"];
        return match is_missing.iter().any(|text| said.contains(text)) {
            true => Existing::Missing,
            false => Existing::Unknown(format!("virsh dumpxml fails: {said}")),
        };
    }
    match vmdisk::read(&answer.stdout) {
        Ok(document) => Existing::There(Box::new(document)),
        Err(failure) => Existing::Unknown(format!("its XML cannot be read: {}", failure.message)),
    }
}

/// The state of the guest of a plan in the words of the report, and why it is no reason to go on.
pub(super) fn state(spec: &Spec, name: &str, planned: &str) -> (&'static str, Option<String>) {
    let existing = match existing(name, true) {
        Existing::Missing => return ("planned", None),
        Existing::Unknown(why) => {
            return (
                "unknown",
                Some(format!(
                    "whether the guest {name} exists is not known: {why}"
                )),
            );
        }
        Existing::There(existing) => existing,
    };
    let differences = match vmdisk::read(planned) {
        Ok(planned) => spec.differences(planned.domain(), existing.domain()),
        Err(failure) => return ("unknown", Some(failure.message)),
    };
    if differences.is_empty() {
        return ("already-done", None);
    }
    let differences = differences.iter().map(|it| {
        let Difference {
            key,
            planned,
            existing,
        } = it;
        format!("\n{key} is {existing}, and the plan has {planned}")
    });
    let differences: String = differences.collect();
    (
        "differs",
        Some(format!(
            "the guest {name} exists and differs from the plan:{differences}"
        )),
    )
}

/// True if the guest runs, and has a file open.
pub(super) fn runs_with(name: &str, path: &str) -> bool {
    let is_running = program::output(&["virsh", "domstate", "--", name])
        .is_some_and(|state| !["shut off", "crashed", ""].contains(&state.trim()));
    let has = |domain: &Domain| {
        let images = domain.disks.iter().filter_map(|disk| disk.backend.image());
        images
            .flat_map(|image| image.chain())
            .any(|image| image.host_path() == Some(path))
    };
    is_running
        && matches!(existing(name, false), Existing::There(document) if has(document.domain()))
}

pub(super) fn define(xml: &str) -> Result<(), String> {
    let argv = ["virsh", "define", "/dev/stdin"].map(str::to_owned);
    let answer = program::answer(&argv, xml)?;
    let failed = || format!("virsh define fails: {}", answer.stderr.trim());
    answer.is_success.then_some(()).ok_or_else(failed)
}
