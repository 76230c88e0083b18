//! The cells of a result in groups.

use super::result::{BenchResult, CellResult};
use crate::method::ratio;
use crate::{Interval, Phase};

/// The cells of one workload in one phase.
pub(crate) struct Group<'a> {
    pub(crate) workload: &'a str,
    pub(crate) phase: Phase,
    /// The cells with the names of their configurations, in the order of the plan.
    pub(crate) rows: Vec<(&'a str, &'a CellResult)>,
}

/// Returns all groups of a result, in plan order.
pub(crate) fn groups(result: &BenchResult) -> Vec<Group<'_>> {
    let plan = &result.header.plan;
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cell, planned) in result.cells.iter().zip(&plan.cells) {
        let workload = plan.workloads[planned.workload].name.as_str();
        let configuration = plan.configurations[planned.configuration].name.as_str();
        let row = (configuration, cell);
        let same =
            |group: &&mut Group<'_>| group.workload == workload && group.phase == planned.phase;
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                workload,
                phase: planned.phase,
                rows: vec![row],
            }),
        }
    }
    groups
}

/// Formats a ratio with its interval: `1.9 [1.6, 2.3]`.
pub(crate) fn with_interval(interval: Interval) -> String {
    format!(
        "{} [{}, {}]",
        ratio(interval.ratio),
        ratio(interval.low),
        ratio(interval.high)
    )
}
