//! The guest of libvirt that is defined on the storage.

use roxmltree::Node;
use vmdisk::Document;
use vmdisk::model::Domain;
use vmdisk::plan::{Difference, Spec};

use super::program;
use crate::sanitize;

/// A guest of libvirt that a run asked for.
pub(super) enum Existing {
    Missing,
    There(Box<Document>),
    /// libvirt does not say.
    Unknown(String),
}

/// The guest as it is defined, or as it runs.
pub(super) fn existing(name: &str, is_inactive: bool) -> Existing {
    let mut argv = vec!["virsh", "dumpxml"];
    // A new definition needs its passwords.
    let of_definition = ["--inactive", "--security-info"];
    argv.extend(of_definition.into_iter().filter(|_| is_inactive));
    argv.extend(["--", name]);
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let answer = match program::ask(&argv) {
        Ok(answer) => answer,
        Err(why) => return Existing::Unknown(why),
    };
    let said = answer.stderr.trim();
    if !answer.is_success {
        let is_missing = ["failed to get domain", "Domain not found"];
        return match is_missing.iter().any(|text| said.contains(text)) {
            true => Existing::Missing,
            false => Existing::Unknown(format!("virsh dumpxml fails: {said}")),
        };
    }
    match vmdisk::read(&answer.stdout) {
        Ok(document) => Existing::There(Box::new(document)),
        Err(failure) => Existing::Unknown(format!("its XML cannot be read: {}", failure.message)),
    }
}

/// Differences, one a line.
pub(super) fn lines(differences: &[&Difference]) -> String {
    let line = |it: &&Difference| {
        let Difference {
            disk: _, // in the key
            key,
            planned,
            existing,
        } = it;
        format!("\n{key} is {existing}, and the plan has {planned}")
    };
    differences.iter().map(line).collect()
}

/// What a guest lacks to be reached, if its spec does not say that it lacks it.
pub(super) fn lacks(spec: &Spec, name: &str) -> String {
    let guest = spec.guest.as_ref();
    let has_network = guest.is_some_and(|guest| guest.network.is_some());
    let has_console = guest.is_some_and(|guest| guest.console.is_some());
    let (lacking, keys) = match (has_network, has_console) {
        (true, true) => return String::new(),
        (false, true) => ("no network card", "network: default"),
        (true, false) => ("no console", "console: serial"),
        (false, false) => (
            "no network card and no console",
            "network: default, console: serial",
        ),
    };
    let name = sanitize::line(name);
    format!("the guest {name} has {lacking}: `guest: {{{keys}}}` adds what is missing\n")
}

/// The planned devices beside the disks that a guest lacks: libvirt adds attributes and elements to those that it has.
pub(super) fn missing_devices(
    planned: &str,
    existing: &str,
) -> Result<Vec<Difference>, roxmltree::Error> {
    let parsed = roxmltree::Document::parse;
    let (planned, existing) = (parsed(planned)?, parsed(existing)?);
    let (planned, existing) = (devices(&planned), devices(&existing));
    let is_model =
        |it: &Node<'_, '_>| ["disk", "controller"].map(|name| it.has_tag_name(name)) == [false; 2];
    let others = planned.filter(Node::is_element).filter(is_model);
    let is_missing = |it: &Node<'_, '_>| !existing.clone().any(|other| has_all_of(other, *it));
    let missing = others.filter(is_missing).map(|it| Difference {
        disk: None,
        key: format!("the device `{}`", it.tag_name().name()),
        planned: it.document().input_text()[it.range()]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        existing: "missing or another one".to_owned(),
    });
    Ok(missing.collect())
}

fn devices<'a, 'input>(
    document: &'a roxmltree::Document<'input>,
) -> impl Iterator<Item = Node<'a, 'input>> + Clone {
    let all = document.root_element().children();
    all.filter(|it| it.has_tag_name("devices"))
        .flat_map(|it| it.children())
}

/// True for an element that has the name, the attributes, the texts and the elements of another.
fn has_all_of(one: Node<'_, '_>, other: Node<'_, '_>) -> bool {
    let text = |it: Node<'_, '_>| it.text().unwrap_or_default().trim().to_owned();
    let mut elements = other.children().filter(Node::is_element);
    one.tag_name() == other.tag_name()
        && (text(other).is_empty() || text(one) == text(other))
        && other
            .attributes()
            .all(|it| one.attribute(it.name()) == Some(it.value()))
        && elements.all(|it| one.children().any(|own| has_all_of(own, it)))
}

/// Whether the guest of libvirt is off; none if libvirt does not say it. A guest that crashed may have its images open.
pub(super) fn is_off(name: &str) -> Option<bool> {
    let state = program::output(&["virsh", "domstate", "--", name])?;
    let state = Some(state.trim()).filter(|it| !it.is_empty());
    state.map(|it| it == "shut off")
}

/// True if the guest of libvirt runs.
pub(super) fn is_running(name: &str) -> bool {
    is_off(name) == Some(false)
}

/// True if the guest runs, and has a file open.
pub(super) fn runs_with(name: &str, path: &str) -> bool {
    is_running(name)
        && matches!(existing(name, false), Existing::There(document) if has(document.domain(), path))
}

/// True if a guest has a file on the host.
pub(super) fn has(domain: &Domain, path: &str) -> bool {
    let images = domain.disks.iter().filter_map(|disk| disk.backend.image());
    let mut images = images.flat_map(|image| image.chain());
    images.any(|image| image.host_path() == Some(path))
}

pub(super) fn define(xml: &str) -> Result<(), String> {
    let argv = ["virsh", "define", "/dev/stdin"].map(str::to_owned);
    let answer = program::answer(&argv, xml)?;
    let failed = || format!("virsh define fails: {}", answer.stderr.trim());
    answer.is_success.then_some(()).ok_or_else(failed)
}
