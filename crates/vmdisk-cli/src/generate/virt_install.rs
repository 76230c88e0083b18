//! Planned disks as options of `virt-install`, for those who build guests with it.
//!
//! An attribute or a text of libvirt's XML is an option of the same name where virt-install 4.1 has one, and an XPath
//! otherwise.

use std::fmt::Write as _;

use roxmltree::{Document, Node};
use vmdisk::model::Bytes;
use vmdisk::plan::{BackendSpec, DiskSpec, Plan, Spec, StepKind, shell_word};
use vmdisk::write;

use super::write::{Written, unwritable};
use crate::render::message::Message;
use crate::stop::Stop;

/// What virt-install names as libvirt's XML does, with a dot for each level.
const NAMES: [&str; 42] = [
    "address.bus",
    "address.controller",
    "address.domain",
    "address.function",
    "address.slot",
    "address.target",
    "address.type",
    "address.unit",
    "blockio.logical_block_size",
    "blockio.physical_block_size",
    "boot.order",
    "device",
    "driver.cache",
    "driver.copy_on_read",
    "driver.detect_zeroes",
    "driver.discard",
    "driver.error_policy",
    "driver.io",
    "driver.iommu",
    "driver.iothread",
    "driver.name",
    "driver.packed",
    "driver.queues",
    "driver.type",
    "index",
    "model",
    "rawio",
    "readonly",
    "serial",
    "shareable",
    "source.dev",
    "source.file",
    "source.name",
    "source.pool",
    "source.protocol",
    "source.volume",
    "target.bus",
    "target.dev",
    "target.removable",
    "target.rotation_rate",
    "transient",
    "type",
];

/// The options, one to a line. What virt-install makes as planned, it makes; the rest has to be there.
pub(crate) fn write(spec: &Spec, plan: &Plan) -> Result<Written, Stop> {
    let xml = write::libvirt_xml(&plan.domain).map_err(unwritable)?;
    let document = Document::parse(&xml).map_err(|error| Stop::new(error.to_string()))?;
    let mut text = String::new();
    let mut option = |name: &str, words: &[String]| {
        let _ = writeln!(text, "--{name} {}", shell_word(&words.join(",")));
    };
    let mut number = 0;
    let mut is_made_before = false;
    let guest = document.root_element().children();
    let devices = guest.clone().filter(|it| it.has_tag_name("devices"));
    for element in guest.chain(devices.flat_map(|it| it.children())) {
        let name = element.tag_name().name();
        match name {
            "iothreads" => option(
                name,
                &[element.text().unwrap_or_default().trim().to_owned()],
            ),
            "iothreadids" => option("iothreads", &words(element, "./iothreadids")),
            "memoryBacking" => option("memorybacking", &words(element, ".")),
            "controller" => option(name, &words(element, ".")),
            "disk" => {
                let mut words = words(element, ".");
                match spec
                    .disks
                    .get(number)
                    .and_then(|disk| size(disk, plan, number))
                {
                    // It makes only what `path` names.
                    Some(size) => {
                        words.retain(|word| !word.starts_with("type="));
                        let path = |word: String| word.replacen("source.file=", "path=", 1);
                        words = words.into_iter().map(path).chain(size).collect();
                    }
                    None => is_made_before |= plan.steps.iter().any(|step| step.disk == number),
                }
                number += 1;
                option(name, &words);
            }
            _ => {}
        }
    }
    let warning = Message::warning("virt-install does not make all of this storage as planned")
        .help("make it first: `vmdisk apply`, or the script of `--to script`".to_owned());
    let warnings = is_made_before.then_some(warning).into_iter().collect();
    Ok(Written { text, warnings })
}

/// The size of a file that virt-install makes as planned: it preallocates the tables of a qcow2 image, and nothing else.
fn size(disk: &DiskSpec, plan: &Plan, number: usize) -> Option<[String; 2]> {
    let mut steps = plan.steps.iter().filter(|step| step.disk == number);
    let step = steps.next().filter(|_| steps.next().is_none())?;
    let choice = |option: &str| {
        let mut choices = plan.choices.iter();
        choices.find(|it| it.at.disk() == Some(number) && it.option == option)
    };
    let preallocation = choice("preallocation").map(|it| it.value.as_str());
    let (size, mode) = match (&disk.backend, step.kind, preallocation) {
        (BackendSpec::Raw(raw), StepKind::RawFile, Some("off")) if raw.mode.is_none() => {
            (raw.size?, &raw.owner)
        }
        (BackendSpec::Qcow2(qcow2), StepKind::Qcow2Image, Some("metadata"))
            if qcow2.mode.is_none() && qcow2.encryption.is_none() =>
        {
            (qcow2.size?, &qcow2.owner)
        }
        _ => return None,
    };
    let is_nocow = choice("nocow").is_some_and(|it| it.value == "true");
    let is_whole = size.0.is_multiple_of(Bytes::gib(1).0);
    (mode.is_none() && !is_nocow && is_whole)
        .then(|| [format!("size={}", size.0 >> 30), "sparse=yes".to_owned()])
}

/// What an element says, as `NAME=VALUE`.
fn words(element: Node<'_, '_>, at: &str) -> Vec<String> {
    let (mut words, mut paths) = (Vec::new(), 0);
    for (path, value) in values(element, at) {
        // A comma ends a value, two are one.
        let text = value.as_deref().unwrap_or("yes").replace(',', ",,");
        let name = path.trim_start_matches("./").replace('@', "");
        let name = name.replace('/', ".");
        if NAMES.contains(&name.as_str()) {
            words.push(format!("{name}={text}"));
            continue;
        }
        paths += 1;
        words.push(match value {
            Some(_) => format!("xpath{paths}.set={path},xpath{paths}.value={text}"),
            None => format!("xpath{paths}.create={path}"),
        });
    }
    words
}

/// Each attribute and text of an element by its XPath; an element without both has no value.
fn values(element: Node<'_, '_>, at: &str) -> Vec<(String, Option<String>)> {
    let attributes = element.attributes();
    let attributes = attributes.map(|it| (format!("{at}/@{}", it.name()), it.value()));
    let mut found: Vec<_> = attributes
        .map(|(path, value)| (path, Some(value.to_owned())))
        .collect();
    let children: Vec<_> = element.children().filter(Node::is_element).collect();
    let text = element.text().map(str::trim).filter(|it| !it.is_empty());
    for child in &children {
        let is_same = |it: &&Node<'_, '_>| it.tag_name() == child.tag_name();
        let same: Vec<_> = children.iter().filter(is_same).collect();
        let nth = same.iter().position(|it| *it == child).unwrap_or_default() + 1;
        let name = child.tag_name().name();
        let path = match same.len() {
            1 => format!("{at}/{name}"),
            _ => format!("{at}/{name}[{nth}]"),
        };
        found.extend(values(*child, &path));
    }
    match text {
        Some(text) if children.is_empty() => found.push((at.to_owned(), Some(text.to_owned()))),
        _ if found.is_empty() => found.push((at.to_owned(), None)),
        _ => {}
    }
    found
}
