//! `<seclabel>`: access rights of the guest and its disks; kept unchanged, and checked for conflicts.

use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::xml::Node;

/// Reports labels of disks in a guest whose own label disables relabelling: libvirt allows no exceptions
/// (`virSecurityDeviceLabelDefValidate`).
pub(crate) fn check(reader: &mut Reader<'_>, domain: &Element<'_>) {
    let fixed: Vec<&str> = domain
        .children
        .iter()
        .filter(|child| child.is_named("seclabel") && !is_relabelled(child.node))
        .filter_map(|child| child.attribute("model"))
        .collect();
    if fixed.is_empty() {
        return;
    }
    let is = |node: Option<Node<'_>>, word| node.is_some_and(|node| node.is_named(word));
    let of_sources = domain.node.descendants().filter(|node| {
        node.is_named("seclabel")
            && is(node.parent(), "source")
            && node.ancestors().any(|node| node.is_named("disk"))
    });
    for node in of_sources {
        let Some(model) = node
            .attribute("model")
            .filter(|model| fixed.contains(model))
        else {
            continue;
        };
        let message = format!(
            "the guest disables relabelling for the model `{model}`, but this source has its own label"
        );
        let span = node.span();
        reader.problem(&INVALID_VALUE, domain.at, span, message);
    }
}

/// libvirt's default of `relabel`: only generated labels are applied to files.
fn is_relabelled(label: Node<'_>) -> bool {
    match label.attribute("relabel") {
        Some(word) => word == "yes",
        None => !matches!(label.attribute("type"), Some("static" | "none")),
    }
}
