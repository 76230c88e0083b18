//! The input of rules about XML text.

use vmdisk_facts::host::Security;
use vmdisk_model::FieldPath;
use vmdisk_rule::{Context, Report, TextRule};
use vmdisk_source::SourceMap;

use crate::RootKind;
use crate::passthrough::Passthrough;
use crate::xml::{Node, Tree};

/// A rule about XML.
pub(crate) type XmlRule = TextRule<fn(&Xml<'_>, &mut Report)>;

/// Declares a rule about XML, as [`vmdisk_rule::declare_rule`] does.
macro_rules! xml_rule {
    ($($rule:tt)+) => {
        vmdisk_rule::declare_rule! { static RULE: $crate::rules::xml::XmlRule; $($rule)+ }
    };
}

pub(crate) use xml_rule;

/// A document that has been read, and the other inputs of rules.
pub(crate) struct Xml<'t> {
    /// Model, facts and target.
    pub(crate) context: &'t Context<'t>,
    /// The text.
    pub(crate) text: &'t str,
    /// Its elements.
    pub(crate) tree: Tree<'t>,
    /// The kind of its root element.
    pub(crate) root: RootKind,
    /// The spans of the fields of the model.
    pub(crate) map: &'t SourceMap<FieldPath>,
    /// The arguments that libvirt passes to QEMU unread.
    pub(crate) passthrough: &'t Passthrough,
}

impl Xml<'_> {
    /// True if libvirt confines this guest by a security module, which is on on this host.
    pub(crate) fn is_confined_by(&self, module: &str, is_on: impl Fn(&Security) -> bool) -> bool {
        let Some(facts) = self.context.host.map(|host| host.facts()) else {
            return false;
        };
        let conf = facts
            .libvirt
            .value()
            .and_then(|libvirt| libvirt.qemu_conf.value());
        let drivers = conf.and_then(|conf| conf.security_driver.value());
        let uses = drivers.is_none_or(|drivers| drivers.iter().any(|driver| driver == module));
        let root = self.tree.root();
        let mut labels = root.children().filter(|node| node.is_named("seclabel"));
        // A model that is none of the others may be this one: a template can fill it in.
        let is_off = labels.any(|label| {
            let others = ["apparmor", "dac", "selinux"];
            let model = label.attribute("model");
            let is_other = model.is_some_and(|it| it != module && others.contains(&it));
            label.attribute("type") == Some("none") && !is_other
        });
        is_on(&facts.security) && uses && !is_off
    }

    /// The `<devices>` of a guest.
    pub(crate) fn devices(&self) -> Option<Node<'_>> {
        let root = self.tree.root();
        match self.root {
            RootKind::Domain => root.child("devices"),
            RootKind::Devices => Some(root),
            _ => None,
        }
    }

    /// The disks of a guest, with their numbers in the model.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (usize, Node<'_>)> {
        let devices = self.devices().into_iter().flat_map(Node::children);
        devices.filter(|node| node.is_named("disk")).enumerate()
    }
}
