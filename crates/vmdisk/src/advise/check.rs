//! What the rules say of a host itself: of a new disk in each place that would keep one.

use std::collections::{BTreeMap, HashSet};

use vmdisk_facts::HostIndex;
use vmdisk_model::{AioMode, Bytes, Discard, DomainField, FieldPath};
use vmdisk_plan::{BackendSpec, DiskSpec, Spec, facts_after_on, plan_on};
use vmdisk_source::{Position, Span};

use crate::lint::lint_unselected;
use crate::{
    Diagnostic, Document, Host, LintOptions, LintReport, Severity, TextPlace, read, write,
};

use super::intent::{StorageForm, StorageIntent};
use super::places::{self, ExcludedStorage, FormOfPlace, StoragePlace};

/// The field of findings about a host: nobody wrote the disk.
const WHOLE: FieldPath = FieldPath::Domain(DomainField::Domain);

/// Size of the disk that each place is checked with.
const SIZE: Bytes = Bytes::gib(10);

/// A place of a host that would keep a new disk, with what the rules say of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckedPlace {
    /// A directory, volume group, thin pool or dataset.
    pub place: String,
    /// What the place is, in a word.
    pub noun: &'static str,
    /// The guest with a new disk there that was checked.
    pub document: Document,
    /// The findings about the place, without a place in a text.
    pub report: LintReport,
}

/// What the rules say of a host itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostCheck {
    /// The findings that several places share.
    pub shared: Vec<Diagnostic>,
    /// The checked places.
    pub places: Vec<CheckedPlace>,
    /// Places that could not be checked, with the deciding fact.
    pub excluded: Vec<ExcludedStorage>,
}

/// Checks the host of the options itself: in each place that would keep a new disk, the guest with the plainest one.
///
/// A finding counts if the rules report it only with the facts and the versions of the host. Equal arguments give equal
/// results.
///
/// ```
/// use vmdisk::Host;
/// use vmdisk::advise::check_host;
///
/// let host = Host::parse("
/// schema_version: '1.0'
/// mounts: [{id: m1, point: /srv, fs: f1, options: {nobarrier: true}}]
/// filesystems: [{id: f1, kind: xfs}]
/// dirs: [{path: /srv/img, mount: m1}]
/// ").unwrap();
/// let check = check_host(&host.options());
/// let [place] = check.places.as_slice() else { panic!() };
/// assert_eq!((place.noun, place.place.as_str()), ("directory", "/srv/img"));
/// assert!(place.report.diagnostics.iter().any(|found| found.rule.name == "mount-nobarrier"));
/// ```
pub fn check_host(options: &LintOptions) -> HostCheck {
    let host = options.host.clone().unwrap_or_default();
    let host = host.index();
    let mut intent = StorageIntent::new(SIZE);
    intent.name = "new-disk".to_owned();
    let (found, excluded) = places::of_host(&intent, host);
    let mut check = HostCheck {
        excluded,
        ..HostCheck::default()
    };
    for place in found {
        match checked(&place, &intent, host, options) {
            Ok(checked) => check.places.push(checked),
            Err(why) => {
                let excluded = places::excluded_place(place.name.clone(), why);
                check.excluded.push(excluded);
            }
        }
    }
    check.share();
    check
}

impl HostCheck {
    /// Takes the findings that several places have out of them, each with the names of its places.
    fn share(&mut self) {
        let mut at: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        for CheckedPlace { place, report, .. } in &self.places {
            for found in &report.diagnostics {
                let places = at.entry((found.rule.name, found.title.clone()));
                places.or_default().push(place.clone());
            }
        }
        let is_own = |found: &Diagnostic| at[&(found.rule.name, found.title.clone())].len() == 1;
        for place in &mut self.places {
            let found = std::mem::take(&mut place.report.diagnostics);
            let (own, shared) = found.into_iter().partition(is_own);
            place.report.diagnostics = own;
            self.shared.extend::<Vec<Diagnostic>>(shared);
        }
        let mut seen = HashSet::new();
        self.shared
            .retain(|found| seen.insert((found.rule.name, found.title.clone())));
        for found in &mut self.shared {
            let places = &at[&(found.rule.name, found.title.clone())];
            let note = format!("it is so for new disks in {}", places.join(", "));
            found.notes.push(note);
        }
    }
}

/// A disk that is asked for in a place.
struct Asked {
    spec: DiskSpec,
    /// True if programs other than vmdisk make such disks, too: its findings are about the place. The others are advice
    /// for those who want such a disk.
    is_plain: bool,
}

/// Checks the plainest disks of a place; the first is the planned disk.
fn checked(
    place: &StoragePlace<'_>,
    intent: &StorageIntent,
    host: &HostIndex<'_>,
    options: &LintOptions,
) -> Result<CheckedPlace, String> {
    let free = place.free.filter(|_| place.is_mount_point);
    if let Some(free) = free.map(Bytes).filter(|free| *free < intent.size) {
        let (needed, free) = (intent.size.rounded(), free.rounded());
        return Err(format!(
            "a new disk of {needed} has no room, {free} are free"
        ));
    }
    let mut all: Option<(Document, LintReport)> = None;
    for FormOfPlace { form, backend } in place.forms(intent) {
        if !matches!(form, StorageForm::Raw | StorageForm::Qcow2) && place.noun() == "directory" {
            continue;
        }
        for asked in asked(backend) {
            let judged = judged(&asked, host, options);
            match (&mut all, judged) {
                // The facts rule out what was asked for, such as a version.
                (Some(_), Err(_)) => {}
                (None, Err(why)) => return Err(why),
                (None, Ok(first)) => all = Some(first),
                (Some((_, known)), Ok((_, further))) => add(known, further),
            }
        }
    }
    let (document, mut report) = all.ok_or("the facts do not say what a disk there would be")?;
    options.selection.set_severities(&mut report.diagnostics);
    report.keep(&options.selection);
    Ok(CheckedPlace {
        place: place.name.clone(),
        noun: place.noun(),
        document,
        report,
    })
}

/// The disks that a place is checked with. The planner avoids what the host does badly, so the others ask for it.
fn asked(backend: BackendSpec) -> [Asked; 3] {
    let planned = DiskSpec::new(backend);
    let mut plain = planned.clone();
    plain.discard = Some(Discard::Unmap);
    match &mut plain.backend {
        BackendSpec::Raw(raw) => raw.nocow = Some(false),
        BackendSpec::Qcow2(qcow2) => qcow2.nocow = Some(false),
        _ => {}
    }
    let mut by_io_uring = planned.clone();
    by_io_uring.io = Some(AioMode::IoUring);
    [(planned, true), (plain, true), (by_io_uring, false)]
        .map(|(spec, is_plain)| Asked { spec, is_plain })
}

/// Plans a disk and its guest, and keeps the findings that depend on the host.
fn judged(
    asked: &Asked,
    host: &HostIndex<'_>,
    options: &LintOptions,
) -> Result<(Document, LintReport), String> {
    let spec = Spec::new(vec![asked.spec.clone()]);
    let planned = plan_on(&spec, host, &options.target);
    let planned = planned.map_err(|errors| errors[0].message.clone())?;
    let xml = write::libvirt_xml(&planned.domain).map_err(|error| error.to_string())?;
    let document = read(&xml).map_err(|failure| failure.message)?;
    let after = Host::new(facts_after_on(host, &planned, None));
    let on_host = options.clone().host(after).compares_guests(true);
    let anywhere = LintOptions::default()
        .policy(options.policy)
        .rules(options.rules.clone());
    let mut report = lint_unselected(&document, &on_host);
    let anywhere = lint_unselected(&document, &anywhere).diagnostics;
    let key = |it: &Diagnostic| (it.rule.name, it.title.clone());
    let anywhere: HashSet<_> = anywhere.iter().map(key).collect();
    let name = format!("`{}`", planned.domain.disks[0].name());
    for list in [&mut report.diagnostics, &mut report.allowed] {
        list.retain(|it| !anywhere.contains(&key(it)));
        list.iter_mut()
            .for_each(|it| of_host(it, &name, asked.is_plain));
    }
    for missed in &mut report.not_checked {
        missed.at = WHOLE;
        missed.further.clear();
    }
    Ok((document, report))
}

/// Turns a finding about the disk of this name into one about its host.
fn of_host(found: &mut Diagnostic, name: &str, is_plain: bool) {
    if !is_plain {
        found.severity = found.severity.min(Severity::Advice);
    }
    for related in std::mem::take(&mut found.related) {
        found.notes.push(related.label);
    }
    // A label belongs to a place in a text.
    found.notes.splice(0..0, found.label.take());
    for text in found.texts() {
        *text = text.replace(name, "a new disk");
    }
    found.disk = None;
    found.fix = None;
    found.is_about_host = true;
    let start = Position { line: 1, column: 1 };
    found.at = WHOLE;
    found.place = TextPlace {
        span: Span::empty(0),
        start,
        end: start,
        is_exact: true,
        breadcrumb: "host".to_owned(),
    };
}

/// Adds what a further disk of a place shows.
fn add(known: &mut LintReport, further: LintReport) {
    let lists = [
        (&mut known.diagnostics, further.diagnostics),
        (&mut known.allowed, further.allowed),
    ];
    for (known, further) in lists {
        let is_known = |it: &Diagnostic, known: &[Diagnostic]| {
            let mut known = known.iter();
            known.any(|other| (other.rule, &other.title) == (it.rule, &it.title))
        };
        for it in further {
            if !is_known(&it, known) {
                known.push(it);
            }
        }
    }
    let missed: HashSet<&str> = known.rules_not_checked().into_iter().collect();
    let further = further.not_checked.into_iter();
    let further: Vec<_> = further
        .filter(|it| !missed.contains(it.rule.name))
        .collect();
    known.not_checked.extend(further);
    known.not_checked.sort_by_key(|it| it.rule.name);
}
