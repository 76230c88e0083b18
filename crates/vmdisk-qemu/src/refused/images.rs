//! Options of single nodes that exclude each other or need another.

use std::collections::HashSet;

use vmdisk_source::ProblemKind;

use super::check::Check;
use crate::syntax::properties::{Properties, Property};
use crate::syntax::value::{is_on, is_open, number_of};

/// Formats and filters, which have a node below them.
const ABOVE_A_FILE: &[&str] = &[
    "raw",
    "qcow2",
    "qcow",
    "qed",
    "vmdk",
    "vdi",
    "vhdx",
    "vpc",
    "parallels",
    "luks",
    "bochs",
    "cloop",
    "dmg",
    "throttle",
    "copy-on-read",
    "compress",
];

/// An object that a node names.
struct Wanted {
    /// Its type.
    kind: &'static str,
    /// What is to be written besides its id.
    rest: &'static str,
    /// What it is called where it is missing.
    tells: ProblemKind,
}

const SECRET: Wanted = Wanted {
    kind: "secret",
    rest: "file=…",
    tells: ProblemKind::SecretMissing,
};

const RESERVATIONS: Wanted = Wanted {
    kind: "pr-manager-helper",
    rest: "path=…",
    tells: ProblemKind::MissingValue,
};

/// The members of one node, in whatever option and at whatever depth it stands.
struct Node<'p> {
    option: usize,
    properties: &'p Properties,
    prefix: String,
}

impl<'p> Node<'p> {
    fn peek(&self, key: &str) -> Option<&'p Property> {
        self.properties.peek(&format!("{}{key}", self.prefix))
    }

    fn number(&self, key: &str) -> Option<(u64, &'p Property)> {
        let property = self.peek(key)?;
        Some((number_of(property.value.as_str())?, property))
    }
}

impl<'a> Check<'a> {
    pub(super) fn find_refused_images(&mut self) {
        let mut nodes = Vec::new();
        for (option, properties) in self.index.of_name("blockdev") {
            for property in properties.iter() {
                if let Some(prefix) = property.key.strip_suffix("driver")
                    && (prefix.is_empty() || prefix.ends_with('.'))
                {
                    nodes.push((
                        Node {
                            option,
                            properties,
                            prefix: prefix.to_owned(),
                        },
                        property.value.as_str(),
                    ));
                }
            }
        }
        for (option, properties) in self.index.of_name("blockdev") {
            for (key, help) in [
                ("driver", "write driver=file, or the driver that opens it"),
                (
                    "node-name",
                    "write node-name, which the device names as its drive",
                ),
            ] {
                if properties.peek(key).is_none() && properties.iter().next().is_some() {
                    let span = self.index.span(option);
                    let message = format!("a -blockdev has no {key}");
                    self.refuse(ProblemKind::MissingValue, option, span, message, help);
                }
            }
        }
        let sets: HashSet<&'a str> = self
            .index
            .of_name("add-fd")
            .filter_map(|(_, added)| added.value("set"))
            .collect();
        for (node, driver) in nodes {
            self.check_file_below(&node, driver);
            self.check_sharing(&node, driver);
            self.check_fd_set(&node, &sets);
            self.check_object(&node, "pr-manager", &RESERVATIONS);
            match driver {
                "qcow2" => {
                    self.check_lazy_refcounts(&node);
                    self.check_qcow2_caches(&node);
                    self.check_qcow2_secret(&node);
                }
                "luks" if node.peek("key-secret").is_none() => {
                    let span = self.node_span(&node);
                    let message =
                        "a node of driver `luks` has no key-secret, and QEMU cannot open it";
                    let help = "write key-secret, and an -object secret with file= that it names";
                    self.refuse(ProblemKind::SecretMissing, node.option, span, message, help);
                }
                "luks" => self.check_object(&node, "key-secret", &SECRET),
                "raw" => self.check_window(&node),
                _ => {}
            }
        }
    }

    fn node_span(&self, node: &Node<'_>) -> vmdisk_source::Span {
        let driver = node.peek("driver");
        driver.map_or(self.index.span(node.option), |driver| driver.span)
    }

    fn check_file_below(&mut self, node: &Node<'_>, driver: &str) {
        let has_file = node.peek("file").is_some()
            || node.properties.has_within(&format!("{}file.", node.prefix));
        if ABOVE_A_FILE.contains(&driver) && !has_file {
            let span = self.node_span(node);
            let message = format!("the node of driver `{driver}` does not say which node it is on");
            let help = "write file with the name of a node, or file.driver=file and file.filename";
            self.refuse(ProblemKind::MissingValue, node.option, span, message, help);
        }
    }

    fn check_sharing(&mut self, node: &Node<'_>, driver: &str) {
        // A child that is written inside its parent has this from it.
        let is_read_only = {
            let mut prefix = node.prefix.as_str();
            loop {
                let own = node.properties.peek(&format!("{prefix}read-only"));
                if own.is_some() || prefix.is_empty() {
                    break is_on(own);
                }
                let shorter = prefix.trim_end_matches('.').rsplit_once('.');
                prefix = shorter.map_or("", |(outer, _)| &prefix[..=outer.len()]);
            }
        };
        if is_read_only {
            return;
        }
        if let Some(share) = node.peek("force-share").filter(|it| is_on(Some(it))) {
            let message =
                "force-share=on lets others write, and QEMU takes it for read-only nodes alone";
            let help = "write read-only=on beside it, or take force-share away";
            self.refuse(
                ProblemKind::ForceShareWritable,
                node.option,
                share.span,
                message,
                help,
            );
        }
        let is_file = matches!(driver, "file" | "host_device");
        if let Some(locking) = node
            .peek("locking")
            .filter(|it| is_file && it.value.as_str() == "off")
        {
            let message = "locking=off: a second guest, or qemu-img, writes to the same image and nothing stops it";
            let help = "take locking=off away; with share-rw=on several guests may write to one image knowingly";
            self.refuse(
                ProblemKind::LockingOff,
                node.option,
                locking.span,
                message,
                help,
            );
        }
    }

    /// Whether an option makes the set of descriptors that a node opens.
    fn check_fd_set(&mut self, node: &Node<'_>, sets: &HashSet<&'a str>) {
        let Some(name) = node.peek("filename") else {
            return;
        };
        let Some(set) = name.value.as_str().strip_prefix("/dev/fdset/") else {
            return;
        };
        if !sets.contains(set) {
            let message = format!("no -add-fd makes the set {set}");
            let help = format!("write -add-fd fd=N,set={set}, or the file's path");
            self.refuse(
                ProblemKind::MissingValue,
                node.option,
                name.span,
                message,
                help,
            );
        }
    }

    /// The image's header decides whether it is refused.
    fn check_lazy_refcounts(&mut self, node: &Node<'_>) {
        if let Some(lazy) = node.peek("lazy-refcounts").filter(|it| is_on(Some(it))) {
            let message = "lazy-refcounts is on for an image of version 2, which has none";
            let help = "take it away, or bring the image to version 3 with the guest off: qemu-img amend -o compat=1.1 IMAGE";
            let kind = ProblemKind::Qcow2Version3Option;
            self.refuse(kind, node.option, lazy.span, message, help);
        }
    }

    fn check_qcow2_caches(&mut self, node: &Node<'_>) {
        let all = node.number("cache-size");
        let l2 = node.number("l2-cache-size");
        let refcounts = node.number("refcount-cache-size");
        let (message, span) = match (all, l2, refcounts) {
            (Some(_), Some(_), Some((_, last))) => (
                "cache-size, l2-cache-size and refcount-cache-size are written together, and one follows from the others"
                    .to_owned(),
                last.span,
            ),
            (Some((all, _)), Some((part, written)), None) if part > all => (
                format!("l2-cache-size of {part} bytes is more than the cache-size of {all}"),
                written.span,
            ),
            (Some((all, _)), None, Some((part, written))) if part > all => (
                format!("refcount-cache-size of {part} bytes is more than the cache-size of {all}"),
                written.span,
            ),
            _ => {
                if let Some((size, written)) = node.number("l2-cache-entry-size")
                    && !(size.is_power_of_two() && (512..=2 << 20).contains(&size))
                {
                    let message = format!("l2-cache-entry-size of {size} bytes is no power of two from 512 to the cluster size");
                    let help = "write 4096, the default, or take it away";
                    self.refuse(ProblemKind::Qcow2CacheRefused, node.option, written.span, message, help);
                }
                return;
            }
        };
        let help = "write cache-size alone, which is shared out";
        self.refuse(
            ProblemKind::Qcow2CacheRefused,
            node.option,
            span,
            message,
            help,
        );
    }

    fn check_qcow2_secret(&mut self, node: &Node<'_>) {
        if let Some(secret) = node.peek("encrypt.key-secret") {
            if node.peek("encrypt.format").is_none() {
                let message = "encrypt.key-secret without encrypt.format";
                let help = "write encrypt.format=luks beside it";
                self.refuse(
                    ProblemKind::SecretMissing,
                    node.option,
                    secret.span,
                    message,
                    help,
                );
            }
            self.check_object(node, "encrypt.key-secret", &SECRET);
        } else if let Some(format) = node.peek("encrypt.format") {
            let message = "encrypt.format without encrypt.key-secret";
            let help = "write encrypt.key-secret, and an -object secret with file= that it names";
            self.refuse(
                ProblemKind::SecretMissing,
                node.option,
                format.span,
                message,
                help,
            );
        }
    }

    /// Whether the object that a key names is written anywhere.
    fn check_object(&mut self, node: &Node<'_>, key: &str, wanted: &Wanted) {
        let Some(named) = node.peek(key) else {
            return;
        };
        let Wanted { kind, rest, tells } = wanted;
        let id = named.value.as_str();
        if !is_open(id) && self.index.object(id).is_none() {
            let message = format!("no -object {kind} is called `{id}`");
            let help = format!("write -object {kind},id={id},{rest}");
            self.refuse(*tells, node.option, named.span, message, help);
        }
    }

    fn check_window(&mut self, node: &Node<'_>) {
        for key in ["offset", "size"] {
            if let Some((number, written)) = node.number(key)
                && number % 512 != 0
            {
                let message = format!("`{key}` of {number} bytes ends inside a sector");
                let help = format!("write a multiple of 512, such as {}", number / 512 * 512);
                self.refuse(
                    ProblemKind::WindowUnaligned,
                    node.option,
                    written.span,
                    message,
                    help,
                );
            }
        }
    }
}
