//! The plan of the preset `lint`: measures the effect of proposed changes to a guest's disk.

use std::collections::BTreeMap;

use vmdisk_model::{
    BackendSource, Bytes, Creation, Domain, Format, Image, Preallocation, Qcow2Creation,
    Qcow2Preallocation,
};

use super::limits::{GUEST_MEMORY, Limits};
use super::meaning::PLACEHOLDER;
use super::{Cell, CellId, Configuration, LeftOut, Phase, Plan, PlanOptions, Storage, Workload};
use crate::EngineKind;

/// A proposed change: a guest before and after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The source of the proposal, such as the name of a rule.
    pub rule: String,
    /// The disk, by its index in both guests.
    pub disk: usize,
    /// The unchanged guest.
    pub before: Domain,
    /// The guest with the change.
    pub after: Domain,
}

/// The workloads that show the effect of cache modes, event loops and formats.
const WORKLOADS: [&str; 3] = [
    "4k-random-read-qd32",
    "4k-random-write-qd32",
    "4k-random-write-qd1-sync",
];

/// Returns the plan that measures proposals, each against the unchanged guest.
///
/// Disks are measured on new files, in a guest with little memory and at most as many vCPUs as the host has
/// processors: the plan compares how the disk is opened and presented, not its current storage.
pub fn plan_proposals(proposals: &[Proposal], options: &PlanOptions) -> Plan {
    let seconds = options.seconds.unwrap_or(2.0);
    let size = options.size.unwrap_or(Bytes(256 << 20));
    let engine = options.engine.unwrap_or(EngineKind::Guest);
    let asked = options.workloads.iter().map(String::as_str);
    let usual = WORKLOADS
        .into_iter()
        .filter(|_| options.workloads.is_empty());
    let workloads = usual.chain(asked);
    let workloads = workloads
        .filter_map(|name| Workload::by_name(name, seconds, 0.5).ok())
        .collect();
    let mut plan = Plan {
        name: "lint".to_owned(),
        question: "What is the effect of the changes that the linter proposes?".to_owned(),
        configurations: Vec::new(),
        workloads,
        cells: Vec::new(),
        left_out: Vec::new(),
        pairs: Vec::new(),
    };
    for proposal in proposals {
        let (before, after) = match pair(proposal, options, size) {
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

/// Returns the configurations before and after a change, or why they cannot be compared.
fn pair(
    proposal: &Proposal,
    options: &PlanOptions,
    size: Bytes,
) -> Result<(Configuration, Configuration), String> {
    let side = |guest: &Domain, side: &str| {
        let guest = alone(guest, proposal.disk, size, &options.limits)?;
        let target = guest.disks[0].name().to_owned();
        let factors = [
            ("rule", proposal.rule.as_str()),
            ("disk", &target),
            ("side", side),
        ];
        Ok::<Configuration, String>(Configuration {
            name: format!("{}-{target}-{side}", proposal.rule),
            factors: BTreeMap::from(factors.map(|(key, value)| (key.to_owned(), value.to_owned()))),
            guest,
            storage: Storage::File {
                directory: options.directories.first().cloned(),
                no_cow: false,
            },
            size,
            fills: 1,
            is_served_by_daemon: false,
            is_buffered: false,
            launcher: Vec::new(),
            findings: Vec::new(),
        })
    };
    let before = side(&proposal.before, "before")?;
    let after = side(&proposal.after, "after")?;
    if (&before.guest, before.is_served_by_daemon) == (&after.guest, after.is_served_by_daemon) {
        return Err("the change does not affect how the disk is opened or presented".to_owned());
    }
    Ok((before, after))
}

/// Returns a guest with one of its disks, without host-specific settings.
fn alone(guest: &Domain, disk: usize, size: Bytes, limits: &Limits) -> Result<Domain, String> {
    let mut guest = guest.clone();
    let mut disk = guest
        .disks
        .get(disk)
        .cloned()
        .ok_or("the change removes the disk")?;
    let image = match &disk.backend.source {
        BackendSource::Image(image) => image,
        BackendSource::VhostUser(_) => {
            return Err("the disk is served by another program".to_owned());
        }
        BackendSource::Empty => return Err("the disk is an empty drive".to_owned()),
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
        _ => {
            return Err(format!(
                "the benchmark cannot create images of format {format}"
            ));
        }
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
    // A guest with much memory would cache the disk, and the host may not have enough.
    guest.memory = Some(GUEST_MEMORY);
    guest.vcpus = Some(guest.effective_vcpus().min(limits.processors.max(1)));
    Ok(guest)
}
