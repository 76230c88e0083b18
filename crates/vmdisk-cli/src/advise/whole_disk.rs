//! A whole disk as the storage of a guest: the guest overwrites what is on it.

use std::path::Path;

use vmdisk::LintOptions;
use vmdisk::advise::{StorageCandidate, StorageForm, StorageIntent, whole_disks};
use vmdisk::plan::shell_word;
use vmdisk_collect::DeviceState;

use crate::sanitize::line;

/// Looks at the disks in question, so that one that is in use or holds data is left out. What could not be looked at
/// stays not known.
pub(super) fn look(
    intent: &mut StorageIntent,
    options: &LintOptions,
    state: impl Fn(&Path) -> DeviceState,
) {
    for disk in whole_disks(intent, options) {
        let found = match state(Path::new(&disk)) {
            DeviceState::Free => None,
            DeviceState::Used(refused) => {
                let known = refused.refusals.into_iter().find(|it| it.is_known);
                known.map(|it| it.found)
            }
            DeviceState::NotKnown(_) => continue,
        };
        intent.looked_at.insert(disk, found);
    }
}

/// The command that names the signatures on a disk.
fn of_shell(disk: &str) -> String {
    format!("wipefs -n -- {}", shell_word(disk))
}

/// The command that must print nothing before the disk is used, in a line.
pub(super) fn command(candidate: &StorageCandidate) -> Option<String> {
    (candidate.form == StorageForm::WholeDisk)
        .then(|| line(&of_shell(&candidate.place)).into_owned())
}

/// The first line of a spec.
pub(super) fn comment(candidate: &StorageCandidate) -> String {
    let of = |command| format!("# Before the disk is used, this must print nothing: {command}\n");
    command(candidate).map(of).unwrap_or_default()
}

/// The end of a script, which refuses a disk with a signature.
pub(super) fn check(candidate: &StorageCandidate) -> String {
    if candidate.form != StorageForm::WholeDisk {
        return String::new();
    }
    let (command, disk) = (of_shell(&candidate.place), shell_word(&candidate.place));
    format!(
        r#"
# The guest overwrites the whole disk: it must hold nothing.
PATH="${{PATH:-/usr/bin:/bin}}:/usr/sbin:/sbin"
export PATH
found=$({command}) || exit 2
[ -z "$found" ] || {{
    printf 'refused: %s holds data:\n%s\n' {disk} "$found" >&2
    exit 1
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk::advise::advise;
    use vmdisk::model::Bytes;
    use vmdisk_collect::{DeviceCheck, DeviceRefusal, Refused};

    const DISK: &str = "/dev/disk/by-id/ata-A 1";

    fn options() -> LintOptions {
        let facts = "
schema_version: '1.0'
blockdevs:
- {id: sda, dev: '8:0', kind: disk, size: 10737418240, paths: [/dev/sda], by_id: ['/dev/disk/by-id/ata-A 1'],
   partitions: [], holders: [], mounted_at: [], swap: false}
";
        LintOptions::default().host(vmdisk::Host::parse(facts).unwrap())
    }

    fn looked_at(state: &DeviceState) -> (StorageIntent, LintOptions) {
        let mut intent = StorageIntent::new(Bytes::gib(8));
        let options = options();
        look(&mut intent, &options, |path| {
            assert_eq!(path, Path::new(DISK));
            state.clone()
        });
        (intent, options)
    }

    #[test]
    fn a_disk_is_recommended_only_as_what_was_seen_of_it() {
        let refusal = |is_known| DeviceRefusal {
            is_known,
            ..DeviceRefusal::new(DeviceCheck::Signature, "blkid finds TYPE=ext4")
        };
        let refused = |is_known| Refused::one(DISK, refusal(is_known));
        let (intent, options) = looked_at(&DeviceState::Free);
        let kind = advise(&intent, &options).fitting[0].kind.clone();
        assert_eq!(kind, "unused disk, on which no data was found");
        let (intent, options) = looked_at(&DeviceState::NotKnown(refused(false)));
        let kind = advise(&intent, &options).fitting[0].kind.clone();
        assert_eq!(kind, "unused disk; whether it holds data is not known");
        let (intent, options) = looked_at(&DeviceState::Used(refused(true)));
        let advice = advise(&intent, &options);
        assert!(advice.fitting.is_empty());
        assert_eq!(advice.excluded[0].why, "blkid finds TYPE=ext4");
    }

    #[test]
    fn a_script_refuses_a_disk_with_a_signature() {
        let (intent, options) = looked_at(&DeviceState::Free);
        let advice = advise(&intent, &options);
        let best = &advice.fitting[0];
        assert_eq!(
            comment(best),
            format!("# Before the disk is used, this must print nothing: wipefs -n -- '{DISK}'\n")
        );
        let folder = tempfile::tempdir().unwrap();
        let run = |wipefs: &str| {
            vmdisk_testing::write_program(&folder.path().join("wipefs"), wipefs);
            let output = std::process::Command::new("sh")
                .args(["-euc", &check(best)])
                .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), said)
        };
        assert_eq!(
            run("#!/bin/sh\n[ \"$3\" = '/dev/disk/by-id/ata-A 1' ]\n"),
            (Some(0), String::new())
        );
        let (status, said) = run("#!/bin/sh\necho ext4\n");
        assert_eq!(status, Some(1));
        assert_eq!(said, format!("refused: {DISK} holds data:\next4\n"));
        assert_eq!(run("#!/bin/sh\nexit 1\n").0, Some(2));
    }
}
