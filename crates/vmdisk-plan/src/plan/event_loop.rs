//! Event loops: which iothread serves which disk.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::{Capability, Component, Fact};
use vmdisk_model::{
    BackendSource, Device, DiskField, DomainField, FieldPath, IoThread, IoThreadId, IoThreadQueues,
    TargetBus,
};

use super::choice::Chosen;
use super::planner::Planner;
use crate::spec::{IoThreadCount, IoThreadSpec, SpecPath};

/// The event loops of one disk.
enum Wish {
    /// QEMU's main loop, or whatever its controller has.
    Nothing,
    /// An iothread, whichever.
    Any {
        reason: String,
        is_asked: bool,
        /// True if several iothreads may share its queues.
        may_have_several: bool,
    },
    /// These.
    These(Vec<u32>),
}

/// Decides which iothreads there are and who uses them.
pub(crate) fn plan_event_loops(planner: &mut Planner<'_>) {
    let guest = planner.spec.guest.as_ref();
    let count = guest.and_then(|guest| guest.iothreads.clone());
    let count = count.as_ref();
    let wishes: Vec<Wish> = (0..planner.spec.disks.len())
        .map(|index| wish(planner, index, count))
        .collect();
    // How many disks each iothread serves; asked-for ones count first, so that the others avoid them.
    let mut load: BTreeMap<u32, usize> = planner.existing.iothreads();
    let has_own = !load.is_empty();
    // The iothreads of a guest that exists, and the processors for them, are its owner's to share out.
    let per_disk = match planner.existing.is_there() {
        true => 1,
        false => threads_per_disk(planner, count, &wishes),
    };
    if !has_own {
        let most = most_threads(planner, count, &wishes) * per_disk;
        load.extend((1..=most).map(|id| (id, 0)));
    }
    for (index, wish) in wishes.iter().enumerate() {
        let Wish::These(ids) = wish else { continue };
        for id in ids {
            if let Some(count) = count.and_then(IoThreadCount::number)
                && *id > count
            {
                let message = format!("the guest has {count} iothreads, and none has the id {id}");
                planner.refuse(SpecPath::disk(index).key("iothread"), message);
                continue;
            }
            if has_own && !load.contains_key(id) {
                let message = format!("the guest has no iothread {id}");
                planner.refuse(SpecPath::disk(index).key("iothread"), message);
                continue;
            }
            *load.entry(*id).or_default() += 1;
        }
    }
    // The same by load, so that the one with the fewest disks comes first.
    let mut by_load: BTreeSet<(usize, u32)> =
        load.iter().map(|(id, disks)| (*disks, *id)).collect();
    for (index, wish) in wishes.into_iter().enumerate() {
        match wish {
            Wish::Nothing => {}
            Wish::These(ids) => assign(planner, index, &ids),
            Wish::Any { reason, .. } if per_disk > 1 => {
                let ids: Vec<u32> = std::iter::from_fn(|| by_load.pop_first())
                    .take(per_disk as usize)
                    .map(|(_, id)| id)
                    .collect();
                for id in &ids {
                    *load.entry(*id).or_default() += 1;
                }
                assign_several(planner, index, &ids, &reason);
            }
            Wish::Any {
                reason, is_asked, ..
            } => {
                let Some((disks, id)) = by_load.pop_first() else {
                    let message = "the guest has no iothreads, but the disk requests one";
                    planner.refuse(SpecPath::disk(index).key("iothread"), message);
                    continue;
                };
                by_load.insert((disks + 1, id));
                *load.entry(id).or_default() += 1;
                assign_chosen(planner, index, id, reason, is_asked);
            }
        }
    }
    if !has_own {
        declare(planner, count, load);
    }
}

fn is_virtio(planner: &Planner<'_>, index: usize) -> bool {
    let disk = &planner.domain.disks[index];
    let is_vhost = matches!(disk.backend.source, BackendSource::VhostUser(_));
    let bus = disk.frontend.effective_bus();
    !is_vhost && (bus == TargetBus::Virtio || bus == TargetBus::Scsi)
}

fn wish(planner: &Planner<'_>, index: usize, count: Option<&IoThreadCount>) -> Wish {
    let spec = &planner.spec.disks[index];
    match &spec.iothread {
        Some(IoThreadSpec::Number(id)) => return Wish::These(vec![*id]),
        Some(IoThreadSpec::Several(ids)) => return Wish::These(ids.clone()),
        Some(IoThreadSpec::Auto) => {
            let reason = "the iothread with the fewest disks".to_owned();
            return Wish::Any {
                reason,
                is_asked: true,
                may_have_several: false,
            };
        }
        None => {}
    }
    let device = planner.domain.disks[index].frontend.effective_device();
    if !is_virtio(planner, index) || matches!(device, Device::Cdrom | Device::Floppy) {
        return Wish::Nothing;
    }
    let any = |reason: String| Wish::Any {
        reason,
        is_asked: false,
        may_have_several: may_have_several(planner, index),
    };
    match count.map(IoThreadCount::number) {
        Some(Some(0)) => return Wish::Nothing,
        Some(Some(_)) => {
            return any("the guest has iothreads, which idle unless a disk uses them".to_owned());
        }
        Some(None) => {
            return any("iothreads are requested, and this disk can use one".to_owned());
        }
        None => {}
    }
    let BackendSource::Image(image) = &planner.domain.disks[index].backend.source else {
        return Wish::Nothing;
    };
    if planner.domain.effective_vcpus() < 2 {
        return Wish::Nothing;
    }
    let kindred = planner.device_below(spec, image);
    match planner.host.is_fast(image, kindred) {
        Some(because) => any(format!(
            "{because}, and in QEMU's main loop requests would wait for each other"
        )),
        None => Wish::Nothing,
    }
}

/// How many iothreads are worth having: no more than disks that take any, vCPUs, or processors.
fn most_threads(planner: &Planner<'_>, count: Option<&IoThreadCount>, wishes: &[Wish]) -> u32 {
    let takers = wishes
        .iter()
        .filter(|wish| matches!(wish, Wish::Any { .. }))
        .count() as u32;
    let processors = match planner.host.index.facts().cpu.count {
        Fact::Known(count) => count.max(1),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => u32::MAX,
    };
    let number = count.and_then(IoThreadCount::number);
    number.unwrap_or_else(|| takers.min(planner.domain.effective_vcpus()).min(processors))
}

/// True if several iothreads may share the queues of a disk.
fn may_have_several(planner: &Planner<'_>, index: usize) -> bool {
    let frontend = &planner.domain.disks[index].frontend;
    let target = &planner.host.target;
    frontend.bus == Some(TargetBus::Virtio)
        && frontend
            .queues
            // 0 is unset.
            .is_none_or(|queues| queues == 0 || queues >= MOST_PER_DISK)
        && target.can(Capability::IothreadVqMappingBlk).is_yes()
        && planner.host.may(Capability::LibvirtIothreadMapping)
        && planner.host.may(Capability::MachineQueuePerVcpu)
}

/// The most iothreads that one disk gets unasked. Red Hat's and QEMU's examples of such mappings have two to four.
const MOST_PER_DISK: u32 = 4;

/// How many iothreads each disk gets: several if there are vCPUs and processors to spare for all disks.
fn threads_per_disk(planner: &Planner<'_>, count: Option<&IoThreadCount>, wishes: &[Wish]) -> u32 {
    let mut takers: u32 = 0;
    for wish in wishes {
        match wish {
            Wish::Nothing => {}
            Wish::Any {
                may_have_several: true,
                ..
            } => takers += 1,
            Wish::Any { .. } | Wish::These(_) => return 1,
        }
    }
    let Fact::Known(processors) = planner.host.index.facts().cpu.count else {
        return 1;
    };
    if takers == 0 || count.and_then(IoThreadCount::number).is_some() {
        return 1;
    }
    // Half of the vCPUs have requests to serve while the other half waits for them.
    let spare = planner.domain.effective_vcpus().min(processors) / 2;
    let per_disk = (spare / takers).clamp(1, MOST_PER_DISK);
    // Each thread needs slots for native AIO of its own, and one for each disk is counted.
    let more = u64::from(takers * (per_disk - 1));
    match planner.host.lacks_aio_slots(planner.native_threads + more) {
        None => per_disk,
        Some(_) => 1,
    }
}

/// Gives a disk several chosen iothreads.
fn assign_several(planner: &mut Planner<'_>, index: usize, ids: &[u32], reason: &str) {
    let shown: Vec<String> = ids.iter().map(u32::to_string).collect();
    planner.decide_disk(index, DiskField::IoThreadMapping, "iothread", None, |_| {
        let reason =
            format!("{reason}; several threads share its queues, as there are processors for them");
        Some(Chosen::by_fact(shown.join(", "), reason).instead_of("iothread-missing-fast-media"))
    });
    planner.disk(index).frontend.iothread_mapping = mapping(ids);
}

/// A mapping that leaves the choice of queues to QEMU.
fn mapping(ids: &[u32]) -> Vec<IoThreadQueues> {
    let row = |id: &u32| IoThreadQueues {
        iothread: IoThreadId(*id),
        queues: Vec::new(),
    };
    ids.iter().map(row).collect()
}

/// Gives a disk the iothreads it asked for.
fn assign(planner: &mut Planner<'_>, index: usize, ids: &[u32]) {
    let at = SpecPath::disk(index).key("iothread");
    if let [id] = ids {
        let field = FieldPath::Disk(index, DiskField::IoThread);
        planner.note_asked(field, "iothread", Some(id));
        planner.disk(index).frontend.iothread = Some(IoThreadId(*id));
        return;
    }
    let is_scsi = planner.domain.disks[index].frontend.bus == Some(TargetBus::Scsi);
    let needed = if is_scsi {
        [
            Capability::IothreadVqMappingScsi,
            Capability::LibvirtScsiIothreadMapping,
        ]
    } else {
        [
            Capability::IothreadVqMappingBlk,
            Capability::LibvirtIothreadMapping,
        ]
    };
    for capability in needed {
        if !planner.host.may(capability) {
            let row = capability.row();
            let component = match row.component {
                Component::Qemu => "QEMU",
                Component::Libvirt => "libvirt",
                Component::Kernel => "Linux",
                Component::Machine => "machine type",
            };
            let message = format!(
                "one disk on several iothreads requires {} {}, and the target is older",
                component, row.since
            );
            planner.refuse(at.clone(), message).help = Some("write one number".to_owned());
        }
    }
    let shown: Vec<String> = ids.iter().map(u32::to_string).collect();
    let field = FieldPath::Disk(index, DiskField::IoThreadMapping);
    planner.note_asked(field, "iothread", Some(shown.join(", ")));
    planner.disk(index).frontend.iothread_mapping = mapping(ids);
}

fn assign_chosen(planner: &mut Planner<'_>, index: usize, id: u32, reason: String, is_asked: bool) {
    planner.decide_disk(index, DiskField::IoThread, "iothread", None, |_| {
        let chosen = if is_asked {
            Chosen::by_default(id, reason)
        } else {
            Chosen::by_fact(id, reason).instead_of("iothread-missing-fast-media")
        };
        Some(chosen)
    });
    planner.disk(index).frontend.iothread = Some(IoThreadId(id));
}

/// Declares the iothreads that are in use or requested by number.
fn declare(planner: &mut Planner<'_>, count: Option<&IoThreadCount>, load: BTreeMap<u32, usize>) {
    let is_number = count.and_then(IoThreadCount::number).is_some();
    let ids: Vec<u32> = load
        .iter()
        .filter(|(_, disks)| is_number || **disks > 0)
        .map(|(id, _)| *id)
        .collect();
    // libvirt numbers iothreads from 1 if only their number is given.
    let is_counted = ids.iter().zip(1..).all(|(id, nth)| *id == nth);
    let shown = ids.len();
    planner.domain.iothreads = ids
        .into_iter()
        .map(|id| {
            let mut thread = IoThread::new(IoThreadId(id));
            thread.is_listed = !is_counted;
            if let Some(IoThreadCount::Each(all)) = count
                && let Some(options) = all.get(id as usize - 1)
            {
                options.apply(&mut thread);
            }
            thread
        })
        .collect();
    if shown == 0 && !is_number {
        return;
    }
    let at = FieldPath::Domain(DomainField::IoThreads);
    let asked = is_number.then_some(shown);
    planner.decide(at, "iothreads", asked, |_| {
        let reason = "as many as the disks use: no more than vCPUs or processors";
        Some(Chosen::by_fact(shown, reason))
    });
}
