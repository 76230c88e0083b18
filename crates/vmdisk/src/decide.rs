//! The options that disks leave open, with the findings that remain.

use vmdisk_facts::Facts;
use vmdisk_model::{Change, FieldPath};
use vmdisk_plan::{Decided, PlanError, PlanErrors};
use vmdisk_source::apply_edits;

use crate::rules::Fix;
use crate::{Diagnostic, DiskIdentity, Document, LintOptions, ReadAgain, lint, write};

/// The options of disks of a guest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decisions {
    /// The disks, in the order of the document.
    pub disks: Vec<DiskDecision>,
    /// The document with the chosen options; the same document if none could be written into its text.
    pub document: Document,
    /// Chosen options that the text cannot be given by edits.
    pub not_written: Vec<FieldPath>,
}

/// The options of one disk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiskDecision {
    /// The disk.
    pub disk: DiskIdentity,
    /// Its options; or why none are chosen.
    pub options: Result<Decided, PlanErrors>,
    /// What the rules report about the disk with these options.
    pub findings: Vec<Diagnostic>,
}

impl Decisions {
    /// The name of a disk; empty if it is one of other decisions.
    pub fn name(&self, disk: &DiskDecision) -> String {
        let disks = &self.document.domain().disks;
        let name = disks.get(disk.disk.index).map_or("", |disk| disk.name());
        self.document.with_placeholders(name.to_owned())
    }

    /// A disk with its options, as libvirt's XML; `None` if nothing is decided, or a name is none that XML can carry.
    pub fn xml(&self, disk: &DiskDecision) -> Option<String> {
        let decided = disk.options.as_ref().ok()?;
        let xml = write::disk_xml_in(&self.document, disk.disk.index, &decided.disk).ok()?;
        Some(self.document.with_placeholders(xml))
    }
}

/// Chooses the options that the disks of `document` leave open, for the host and the target of the options, and writes
/// them into its text. `is_wanted` selects disks by their numbers. Options that are set are kept, and the rules judge
/// them.
///
/// ```
/// use vmdisk::{LintOptions, decide, read};
///
/// let text = "<disk type='block' device='disk'>
///   <driver name='qemu' type='raw'/>
///   <source dev='/dev/vg0/web1'/>
///   <target dev='vda' bus='virtio'/>
/// </disk>
/// ";
/// let decisions = decide(&read(text)?, |_| true, &read, &LintOptions::default());
/// assert!(decisions.document.text.contains("<driver name='qemu' type='raw' cache='none' io='native'"));
/// let why = &decisions.disks[0].options.as_ref().unwrap().choices[0];
/// assert!(why.reason.starts_with("block devices do direct I/O"));
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
pub fn decide(
    document: &Document,
    is_wanted: impl Fn(usize) -> bool,
    read_again: ReadAgain<'_>,
    options: &LintOptions,
) -> Decisions {
    let nothing = Facts::default();
    let facts = options.facts().unwrap_or(&nothing);
    let guest = document.domain();
    let wanted: Vec<usize> = (0..guest.disks.len())
        .filter(|nth| is_wanted(*nth))
        .collect();
    let decided = vmdisk_plan::decide(guest, &wanted, facts, &options.target);
    let changes = decided
        .iter()
        .flatten()
        .flat_map(|decided| &decided.changes);
    // Each disk with an iothread has the change that makes all of them.
    let mut is_first = true;
    let is_new = |change: &&Change| {
        !matches!(change.at(), FieldPath::Domain(_)) || std::mem::take(&mut is_first)
    };
    let changes: Vec<Change> = changes.filter(is_new).cloned().collect();
    let disk = |(index, options): (&usize, _)| DiskDecision {
        disk: document.disk_identity(*index),
        options: as_written(options, document),
        findings: Vec::new(),
    };
    let mut disks: Vec<DiskDecision> = wanted.iter().zip(decided).map(disk).collect();
    let (written, not_written): (Vec<Change>, Vec<Change>) = changes
        .into_iter()
        .partition(|change| document.can_make(&Fix::safe([change.clone()])));
    let edits = document.edits_of(&Fix::safe(written)).unwrap_or_default();
    let text = apply_edits(document.own_text(), &edits).ok();
    let after = text.and_then(|text| read_again(&text).ok());
    let after = after.unwrap_or_else(|| document.clone());
    for finding in lint(&after, options).diagnostics {
        let nth = finding.disk.as_ref().map(|disk| disk.index);
        let place = disks.binary_search_by_key(&nth, |it| Some(it.disk.index));
        if let Ok(place) = place {
            disks[place].findings.push(finding);
        }
    }
    Decisions {
        disks,
        document: after,
        not_written: not_written.iter().map(Change::at).collect(),
    }
}

/// Options whose texts have the placeholders of a template as they are written. A mistake that quotes one is unknown before
/// the template is filled in.
fn as_written(
    options: Result<Decided, PlanErrors>,
    document: &Document,
) -> Result<Decided, PlanErrors> {
    let Some(quoted) = document.quoted_placeholders() else {
        return options;
    };
    let unknown = |mut error: PlanError| {
        if let Some(name) = quoted.any(&error.message) {
            let why = "is unknown, because a template fills it in";
            error.message = format!("the value of `{name}` {why}");
            error.help = Some("decide the options of the rendered text".to_owned());
        }
        error
    };
    match options {
        Ok(mut decided) => {
            for choice in &mut decided.choices {
                quoted.restore(&mut choice.value);
                quoted.restore(&mut choice.reason);
            }
            Ok(decided)
        }
        Err(errors) => Err(errors.into_iter().map(unknown).collect::<Vec<_>>().into()),
    }
}
