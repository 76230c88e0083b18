//! `<seclabel>`: who may open what; kept as it is written, and checked where the guest's and a disk's go together.

use roxmltree::Node;
use vmdisk_source::ProblemKind;

use crate::element::Element;
use crate::reader::Reader;
use crate::tree::{attribute, name};

/// Reports labels of disks in a guest whose own label says that nothing is relabelled: libvirt takes no exceptions
/// from that (`virSecurityDeviceLabelDefValidate`).
pub(crate) fn check(reader: &mut Reader<'_>, domain: &Element<'_, '_>) {
    let text = reader.text;
    let fixed: Vec<&str> = domain
        .children
        .iter()
        .filter(|child| child.name == "seclabel" && !is_relabelled(child.node))
        .filter_map(|child| attribute(child.node, "model"))
        .collect();
    if fixed.is_empty() {
        return;
    }
    let is = |node: Option<Node<'_, '_>>, word| node.is_some_and(|node| name(text, node) == word);
    let of_sources = domain.node.descendants().filter(|node| {
        node.is_element()
            && is(Some(*node), "seclabel")
            && is(node.parent(), "source")
            && node.ancestors().any(|node| is(Some(node), "disk"))
    });
    for node in of_sources {
        let Some(model) = attribute(node, "model").filter(|model| fixed.contains(model)) else {
            continue;
        };
        let message = format!(
            "the guest relabels nothing with the model `{model}`, and this source is to have a label of its own"
        );
        let span = node.range().into();
        reader.problem(ProblemKind::InvalidValue, domain.at, span, message);
    }
}

/// What libvirt takes `relabel` for where it is not written: only labels that it makes up are put on files.
fn is_relabelled(label: Node<'_, '_>) -> bool {
    match attribute(label, "relabel") {
        Some(word) => word == "yes",
        None => !matches!(attribute(label, "type"), Some("static" | "none")),
    }
}
