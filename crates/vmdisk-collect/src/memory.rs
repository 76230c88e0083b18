//! Memory: its size, huge pages of each size and node, NUMA nodes.

use std::collections::BTreeMap;

use vmdisk_facts::host::{HugePagePool, Memory, NodePages, NumaNode};
use vmdisk_facts::{Fact, Reason};

use crate::obstacle::obstacle;
use crate::root::Root;

const NODES: &str = "/sys/devices/system/node";

pub(crate) fn memory(root: &Root) -> Memory {
    let meminfo = root.text("/proc/meminfo");
    let kilobytes = |name: &str| match &meminfo {
        Ok(text) => {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            match value.and_then(bytes) {
                Some(bytes) => Fact::Known(bytes),
                None => Fact::unknown(Reason::Parse, format!("/proc/meminfo: {name}")),
            }
        }
        Err(error) => Fact::Unknown(obstacle("/proc/meminfo", error)),
    };
    Memory {
        total_bytes: kilobytes("MemTotal"),
        available_bytes: kilobytes("MemAvailable"),
        hugepages: hugepages(root),
    }
}

/// Parses `  16318440 kB` as bytes.
fn bytes(text: &str) -> Option<u64> {
    let number: u64 = text.trim().strip_suffix(" kB")?.parse().ok()?;
    number.checked_mul(1024)
}

fn number(root: &Root, path: &str) -> Fact<u64> {
    root.number(path)
}

fn hugepages(root: &Root) -> BTreeMap<u64, HugePagePool> {
    let at = "/sys/kernel/mm/hugepages";
    let sizes = root.names(at).unwrap_or_default();
    let nodes = node_numbers(root);
    let pages = sizes.into_iter().filter_map(|name| {
        let kib = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let of = |file: &str| number(root, &format!("{at}/{name}/{file}"));
        let on_node = |node: u64| {
            let at = format!("{NODES}/node{node}/hugepages/{name}");
            let pages = NodePages {
                nr: number(root, &format!("{at}/nr_hugepages")),
                free: number(root, &format!("{at}/free_hugepages")),
            };
            (node, pages)
        };
        let pages = HugePagePool {
            nr: of("nr_hugepages"),
            free: of("free_hugepages"),
            reserved: of("resv_hugepages"),
            overcommit: of("nr_overcommit_hugepages"),
            nodes: nodes.iter().map(|node| on_node(*node)).collect(),
        };
        Some((kib, pages))
    });
    pages.collect()
}

fn node_numbers(root: &Root) -> Vec<u64> {
    let names = root.names(NODES).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .collect()
}

/// Returns NUMA nodes by number; empty if the kernel does not support NUMA.
pub(crate) fn nodes(root: &Root) -> BTreeMap<u64, NumaNode> {
    let node = |number: u64| {
        let at = format!("{NODES}/node{number}");
        let node = NumaNode {
            cpus: root.word(&format!("{at}/cpulist")),
        };
        (number, node)
    };
    node_numbers(root).into_iter().map(node).collect()
}
