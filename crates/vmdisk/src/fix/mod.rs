//! Applies fixes until none helps any more, and reverts fixes that make anything worse.

mod failure;
mod judge;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::rules::Applicability;
use vmdisk_model::FieldPath;
use vmdisk_source::{Edit, Span, apply_edits};

use crate::lint::lint_unselected;
use crate::{Diagnostic, Document, LintOptions, LintReport, ReadFailure, read};

pub use failure::{FailedFix, FixFailure};
use judge::{Blame, judge};

/// Which fixes to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixScope {
    /// Only fixes that change nothing but the mistake.
    Safe,
    /// Also fixes with a trade-off.
    SafeAndUnsafe,
}

/// A text after fixing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fixed {
    /// The text.
    pub document: Document,
    /// Findings that remain. One whose fix was undone says so in a note, and offers the fix no more.
    pub report: LintReport,
    /// Titles of the fixed findings, in the order of the fixes.
    pub mended: Vec<String>,
    /// Fixes that were undone, in the order of their places.
    pub failed: Vec<FailedFix>,
}

/// Reads a text again after fixes, with the same other inputs as the first time.
pub type ReadAgain<'r> = &'r dyn Fn(&str) -> Result<Document, ReadFailure>;

/// Bounds on the number of texts that are tried, the lower one for a text that is large. One is enough where no fix
/// fails, and a failing one among `n` is found in about `2 log n`. Fixes that are still left then are not applied.
const ATTEMPTS: [usize; 2] = [8, 128];

/// Bytes of all texts that are tried, where they are more than the least number of attempts.
const MAX_BYTES: usize = 2 << 20;

/// Reads a text, and applies fixes to it as [`fix_document`] does.
///
/// # Errors
/// If `text` cannot be read.
pub fn fix(text: &str, options: &LintOptions, scope: FixScope) -> Result<Fixed, ReadFailure> {
    Ok(fix_document(read(text)?, &read, options, scope))
}

/// Applies the fixes of all findings that count, reads the result with `read_again`, and repeats until no fix is
/// left. Fixes that touch the same bytes wait for the next round.
///
/// A fix is undone, and no other with it, if its finding is still reported afterwards, if the result cannot be read,
/// or if a finding appears that was not there and is not in [`FOLLOW_UPS`](crate::rules::FOLLOW_UPS). Only the
/// document's [own text](Document::own_text) is edited, not the files that it names.
pub fn fix_document(
    document: Document,
    read_again: ReadAgain<'_>,
    options: &LintOptions,
    scope: FixScope,
) -> Fixed {
    let report = lint_unselected(&document, options);
    let [least, most] = ATTEMPTS;
    let attempts_left = (MAX_BYTES / (document.text.len() + 1)).clamp(least, most);
    let mut fixer = Fixer {
        read_again,
        options,
        document,
        report,
        mended: Vec::new(),
        failed: HashMap::new(),
        attempts_left,
    };
    loop {
        let before = fixer.mended.len();
        while fixer.attempts_left > 0 {
            let batch = fixer.choose(scope);
            if batch.is_empty() {
                break;
            }
            fixer.settle(batch);
        }
        // Where others succeeded since, a fix that failed before may help now.
        if fixer.failed.is_empty() || fixer.mended.len() == before || fixer.attempts_left == 0 {
            return fixer.finish();
        }
        fixer.failed.clear();
    }
}

/// A fix that may be applied.
struct Candidate {
    id: FixId,
    edits: Vec<Edit>,
    /// The compared parts of the finding.
    finding: judge::Seen,
}

/// A fix, recognised after edits elsewhere in the text.
type FixId = (&'static str, FieldPath, String);

fn id_of(diagnostic: &Diagnostic) -> FixId {
    (
        diagnostic.rule.name,
        diagnostic.at,
        diagnostic.title.clone(),
    )
}

struct Fixer<'f> {
    read_again: ReadAgain<'f>,
    options: &'f LintOptions,
    document: Document,
    report: LintReport,
    mended: Vec<String>,
    failed: HashMap<FixId, FixFailure>,
    attempts_left: usize,
}

impl Fixer<'_> {
    /// Fixes that did not fail before, as many as do not touch each other's bytes.
    fn choose(&self, scope: FixScope) -> Vec<Candidate> {
        let end = self.document.own_text().len();
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        let mut chosen = Vec::new();
        for diagnostic in &self.report.diagnostics {
            let Some(fix) = &diagnostic.fix else { continue };
            let is_wanted = matches!(
                (fix.applicability, scope),
                (Applicability::Safe, _) | (Applicability::Unsafe, FixScope::SafeAndUnsafe)
            );
            let is_possible = |edit: &Edit| edit.span.end <= end && is_free(&taken, edit.span);
            let is_wanted = is_wanted && self.options.selection.has(diagnostic);
            if !is_wanted || !fix.edits.iter().all(is_possible) {
                continue;
            }
            let id = id_of(diagnostic);
            if self.failed.contains_key(&id) {
                continue;
            }
            let spans = fix.edits.iter().map(|edit| edit.span);
            taken.extend(spans.map(|span| (span.start, span.end)));
            chosen.push(Candidate {
                id,
                edits: fix.edits.clone(),
                finding: judge::Seen::of(diagnostic),
            });
        }
        chosen
    }

    /// Applies fixes, or those of them that do no harm; the others fail, or are left for a later round.
    fn settle(&mut self, mut batch: Vec<Candidate>) {
        while !batch.is_empty() && self.attempts_left > 0 {
            let Blame { guilty, other } = match self.attempt(&batch) {
                Ok((document, report)) => {
                    self.document = document;
                    self.report = report;
                    self.mended
                        .extend(batch.into_iter().map(|candidate| candidate.id.2));
                    return;
                }
                Err(blame) => blame,
            };
            if guilty.len() == batch.len() || batch.len() == 1 {
                let mut sites = HashSet::new();
                let is_alone = |candidate: &Candidate| sites.insert(candidate.finding.disk);
                if batch.iter().all(is_alone) {
                    self.fail(batch, &Blame { guilty, other });
                    return;
                }
                let mut sites = HashSet::new();
                batch.retain(|candidate| sites.insert(candidate.finding.disk));
            } else if guilty.is_empty() {
                // Anyone may be to blame.
                batch.truncate(batch.len() / 2);
            } else {
                let mut nth = 0..;
                batch.retain(|_| nth.next().is_some_and(|nth| !guilty.contains_key(&nth)));
            }
        }
    }

    fn fail(&mut self, batch: Vec<Candidate>, blame: &Blame) {
        for (nth, candidate) in batch.into_iter().enumerate() {
            let why = blame.guilty.get(&nth).or(blame.other.as_ref());
            let why = why.expect("a refused batch of one has a reason");
            self.failed.insert(candidate.id, why.clone());
        }
    }

    /// The document and its report with some fixes, or what is wrong with them.
    fn attempt(&mut self, batch: &[Candidate]) -> Result<(Document, LintReport), Blame> {
        self.attempts_left -= 1;
        let edits: Vec<Edit> = batch
            .iter()
            .flat_map(|candidate| candidate.edits.iter().cloned())
            .collect();
        let unreadable = |why: String| Blame::of_nobody(FixFailure::Unreadable(why));
        let text = apply_edits(self.document.own_text(), &edits)
            .map_err(|conflict| unreadable(conflict.to_string()))?;
        let document = (self.read_again)(&text).map_err(|failure| unreadable(failure.message))?;
        let report = lint_unselected(&document, self.options);
        let seen: Vec<&judge::Seen> = batch.iter().map(|candidate| &candidate.finding).collect();
        judge(&self.report, &report, &seen)?;
        Ok((document, report))
    }

    fn finish(self) -> Fixed {
        let mut report = self.report;
        report.keep(&self.options.selection);
        let mut failed = Vec::new();
        for diagnostic in &mut report.diagnostics {
            let Some(why) = self.failed.get(&id_of(diagnostic)) else {
                continue;
            };
            diagnostic.fix = None;
            diagnostic.notes.push(format!("its fix was undone: {why}"));
            failed.push(FailedFix {
                rule: diagnostic.rule,
                at: diagnostic.at,
                title: diagnostic.title.clone(),
                why: why.clone(),
            });
        }
        Fixed {
            document: self.document,
            report,
            mended: self.mended,
            failed,
        }
    }
}

/// True if no taken edit starts where `span` starts or shares a byte with it; `taken` maps starts to ends.
fn is_free(taken: &BTreeMap<usize, usize>, span: Span) -> bool {
    let before = taken.range(..=span.start).next_back();
    let after = taken.range(span.start..).next();
    before.is_none_or(|(start, end)| *start != span.start && *end <= span.start)
        && after.is_none_or(|(start, _)| *start != span.start && span.end <= *start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [&str; 3] = ["vda", "vdb", "vdc"];

    /// A guest whose disks all drop the flushes of the guest, which has a safe fix.
    fn guest() -> String {
        let disk = |target: &&str| {
            format!(
                "<disk type='file'><driver name='qemu' type='raw' cache='unsafe'/><source file='/srv/{target}'/>\
                 <target dev='{target}' bus='virtio'/></disk>"
            )
        };
        let disks: String = CACHES.iter().map(disk).collect();
        format!("<domain type='kvm'><name>a</name><devices>{disks}</devices></domain>")
    }

    /// Fixes the guest with a reader that turns the text after a fix into another one.
    fn fix_with(spoil: impl Fn(&str) -> String) -> Fixed {
        let document = read(&guest()).unwrap();
        let read_again = |text: &str| read(&spoil(text));
        fix_document(
            document,
            &read_again,
            &LintOptions::default(),
            FixScope::Safe,
        )
    }

    /// The disks whose cache mode was fixed.
    fn fixed_disks(fixed: &Fixed) -> Vec<&'static str> {
        let disks = fixed.document.domain().disks.iter().zip(CACHES);
        disks
            .filter(|(disk, _)| disk.backend.cache == Some(vmdisk_model::CacheMode::Writeback))
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn a_fix_without_effect_is_undone_alone_and_reported() {
        // The second disk cannot be fixed.
        let fixed = fix_with(|text| {
            let (first, rest) = text.split_once("/srv/vda").unwrap();
            let (second, third) = rest.split_once("/srv/vdb").unwrap();
            let second = second.replace("'writeback'", "'unsafe'");
            format!("{first}/srv/vda{second}/srv/vdb{third}")
        });
        assert_eq!(fixed_disks(&fixed), ["vda", "vdc"]);
        assert_eq!(fixed.mended.len(), 2);
        let [failed] = &fixed.failed[..] else {
            panic!("{:?}", fixed.failed)
        };
        assert_eq!(
            (failed.rule.name, &failed.why),
            ("cache-unsafe", &FixFailure::StillReported)
        );
        let left = fixed.report.diagnostics.iter();
        let left: Vec<_> = left
            .filter(|found| found.rule.name == "cache-unsafe")
            .collect();
        assert_eq!(left.len(), 1);
        assert!(left[0].fix.is_none());
        let note = "its fix was undone: the finding is still reported after the fix";
        assert!(left[0].notes.iter().any(|said| said == note));
    }

    #[test]
    fn a_fix_that_leaves_no_readable_text_is_undone_alone() {
        let fixed = fix_with(|text| {
            let (_, rest) = text.split_once("/srv/vdb").unwrap();
            match rest.contains("'writeback'") {
                true => text.replace("</domain>", ""),
                false => text.to_owned(),
            }
        });
        assert_eq!(fixed_disks(&fixed), ["vda", "vdb"]);
        let [failed] = &fixed.failed[..] else {
            panic!("{:?}", fixed.failed)
        };
        assert!(matches!(failed.why, FixFailure::Unreadable(_)));
        assert_eq!(failed.at.disk(), Some(2));
    }

    #[test]
    fn the_fix_of_an_error_stays_where_only_advice_follows_it() {
        // With the property that was meant, the disk has more queues than the guest has vCPUs.
        let text = "qemu-system-x86_64 -blockdev driver=file,filename=/a,node-name=a \
             -device virtio-blk-pci,drive=a,num_queues=4";
        let options = LintOptions::default();
        let fixed = fix_document(read(text).unwrap(), &read, &options, FixScope::Safe);
        assert_eq!(fixed.failed, []);
        assert_eq!(fixed.mended.len(), 2, "{:?}", fixed.mended);
        assert!(fixed.document.text.ends_with("num-queues=1"));
    }

    #[test]
    fn a_fix_that_brings_a_finding_is_undone_alone_wherever_the_finding_is() {
        // Fixing the first disk gives the last a native mode that needs O_DIRECT.
        let fixed = fix_with(|text| {
            let (first, rest) = text.split_once("/srv/vda").unwrap();
            if !first.contains("'writeback'") {
                return text.to_owned();
            }
            let (middle, last) = rest.split_once("/srv/vdb").unwrap();
            let last = last.replacen("type='raw' ", "type='raw' io='native' ", 1);
            format!("{first}/srv/vda{middle}/srv/vdb{last}")
        });
        assert_eq!(fixed_disks(&fixed), ["vdb", "vdc"]);
        let [failed] = &fixed.failed[..] else {
            panic!("{:?}", fixed.failed)
        };
        assert_eq!(failed.at.disk(), Some(0));
        let FixFailure::NewFinding { rule, .. } = &failed.why else {
            panic!("{:?}", failed.why)
        };
        assert_eq!(rule.name, "native-without-direct");
    }

    #[test]
    fn texts_that_are_tried_are_few_where_each_fix_fails() {
        let count = std::cell::Cell::new(0);
        let fixed = fix_with(|text| {
            count.set(count.get() + 1);
            text.replace("'writeback'", "'unsafe'")
        });
        assert_eq!((fixed.mended.len(), fixed.failed.len()), (0, 3));
        assert_eq!(count.get(), 1);
    }
}
