//! Where a new disk can live on a host, in which form, and which of these to take.

mod candidate;
mod check;
mod intent;
mod order;
mod places;
mod wants;

use vmdisk_facts::{Facts, HostIndex};
use vmdisk_model::{AioMode, Bytes, CacheMode, Image};
use vmdisk_plan::{BackendSpec, DiskSpec, GuestSpec, Plan, Spec, facts_after_on, plan_on};

use crate::trace::trace;
use crate::{Host, LintOptions, read, write};

pub use candidate::StorageCandidate;
pub use check::{CheckedPlace, HostCheck, check_host};
pub use intent::{DiskLoad, StorageForm, StorageIntent, Want};
pub use order::{Alternative, StorageAdvice};
pub use places::ExcludedStorage;
use places::{FormOfPlace, StoragePlace};
pub use wants::Mechanism;

/// Compares the places and forms in which a new disk can live on the host of the options.
///
/// Each candidate is planned as [`plan`](vmdisk_plan::plan) plans it, and judged by the rules and by the walk of its I/O
/// path. Equal arguments give equal advice.
///
/// ```
/// use vmdisk::advise::{StorageIntent, Want, advise};
/// use vmdisk::model::Bytes;
/// use vmdisk::{Host, LintOptions};
///
/// let host = Host::parse("
/// schema_version: '1.0'
/// mounts: [{id: m1, point: /srv, fs: f1, options: {nobarrier: false}}]
/// filesystems: [{id: f1, kind: xfs}]
/// dirs: [{path: /srv/img, mount: m1}]
/// ").unwrap();
/// let options = LintOptions::default().host(host);
/// let mut intent = StorageIntent::new(Bytes::gib(10));
/// intent.wants.insert(Want::Snapshots);
/// let advice = advise(&intent, &options);
/// assert_eq!(advice.fitting[0].place, "/srv/img");
/// intent.wants.insert(Want::Checksums);
/// assert!(advise(&intent, &options).fitting.is_empty());
/// ```
pub fn advise(intent: &StorageIntent, options: &LintOptions) -> StorageAdvice {
    let host = options.host.clone().unwrap_or_default();
    let host = host.index();
    let (found, mut excluded) = places::of(intent, host);
    let mut candidates = Vec::new();
    let mut after = None;
    for place in &found {
        for form in place.forms(intent) {
            let forms = vec![form.form];
            match candidate(place, form, intent, host, &mut after, options) {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => excluded.push(ExcludedStorage {
                    place: place.name.clone(),
                    forms,
                    why,
                }),
            }
        }
    }
    order::order(intent, candidates, excluded)
}

/// The whole disks that are in question, by their names. Nothing in the facts is in their way; whether they hold data
/// shows only a look at them.
pub fn whole_disks(intent: &StorageIntent, options: &LintOptions) -> Vec<String> {
    let host = options.host.clone().unwrap_or_default();
    let (found, _) = places::of(intent, host.index());
    let is_disk = |it: &FormOfPlace| it.form == StorageForm::WholeDisk;
    let disks = found
        .into_iter()
        .filter(|it| it.forms(intent).iter().any(is_disk));
    disks.map(|place| place.name).collect()
}

/// Plans and judges a form of a place. `after` has the facts after another plan.
fn candidate(
    place: &StoragePlace<'_>,
    FormOfPlace { form, backend }: FormOfPlace,
    intent: &StorageIntent,
    host: &HostIndex<'_>,
    after: &mut Option<Facts>,
    options: &LintOptions,
) -> Result<StorageCandidate, String> {
    let taken = match (form, place.free) {
        (StorageForm::WholeDisk, Some(size)) => Bytes(size),
        _ => form.taken(intent.size, place.abilities),
    };
    let target = &options.target;
    let mut spec = Spec::new(vec![DiskSpec::new(backend)]);
    spec.guest = intent.os.map(|os| GuestSpec {
        os: Some(os),
        ..GuestSpec::default()
    });
    let is_unsafe = intent.is_scratch && !intent.wants.contains(&Want::Migration);
    spec.disks[0].cache = is_unsafe.then_some(CacheMode::Unsafe);
    let planned = plan_on(&spec, host, target);
    let planned = planned.map_err(|errors| errors[0].message.clone())?;
    if let Some(why) = wants::in_vain(place, form, &planned) {
        return Err(why);
    }
    let host_after = Host::new(facts_after_on(host, &planned, after.take()));
    let mut options = options.clone().host(host_after);
    // It is what may be lost.
    let asked = is_unsafe.then(|| "cache-unsafe".to_owned());
    options.ignored.extend(asked);
    let xml = write::libvirt_xml(&planned.domain).map_err(|error| error.to_string())?;
    let document = read(&xml).map_err(|failure| failure.message)?;
    let traced = trace(&document, &options).disks.into_iter().next();
    let traced = traced.ok_or("its I/O path is not known")?;
    set_options(&mut spec.disks[0], &planned);
    let gives = |want: &Want| (*want, wants::of(*want, place, form, &planned, &traced.path));
    let backend = &planned.domain.disks[0].backend;
    let path = backend.image().and_then(Image::host_path);
    let (cache, io) = (
        backend.cache.map(CacheMode::as_str),
        backend.aio.map(AioMode::as_str),
    );
    let index = options.index();
    let here = path.zip(index);
    let here = here.map_or_else(Vec::new, |(path, host)| host.measured_on(path));
    let (mut measured, mut unused) = (Vec::new(), Vec::new());
    for it in index.into_iter().flat_map(|it| &it.facts().measured) {
        let is_here = here.iter().any(|here| std::ptr::eq(*here, it));
        let why = match is_here {
            true => it.unlike(form.word(), cache, io),
            false => Some("measured on other storage".to_owned()),
        };
        match why {
            None => measured.push(it.clone()),
            Some(why) => unused.push((it.clone(), why)),
        }
    }
    let findings = traced.findings.into_iter().map(|(_, finding)| finding);
    *after = options.host.and_then(Host::into_facts);
    Ok(StorageCandidate {
        place: place.name.clone(),
        kind: place.kind.clone(),
        form,
        spec,
        gives: Want::ALL.iter().map(gives).collect(),
        loss: traced.path.loss,
        findings: findings.filter(|it| it.disk.is_some()).collect(),
        taken,
        free: place.free.map(Bytes),
        most_free: place.most_free.map(Bytes),
        redundancy: place.redundancy.clone(),
        is_removable: place.is_removable,
        reserve: Bytes(place.reserve),
        is_mount_point: place.is_mount_point,
        is_closed: place.is_closed,
        is_memory: place.filesystem.is_some_and(|it| it.kind.is_volatile()),
        is_fast: place.is_fast,
        is_nvme: place.is_nvme,
        measured,
        unused,
        plan: planned,
    })
}

/// Sets the options of a spec that its plan has chosen, so that they do not depend on the facts any more.
fn set_options(spec: &mut DiskSpec, plan: &Plan) {
    let disk = &plan.domain.disks[0];
    spec.cache = disk.backend.cache;
    spec.io = disk.backend.aio;
    spec.discard = disk.backend.discard;
    spec.error_policy = disk.frontend.error_policy;
    spec.read_error_policy = disk.frontend.read_error_policy;
    let bytes = |size: Option<u32>| size.map(|size| Bytes(size.into()));
    spec.discard_granularity = bytes(disk.frontend.discard_granularity);
    spec.logical_block_size = bytes(disk.frontend.logical_block_size);
    spec.physical_block_size = bytes(disk.frontend.physical_block_size);
    let nocow = plan.choices.iter().find(|choice| choice.option == "nocow");
    let nocow = nocow.map(|choice| choice.value == "true");
    match &mut spec.backend {
        BackendSpec::Raw(raw) => raw.nocow = nocow,
        BackendSpec::Qcow2(qcow2) => qcow2.nocow = nocow,
        _ => {}
    }
}
