//! Measuring what a change to a guest's disk brings: the plan behind the preset `lint`.

use std::collections::BTreeMap;

use vmdisk_model::{
    BackendSource, Creation, Domain, Format, Image, Preallocation, Qcow2Creation,
    Qcow2Preallocation,
};

use super::factors::{GUEST_MEMORY, Limits, PLACEHOLDER};
use super::{Cell, CellId, Configuration, LeftOut, Phase, Plan, Storage, Wishes, Workload};
use crate::EngineKind;

/// A change that somebody proposes: a guest before and after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// What proposes it, such as the name of a rule.
    pub rule: String,
    /// The disk, by its place among the disks of both guests.
    pub disk: usize,
    /// The unchanged guest.
    pub before: Domain,
    /// The guest with the change.
    pub after: Domain,
}

/// The workloads that show what cache modes, event loops and formats do.
const WORKLOADS: [&str; 3] = [
    "4k-random-read-qd32",
    "4k-random-write-qd32",
    "4k-random-write-qd1-sync",
];

/// The plan that measures proposals, each against the guest before it.
///
/// Disks are measured on new files, in a guest with little memory and no more vCPUs than the host has
/// processors: what is compared is how the disk is opened and shown, not the storage it lies on now.
pub fn plan_proposals(proposals: &[Proposal], wishes: &Wishes) -> Plan {
    let seconds = wishes.seconds.unwrap_or(2.0);
    let size = wishes.size.unwrap_or(vmdisk_model::Bytes(256 << 20));
    let engine = wishes.engine.unwrap_or(EngineKind::Guest);
    let workloads: Vec<Workload> = WORKLOADS
        .iter()
        .map(|name| Workload::by_name(name, seconds, 0.5).expect("the names above are workloads"))
        .collect();
    let mut plan = Plan {
        name: "lint".to_owned(),
        question: "What would the changes bring that the linter proposes?".to_owned(),
        configurations: Vec::new(),
        workloads,
        cells: Vec::new(),
        left_out: Vec::new(),
    };
    for proposal in proposals {
        let storage = Storage::File {
            directory: wishes.directories.first().cloned(),
            no_cow: false,
        };
        let side = |guest: &Domain, side: &str| {
            let guest = alone(guest, proposal.disk, size, &wishes.limits)?;
            let target = guest.disks[0].name().to_owned();
            let factors = [
                ("rule", proposal.rule.as_str()),
                ("disk", &target),
                ("side", side),
            ];
            Ok::<Configuration, String>(Configuration {
                name: format!("{}-{target}-{side}", proposal.rule),
                factors: BTreeMap::from(
                    factors.map(|(key, value)| (key.to_owned(), value.to_owned())),
                ),
                guest,
                storage: storage.clone(),
                size,
                is_served_by_daemon: false,
                is_buffered: false,
                findings: Vec::new(),
            })
        };
        let pair = side(&proposal.before, "before")
            .and_then(|before| Ok((before, side(&proposal.after, "after")?)));
        let pair = pair.and_then(|(before, after)| {
            let is_same = (&before.guest, before.is_served_by_daemon)
                == (&after.guest, after.is_served_by_daemon);
            if is_same {
                return Err("it changes nothing about how the disk is opened or shown".to_owned());
            }
            Ok((before, after))
        });
        let (before, after) = match pair {
            Ok(pair) => pair,
            Err(why) => {
                plan.left_out.push(LeftOut {
                    what: proposal.rule.clone(),
                    why,
                });
                continue;
            }
        };
        let first = plan.configurations.len();
        plan.configurations.extend([before, after]);
        for workload in 0..plan.workloads.len() {
            let baseline = CellId(plan.cells.len());
            for (configuration, baseline) in [(first, None), (first + 1, Some(baseline))] {
                plan.cells.push(Cell {
                    configuration,
                    workload,
                    engine,
                    phase: Phase::Steady,
                    baseline,
                });
            }
        }
    }
    plan.drop_unused();
    plan
}

/// A guest with one of its disks and nothing that ties it to its place in the machine.
fn alone(
    guest: &Domain,
    disk: usize,
    size: vmdisk_model::Bytes,
    limits: &Limits,
) -> Result<Domain, String> {
    let mut guest = guest.clone();
    let mut disk = guest
        .disks
        .get(disk)
        .cloned()
        .ok_or("the change removes the disk")?;
    let image = match &disk.backend.source {
        BackendSource::Image(image) => image,
        BackendSource::VhostUser(_) => return Err("another program serves the disk".to_owned()),
        BackendSource::Empty => return Err("the disk opens nothing".to_owned()),
    };
    let format = image.format.unwrap_or(Format::Raw);
    let creation = match format {
        Format::Raw => Creation::RawFile {
            size: Some(size),
            preallocation: Some(Preallocation::Off),
        },
        Format::Qcow2 => Creation::Qcow2(Qcow2Creation {
            size: Some(size),
            preallocation: Some(Qcow2Preallocation::Off),
            ..Qcow2Creation::default()
        }),
        Format::Qcow
        | Format::Qed
        | Format::Vmdk
        | Format::Vdi
        | Format::Vhd
        | Format::Vpc
        | Format::Fat
        | Format::Luks
        | Format::Ploop
        | Format::Bochs
        | Format::Cloop
        | Format::Dmg
        | Format::Iso
        | Format::Cow
        | Format::Dir => return Err(format!("images of format {format} are not made here")),
    };
    let mut made = Image::file(PLACEHOLDER, format);
    made.creation = Some(creation);
    disk.backend.source = made.into();
    disk.backend.is_read_only = false;
    disk.backend.is_transient = false;
    disk.frontend.address = None;
    disk.frontend.alias = None;
    disk.frontend.boot_order = None;
    guest.disks = vec![disk];
    for controller in &mut guest.controllers {
        controller.address = None;
    }
    guest.uuid = None;
    // A guest with much memory would cache the disk, and the host may not have more.
    guest.memory = Some(GUEST_MEMORY);
    guest.vcpus = Some(guest.effective_vcpus().min(limits.processors.max(1)));
    Ok(guest)
}
