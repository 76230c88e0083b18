//! Other choices of the options that a spec leaves open.

use vmdisk::model::{AioMode, Bytes, CacheMode, DetectZeroes, Discard, Domain, Firmware};
use vmdisk::plan::{
    BackendSpec, BusSpec, DiskSpec, GuestSpec, GuestType, HugePagesSpec, IoThreadCount,
    IoThreadSpec, MediaSpec, Plan, Spec, Step, plan,
};
use vmdisk::{Diagnostic, Target};

use super::host::Host;
use super::{Linted, linted};

/// Another choice that avoids a finding and causes no other, if there is one.
///
/// A choice with which the rule lacks an input does not avoid its finding.
pub(crate) fn without(
    spec: &Spec,
    host: &Host,
    target: &Target,
    avoided: &Diagnostic,
    (planned, result): (&Plan, &Linted),
) -> Option<String> {
    let about = |diagnostic: &Diagnostic| {
        let disk = diagnostic.disk.as_ref().map(|disk| disk.index);
        (diagnostic.rule.name, disk)
    };
    let others: Vec<_> = result
        .found
        .iter()
        .map(about)
        .filter(|one| *one != about(avoided))
        .collect();
    let gaps = |result: &Linted| {
        let of_rule = |name: &&&str| **name == avoided.rule.name;
        result.not_checked.iter().filter(of_rule).count()
    };
    // Most choices lead to a guest that another one led to. It is linted once: the result depends on nothing else.
    let mut tried = vec![(planned.domain.clone(), planned.steps.clone())];
    let mut avoids = |other: &Spec| {
        let Ok(plan) = plan(other, &host.facts, target) else {
            return false;
        };
        let is_same =
            |(domain, steps): &(Domain, Vec<Step>)| *domain == plan.domain && *steps == plan.steps;
        if tried.iter().any(is_same) {
            return false;
        }
        let other = linted(&plan, host, target);
        tried.push((plan.domain, plan.steps));
        let mut found = other.found.iter().map(about);
        gaps(&other) <= gaps(result) && found.all(|one| others.contains(&one))
    };
    let mut specs = guests(spec);
    match &avoided.disk {
        Some(disk) => specs.extend(disks(spec, disk.index)),
        None => specs.extend((0..spec.disks.len()).flat_map(|index| disks(spec, index))),
    }
    specs.iter().find(|other| avoids(other)).map(Spec::to_yaml)
}

/// The spec with another guest around its disks.
fn guests(spec: &Spec) -> Vec<Spec> {
    let open = spec.guest.clone().unwrap_or_default();
    let mut guests: Vec<GuestSpec> = Vec::new();
    if open.guest_type.is_none() {
        guests.extend(GuestType::ALL.iter().map(|word| GuestSpec {
            guest_type: Some(*word),
            ..open.clone()
        }));
    }
    if open.iothreads.is_none() {
        guests.extend([0, 1, 4].map(|count| GuestSpec {
            iothreads: Some(IoThreadCount::Number(count)),
            ..open.clone()
        }));
    }
    if open.hugepages.is_none() {
        let pages = [
            HugePagesSpec::No,
            HugePagesSpec::DefaultSize,
            HugePagesSpec::Size(Bytes(2 << 20)),
        ];
        guests.extend(pages.map(|pages| GuestSpec {
            hugepages: Some(pages),
            ..open.clone()
        }));
    }
    if open.firmware.is_none() {
        guests.extend(Firmware::ALL.iter().map(|firmware| GuestSpec {
            firmware: Some(*firmware),
            ..open.clone()
        }));
    }
    let with = |guest| Spec {
        guest: Some(guest),
        ..spec.clone()
    };
    guests.into_iter().map(with).collect()
}

/// The spec with one of its disks otherwise.
fn disks(spec: &Spec, index: usize) -> Vec<Spec> {
    let mut specs = Vec::new();
    let mut change = |change: &dyn Fn(&mut DiskSpec)| {
        let mut other = spec.clone();
        change(&mut other.disks[index]);
        specs.push(other);
    };
    let open = &spec.disks[index];
    // Whatever is asked for stays; the others take each of their values, the cache and the way to the
    // kernel together.
    for cache in values(open.cache, CacheMode::ALL) {
        for io in values(open.io, AioMode::ALL) {
            change(&|disk| (disk.cache, disk.io) = (cache, io));
        }
    }
    for discard in values(open.discard, Discard::ALL) {
        for detect_zeroes in values(open.detect_zeroes, DetectZeroes::ALL) {
            change(&|disk| (disk.discard, disk.detect_zeroes) = (discard, detect_zeroes));
        }
    }
    let sizes = [Bytes(512), Bytes(4096)];
    for logical in values(open.logical_block_size, &sizes) {
        for physical in values(open.physical_block_size, &sizes) {
            change(&|disk| {
                (disk.logical_block_size, disk.physical_block_size) = (logical, physical);
            });
        }
    }
    // An emulated bus has no such findings because it is slower than all that they are about.
    let is_disk = matches!(open.media, None | Some(MediaSpec::Disk));
    if is_disk {
        for bus in values(open.bus, &[BusSpec::Virtio, BusSpec::VirtioScsi]) {
            change(&|disk| disk.bus = bus);
        }
    }
    if open.iothread.is_none() {
        for iothread in [IoThreadSpec::Auto, IoThreadSpec::Number(1)] {
            change(&|disk| disk.iothread = Some(iothread.clone()));
        }
    }
    for queues in values(open.queues, &[1, 4]) {
        change(&|disk| disk.queues = queues);
    }
    for switch in [true, false] {
        change(&|disk| match &mut disk.backend {
            BackendSpec::Raw(raw) if raw.size.is_some() => {
                raw.nocow.get_or_insert(switch);
            }
            BackendSpec::Qcow2(qcow2) if qcow2.size.is_some() => {
                qcow2.nocow.get_or_insert(switch);
            }
            BackendSpec::LvmThin(thin) if thin.pool_size.is_some() => {
                thin.zero.get_or_insert(switch);
            }
            BackendSpec::Raw(_)
            | BackendSpec::Qcow2(_)
            | BackendSpec::LvmThin(_)
            | BackendSpec::Lvm(_)
            | BackendSpec::Device(_)
            | BackendSpec::VhostUserBlk(_)
            | BackendSpec::Network(_)
            | BackendSpec::Zvol(_)
            | BackendSpec::Seed(_)
            | BackendSpec::Nvme(_)
            | BackendSpec::VhostVdpa(_)
            | BackendSpec::Directory(_)
            | BackendSpec::Volume(_)
            | BackendSpec::Empty(_) => {}
        });
    }
    specs.retain(|other| other != spec);
    specs
}

/// What was asked for alone, or open and every value.
fn values<T: Copy>(asked: Option<T>, all: &[T]) -> Vec<Option<T>> {
    match asked {
        Some(value) => vec![Some(value)],
        None => std::iter::once(None)
            .chain(all.iter().copied().map(Some))
            .collect(),
    }
}
