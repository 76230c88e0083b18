//! Properties that a device or node does not have, and values of a type that it does not take.

use std::collections::HashMap;

use vmdisk_source::{Edit, ProblemKind};

use super::check::{Check, base_of};
use super::device_tables::{self, Table};
use super::node_tables;
use crate::syntax::properties::{Kind, Properties, Property, Syntax};
use crate::syntax::value::{is_on, is_open};

/// The members of a node that is written at `prefix` of an option.
struct Members<'p> {
    prefix: String,
    list: Vec<&'p Property>,
}

impl Members<'_> {
    /// Appends the node that is written inside another one under a key; hands back its number in `nodes`.
    fn inside(node: &Properties, prefix: &str, key: &str, nodes: &mut Vec<Self>) -> Option<usize> {
        let prefix = format!("{prefix}{key}.");
        node.peek(&format!("{prefix}driver"))?;
        let list = Vec::new();
        nodes.push(Members { prefix, list });
        Some(nodes.len() - 1)
    }
}

impl Check<'_> {
    pub(super) fn find_refused_members(&mut self) {
        for (option, driver, device) in self.index.devices() {
            let base = base_of(driver);
            if matches!(driver, "ide-drive" | "scsi-disk") {
                let help = "write ide-hd or ide-cd, scsi-hd or scsi-cd";
                let span = device
                    .peek("driver")
                    .map_or(self.index.span(option), |it| it.span);
                let message = format!("`{driver}` is gone since QEMU 6.0");
                self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
                continue;
            }
            let Some(tables) = device_tables::tables_of(base) else {
                continue;
            };
            for property in device.iter() {
                if !matches!(property.key.as_str(), "driver" | "id" | "bus") {
                    self.check_member(option, property, &property.key, base, tables);
                }
            }
            let list = device.iter().find(|property| {
                property.kind == Kind::Plain && property.key.starts_with("iothread-vq-mapping")
            });
            if let Some(list) = list {
                let message = "iothread-vq-mapping is a list, which only JSON can write";
                let help = "write the whole -device in JSON, which QEMU takes since 6.2";
                self.refuse(
                    ProblemKind::PropertyRefused,
                    option,
                    list.key_span,
                    message,
                    help,
                );
            }
            if matches!(base, "virtio-blk") && switch_is_on(device, "scsi") {
                let span = device
                    .peek("scsi")
                    .map_or(self.index.span(option), |it| it.span);
                let message = "scsi=on passes SCSI commands on, which no modern virtio disk does";
                let help =
                    "take it away; for SCSI commands use scsi-block on a virtio-scsi controller";
                self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
            }
        }
        for (option, node) in self.index.of_name("blockdev") {
            self.check_nodes(option, node);
        }
        for (option, chardev) in self.index.of_name("chardev") {
            if matches!(chardev.syntax, Syntax::Json { .. }) {
                let span = self.index.span(option);
                let message = "-chardev takes no JSON";
                let help = "write -chardev socket,id=…,path=…, with a comma in the path doubled";
                self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
            }
        }
        for (option, object) in self.index.of_name("object") {
            let is_pairs = matches!(object.syntax, Syntax::Pairs { .. } | Syntax::Lines { .. });
            let is_group = object
                .peek("qom-type")
                .is_some_and(|it| it.value.as_str() == "throttle-group");
            let limits = object
                .iter()
                .find(|property| property.key.starts_with("limits."));
            if let Some(limits) = limits.filter(|_| is_pairs && is_group) {
                let message = format!("`{}` is for JSON alone", limits.key);
                let help = format!(
                    "write x-{}, or the whole -object in JSON",
                    &limits.key["limits.".len()..]
                );
                self.refuse(
                    ProblemKind::PropertyRefused,
                    option,
                    limits.key_span,
                    message,
                    help,
                );
            }
        }
    }

    /// Checks the members of a node, and of those inside it.
    fn check_nodes(&mut self, option: usize, node: &Properties) {
        let mut nodes = vec![Members {
            prefix: String::new(),
            list: node.iter().collect(),
        }];
        while let Some(members) = nodes.pop() {
            self.check_node(option, node, &members, &mut nodes);
        }
    }

    /// Checks the members of one node, and appends the nodes inside it to `nodes`.
    fn check_node<'p>(
        &mut self,
        option: usize,
        node: &'p Properties,
        members: &Members<'p>,
        nodes: &mut Vec<Members<'p>>,
    ) {
        let Members { prefix, list } = members;
        let Some(driver) = node.peek(&format!("{prefix}driver")) else {
            return;
        };
        let tables = node_tables::tables_of(driver.value.as_str());
        // The number of each node inside in `nodes`; `None` for members that are no nodes.
        let mut inside: HashMap<&str, Option<usize>> = HashMap::new();
        for property in list {
            let rest = &property.key[prefix.len()..];
            let first = rest.split('.').next().unwrap_or(rest);
            let child = (first != rest).then(|| {
                let child = inside.entry(first);
                *child.or_insert_with(|| Members::inside(node, prefix, first, nodes))
            });
            if let Some(nth) = child.flatten() {
                nodes[nth].list.push(property);
            } else if first == "cache" {
                self.check_cache_member(option, property, rest);
            } else if let Some(tables) = &tables {
                self.check_member(option, property, first, driver.value.as_str(), tables);
            }
        }
    }

    /// The cache of a node is an object of two switches; its words are those of `-drive`.
    fn check_cache_member(&mut self, option: usize, property: &Property, rest: &str) {
        if matches!(rest, "cache.direct" | "cache.no-flush") {
            return;
        }
        let value = property.value.as_str();
        let (message, help) = match (rest, vmdisk_model::CacheMode::from_wire(value)) {
            ("cache", Some(mode)) => {
                let switches = mode.switches();
                let word = |is_on: bool| if is_on { "on" } else { "off" };
                (
                    format!("-blockdev has no cache={value}"),
                    format!(
                        "write cache.direct={},cache.no-flush={} on every node, and write-cache={} on the device",
                        word(switches.direct),
                        word(switches.no_flush),
                        word(switches.write_cache)
                    ),
                )
            }
            ("cache.writeback", _) => (
                "-blockdev has no cache.writeback: it is the device's".to_owned(),
                "write write-cache on the device".to_owned(),
            ),
            _ => (
                format!("a node has no `{rest}`"),
                "write cache.direct or cache.no-flush".to_owned(),
            ),
        };
        let span = property.key_span;
        self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
    }

    fn check_member(
        &mut self,
        option: usize,
        property: &Property,
        key: &str,
        owner: &str,
        tables: &[Table],
    ) {
        // Unstable ones come and go, and distributions have their own.
        if key.starts_with("x-") || key.starts_with("__") || is_open(key) {
            return;
        }
        let found = tables
            .iter()
            .flat_map(|table| table.iter())
            .find(|(name, _)| {
                // A table holds lists and objects by their first name.
                *name == key
                    || key
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with('.'))
            });
        let Some((_, wants)) = found else {
            let names = tables
                .iter()
                .flat_map(|table| table.iter().map(|(name, _)| *name));
            let near = self.suggestions.nearest(key, names);
            let message = format!("`{owner}` has no property `{key}`");
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "QEMU will not start with it; take it away".to_owned(),
            };
            let span = property.key_span;
            let problem = self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
            if let Some(near) = near.filter(|_| property.key == key) {
                problem.fix = vec![Edit::replace(span, near)];
            }
            return;
        };
        let is_whole = property.key.ends_with(key);
        if let Some(expected) = wants.refusal(property).filter(|_| is_whole) {
            let message = format!(
                "`{key}` is `{}`, and QEMU takes {expected}",
                property.value.as_str()
            );
            let help = format!("write {expected}");
            self.refuse(
                ProblemKind::PropertyRefused,
                option,
                property.span,
                message,
                help,
            );
        }
    }
}

fn switch_is_on(device: &Properties, key: &str) -> bool {
    is_on(device.peek(key))
}
