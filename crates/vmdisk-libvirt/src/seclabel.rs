//! `<seclabel>`: access rights of the guest and its disks; kept unchanged, and checked where both must agree.

use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::xml::Node;

/// Reports labels of disks in a guest whose own label says that nothing is relabelled: libvirt takes no exceptions
/// from that (`virSecurityDeviceLabelDefValidate`).
pub(crate) fn check(reader: &mut Reader<'_>, domain: &Element<'_>) {
    let fixed: Vec<&str> = domain
        .children
        .iter()
        .filter(|child| child.name() == "seclabel" && !is_relabelled(child.node))
        .filter_map(|child| child.attribute("model"))
        .collect();
    if fixed.is_empty() {
        return;
    }
    let is = |node: Option<Node<'_>>, word| node.is_some_and(|node| node.name() == word);
    let of_sources = domain.node.descendants().filter(|node| {
        node.name() == "seclabel"
            && is(node.parent(), "source")
            && node.ancestors().any(|node| node.name() == "disk")
    });
    for node in of_sources {
        let Some(model) = node
            .attribute("model")
            .filter(|model| fixed.contains(model))
        else {
            continue;
        };
        let message = format!(
            "the guest relabels nothing with the model `{model}`, and this source is to have a label of its own"
        );
        let span = node.span();
        reader.problem(&INVALID_VALUE, domain.at, span, message);
    }
}

/// libvirt's default of `relabel`: only generated labels are put on files.
fn is_relabelled(label: Node<'_>) -> bool {
    match label.attribute("relabel") {
        Some(word) => word == "yes",
        None => !matches!(label.attribute("type"), Some("static" | "none")),
    }
}
