//! Names of nodes, and ids of devices and objects.

use std::collections::HashMap;

use super::check::{Check, node_names};
use crate::names::is_identifier;
use crate::syntax::value::is_open;
use vmdisk_source::{ProblemKind, Span};

/// Characters of a node's name at most (`BDS_NODE_NAME_SIZE` with the zero at its end).
const NODE_NAME: usize = 31;

impl<'a> Check<'a> {
    pub(super) fn find_refused_names(&mut self) {
        let mut nodes: HashMap<&'a str, Span> = HashMap::new();
        for name in ["blockdev", "drive"] {
            for (option, properties) in self.index.of_name(name) {
                for name in node_names(properties) {
                    self.check_node_name(option, name.value.as_str(), name.span, &mut nodes);
                }
            }
        }
        for name in ["device", "object", "chardev", "drive"] {
            let mut ids: HashMap<&'a str, Span> = HashMap::new();
            for (option, properties) in self.index.of_name(name) {
                let Some(id) = properties.peek("id") else {
                    continue;
                };
                let text = id.value.as_str();
                if is_open(text) {
                    continue;
                }
                if !is_identifier(text) {
                    let message = format!("`{text}` is no id");
                    let help =
                        "an id begins with a letter, and has letters, digits, `-`, `.` and `_`";
                    self.refuse(ProblemKind::NameRefused, option, id.span, message, help);
                } else if ids.insert(text, id.span).is_some() {
                    let message = format!("two -{name} have the id `{text}`");
                    let help = "give each an id of its own";
                    self.refuse(ProblemKind::NameRefused, option, id.span, message, help);
                } else if name == "drive" && nodes.contains_key(text) {
                    let message = format!("a -drive and a node are both called `{text}`");
                    let help = "give each a name of its own";
                    self.refuse(ProblemKind::NameRefused, option, id.span, message, help);
                }
            }
        }
    }

    fn check_node_name(
        &mut self,
        option: usize,
        name: &'a str,
        span: Span,
        nodes: &mut HashMap<&'a str, Span>,
    ) {
        if is_open(name) {
            return;
        }
        let (message, help) = if name.len() > NODE_NAME {
            (
                format!(
                    "the node's name has {} characters, of at most {NODE_NAME}",
                    name.len()
                ),
                "shorten it",
            )
        } else if !is_identifier(name) {
            (
                format!("`{name}` is no name of a node"),
                "a name begins with a letter, and has letters, digits, `-`, `.` and `_`",
            )
        } else if nodes.insert(name, span).is_some() {
            (
                format!("two nodes are called `{name}`"),
                "give each a name of its own",
            )
        } else {
            return;
        };
        self.refuse(ProblemKind::NameRefused, option, span, message, help);
    }
}
