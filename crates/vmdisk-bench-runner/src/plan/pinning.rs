//! The processors and the NUMA node that measured programs run on.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::limits::{Limits, NoMeaning};

/// The directory of the kernel's NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

/// Returns the processors on which this process, and so every program of a run, may run.
pub fn allowed_processors() -> BTreeSet<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return BTreeSet::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|processor| set.is_set(*processor))
        .filter_map(|processor| u32::try_from(processor).ok())
        .collect()
}

/// Returns the NUMA nodes of this host that have processors and memory.
pub fn numa_nodes() -> BTreeSet<u32> {
    let nodes = |file: &str| {
        let text = std::fs::read_to_string(format!("{NODES}/{file}")).unwrap_or_default();
        list(text.trim()).unwrap_or_default()
    };
    &nodes("has_cpu") & &nodes("has_memory")
}

/// Parses a list of numbers in the kernel's syntax, such as `0-1,4`.
fn list(text: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= CpuSet::MAX_CPU as u32 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The program that pins another one, with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pinning {
    /// The words before each command; empty for programs that are not pinned.
    pub(super) launcher: Vec<String>,
    /// The number of processors, if they were listed.
    pub(super) processors: Option<u32>,
}

/// Returns how to start programs on the given processors, or on a NUMA node with its memory.
///
/// # Errors
/// If a value is malformed, or not possible on this host.
pub(super) fn pinning(
    processors: Option<&str>,
    node: Option<&str>,
    limits: &Limits,
) -> Result<Pinning, NoMeaning> {
    if let (Some(_), Some(_)) = (processors, node) {
        let why = "numa-node selects the processors of a node, so `processors` cannot be set too";
        return Err(NoMeaning::Impossible(why.to_owned()));
    }
    if let Some(text) = processors {
        let wanted = list(text).ok_or_else(|| {
            format!("processors: `{text}` is not a list of processors such as 0-1,4")
        })?;
        if let Some(missing) = wanted.difference(&limits.allowed_processors).next() {
            return Err(NoMeaning::Impossible(format!(
                "processor {missing} does not exist on this host, or this process may not use it"
            )));
        }
        return Ok(Pinning {
            launcher: ["taskset", "-c", text].map(str::to_owned).into(),
            processors: u32::try_from(wanted.len()).ok(),
        });
    }
    let Some(text) = node else {
        return Ok(Pinning::default());
    };
    let node: u32 = text
        .parse()
        .map_err(|_| format!("numa-node: `{text}` is not the number of a NUMA node"))?;
    if !limits.numa_nodes.contains(&node) {
        return Err(NoMeaning::Impossible(format!(
            "this host has no NUMA node {node} with processors and memory"
        )));
    }
    Ok(Pinning {
        launcher: vec![
            "numactl".to_owned(),
            format!("--cpunodebind={node}"),
            format!("--membind={node}"),
        ],
        processors: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_processors_has_the_syntax_of_the_kernel() {
        assert_eq!(list("0-2,5"), Some(BTreeSet::from([0, 1, 2, 5])));
        assert_eq!(list("3"), Some(BTreeSet::from([3])));
        for wrong in [
            "",
            "a",
            "2-1",
            "0-",
            "-1",
            "0,,1",
            "0 1",
            "99999999",
            "0-4294967295",
        ] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
        assert!(!allowed_processors().is_empty());
    }

    #[test]
    fn processors_and_nodes_that_the_host_does_not_have_are_refused() {
        let limits = Limits {
            allowed_processors: BTreeSet::from([0, 1]),
            numa_nodes: BTreeSet::from([0]),
            ..Limits::default()
        };
        let of = |processors, node| pinning(processors, node, &limits);
        let impossible = |processors, node| match of(processors, node) {
            Err(NoMeaning::Impossible(why)) => why,
            other => panic!("{other:?}"),
        };
        let pinned = of(Some("0-1"), None).unwrap();
        assert_eq!(pinned.launcher, ["taskset", "-c", "0-1"]);
        assert_eq!(pinned.processors, Some(2));
        let why = impossible(Some("1-2"), None);
        assert!(why.starts_with("processor 2 does not exist"), "{why}");
        let bound = of(None, Some("0")).unwrap();
        assert_eq!(
            bound.launcher,
            ["numactl", "--cpunodebind=0", "--membind=0"]
        );
        let why = impossible(None, Some("1"));
        assert!(why.contains("no NUMA node 1"), "{why}");
        impossible(Some("0"), Some("0"));
        for (processors, node) in [(Some("x"), None), (None, Some("x"))] {
            assert!(matches!(of(processors, node), Err(NoMeaning::Mistake(_))));
        }
        assert_eq!(of(None, None), Ok(Pinning::default()));
    }
}
