//! The graph of nodes: what names what, and what nobody uses.

use std::collections::{HashMap, HashSet};

use vmdisk_source::{ProblemKind, Span};

use super::check::{Check, node_names};
use crate::syntax::properties::{Kind, Properties, Property};
use crate::syntax::value::{is_on, is_open};

/// Keys under which a node names another.
const CHILDREN: &[&str] = &[
    "file",
    "backing",
    "data-file",
    "header",
    "raw",
    "test",
    "image",
    "target",
    "bottom",
];

/// Options with which somebody can plug in a disk later.
const MONITORS: &[&str] = &["qmp", "qmp-pretty", "mon", "monitor"];

impl<'a> Check<'a> {
    pub(super) fn find_refused_nodes(&mut self) {
        self.find_nodes_in_front_of_their_children();
        self.find_nodes_used_twice();
        self.find_unused_nodes();
        self.find_ignored_snapshot();
    }

    fn find_nodes_in_front_of_their_children(&mut self) {
        // QEMU makes all nodes in order, and everything else after them.
        let mut seen: HashSet<&str> = HashSet::new();
        for (option, node) in self.index.of_name("blockdev") {
            for property in node.iter() {
                let last = property.key.rsplit('.').next().unwrap_or(&property.key);
                let name = property.value.as_str();
                let is_child = CHILDREN.contains(&last) && property.kind != Kind::Null;
                if is_child && !seen.contains(name) && self.index.node(name).is_some() {
                    let message = format!("the node `{name}` is only written behind this one");
                    let help = format!("move the -blockdev of `{name}` in front");
                    self.refuse(ProblemKind::NodeOrder, option, property.span, message, help);
                }
            }
            for name in node_names(node) {
                seen.insert(name.value.as_str());
            }
        }
    }

    fn find_nodes_used_twice(&mut self) {
        let mut first: HashMap<&'a str, &'a Properties> = HashMap::new();
        let threads = self.threads_of_controllers();
        for (option, _, device) in self.index.devices() {
            let Some(drive) = device.peek("drive") else {
                continue;
            };
            let name = drive.value.as_str();
            if is_open(name) {
                continue;
            }
            let legacy = self
                .index
                .drive(name)
                .and_then(|drive| self.index.properties(drive));
            if let Some(legacy) = legacy
                && legacy
                    .peek("if")
                    .is_none_or(|it| it.value.as_str() != "none")
            {
                let message =
                    format!("the -drive `{name}` makes a device of its own, and this is another");
                let help = "write if=none in the -drive";
                self.refuse(
                    ProblemKind::NodeUsedTwice,
                    option,
                    drive.span,
                    message,
                    help,
                );
                continue;
            }
            let Some(other) = first.insert(name, device) else {
                continue;
            };
            let is_read_only = self
                .index
                .node(name)
                .is_some_and(|node| is_on(node.view.properties.peek("read-only")));
            let share = |device: &Properties| is_on(device.peek("share-rw"));
            if legacy.is_none() && (is_read_only || (share(device) && share(other))) {
                let (own, others) = (thread_of(device, &threads), thread_of(other, &threads));
                if own != others {
                    let word = |thread: Option<&str>| match thread {
                        Some(thread) => format!("iothread `{thread}`"),
                        None => "the main loop".to_owned(),
                    };
                    let message = format!(
                        "`{name}` is used in {} and in {}, and before QEMU 10.0 a node is in one",
                        word(others),
                        word(own)
                    );
                    let help =
                        "put both devices into one iothread, or run it on QEMU 10.0 or later";
                    let kind = ProblemKind::NodeOnTwoIothreads;
                    self.refuse(kind, option, drive.span, message, help);
                }
                continue;
            }
            let message = format!("a second device uses `{name}`");
            let help = if legacy.is_some() {
                "a -drive is for one device; use -blockdev, and share-rw=on on both devices if the guest shares it"
            } else {
                "give each device a node of its own; or write share-rw=on on both, if the guest's file system is made for sharing"
            };
            self.refuse(
                ProblemKind::NodeUsedTwice,
                option,
                drive.span,
                message,
                help,
            );
        }
    }

    /// The iothreads of controllers, by the controllers' ids.
    fn threads_of_controllers(&self) -> HashMap<&'a str, &'a str> {
        let text = |device: &'a Properties, key| Some(device.peek(key)?.value.as_str());
        self.index
            .devices()
            .filter_map(|(_, _, device)| Some((text(device, "id")?, text(device, "iothread")?)))
            .collect()
    }

    fn find_unused_nodes(&mut self) {
        let is_monitored = self
            .index
            .options()
            .iter()
            .any(|option| MONITORS.contains(&option.name.as_str()));
        // Disks without their machine may be used by the rest of it.
        if is_monitored || self.lowered.domain().scope == vmdisk_model::Scope::DisksOnly {
            return;
        }
        let mut used: HashSet<&str> = HashSet::new();
        for option in self.index.options() {
            for property in option.properties.iter().flat_map(Properties::iter) {
                let is_own_name = property.key == "id" || property.key.ends_with("node-name");
                if !is_own_name {
                    used.insert(property.value.as_str());
                }
            }
        }
        if used.iter().any(|value| is_open(value)) {
            return;
        }
        let mut unused: Vec<(usize, String, Span)> = Vec::new();
        for (option, node) in self.index.of_name("blockdev") {
            let names: Vec<&Property> = node_names(node).collect();
            if let Some(own) = node.peek("node-name")
                && !names.iter().any(|name| used.contains(name.value.as_str()))
            {
                unused.push((option, own.value.as_str().to_owned(), own.span));
            }
        }
        for (option, drive) in self.index.of_name("drive") {
            let is_loose = drive
                .peek("if")
                .is_some_and(|it| it.value.as_str() == "none");
            if let Some(id) = drive.peek("id").filter(|_| is_loose)
                && !used.contains(id.value.as_str())
            {
                unused.push((option, id.value.as_str().to_owned(), id.span));
            }
        }
        for (option, name, span) in unused {
            let message = format!("no device uses `{name}`, and the guest has no such disk");
            let help = format!("write a -device with drive={name}, or take it away");
            self.refuse(ProblemKind::NodeUnused, option, span, message, help);
        }
    }

    fn find_ignored_snapshot(&mut self) {
        let Some(snapshot) = self
            .index
            .options()
            .iter()
            .position(|option| option.name == "snapshot")
        else {
            return;
        };
        let kept: Vec<String> = self
            .lowered
            .domain()
            .disks
            .iter()
            .enumerate()
            .filter(|(nth, disk)| {
                let top = self.lowered.top_node(*nth);
                disk.is_writable() && top.is_some_and(|option| !self.index.is_drive(option))
            })
            .map(|(_, disk)| format!("`{}`", disk.name()))
            .collect();
        if kept.is_empty() {
            return;
        }
        let span = self.index.span(snapshot);
        let message = format!(
            "-snapshot does nothing for {}: the guest writes to the image itself",
            kept.join(", ")
        );
        let help = "put an overlay on the image (qemu-img create -f qcow2 -b IMAGE -F FORMAT OVERLAY), or use -drive";
        self.refuse(ProblemKind::SnapshotIgnored, snapshot, span, message, help);
    }
}

/// The iothread that a device runs in: its own or its controller's; `None` for the main loop.
fn thread_of<'a>(device: &'a Properties, threads: &HashMap<&'a str, &'a str>) -> Option<&'a str> {
    if let Some(own) = device.peek("iothread") {
        return Some(own.value.as_str());
    }
    let bus = device.peek("bus")?.value.as_str();
    let owner = bus.rsplit_once('.').map_or(bus, |(owner, _)| owner);
    threads.get(owner).copied()
}
