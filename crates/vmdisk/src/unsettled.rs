//! Fixes of a disk whose format is in doubt.

use std::collections::BTreeSet;

use crate::rules::Finding;

/// The rule that reports a format which the image does not have. Only the user knows which of the two is right.
const IN_DOUBT: &str = "format-mismatch";

/// Takes back the fixes of a disk until its format is settled: discards, for example, would reach the bytes of an image
/// that the guest treats as its disk.
pub(crate) fn take_back_fixes(findings: &mut [Finding]) {
    let in_doubt = findings.iter().filter(|it| it.rule.name == IN_DOUBT);
    let disks: BTreeSet<usize> = in_doubt.filter_map(|it| it.at.disk()).collect();
    for finding in findings {
        let is_in_doubt = |disk| disks.contains(&disk);
        if finding.at.disk().is_some_and(is_in_doubt) && finding.fix.take().is_some() {
            let note = format!("there is no fix until the format is settled ({IN_DOUBT})");
            finding.details_mut().notes.push(note.into());
        }
    }
}
