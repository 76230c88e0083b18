//! libvirt's own test data, which lives outside this repository (`VMDISK_CORPUS`).
// A test may look at files and print; the crate may not.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use vmdisk_libvirt::read;

/// The corpus, or nothing and a line that says so.
fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("VMDISK_CORPUS");
    if path.is_none() {
        vmdisk_testing::skipped_even_if_required(
            "needs VMDISK_CORPUS (a folder with libvirt's test data)",
        );
    }
    path.map(PathBuf::from)
}

/// Every XML file of a directory, with its text; a corpus without files is no corpus.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no XML in {}", directory.display());
    files
}

#[test]
fn nothing_that_libvirt_accepts_is_reported_and_all_of_it_is_written_back() {
    let Some(corpus) = corpus() else { return };
    let mut disks = 0;
    let mut wrong = Vec::new();
    for (name, text) in files(&corpus.join("qemuxmlconf")) {
        let document = match read(&text) {
            Ok(document) => document,
            Err(failure) => {
                wrong.push(format!("{name}: {failure}"));
                continue;
            }
        };
        disks += document.domain.disks.len();
        for problem in &document.problems {
            wrong.push(format!("{name}: {} at {:?}", problem.message, problem.span));
        }
        let written = document.write().unwrap();
        let again = read(&written).unwrap();
        if again.domain != document.domain || again.write().unwrap() != written {
            wrong.push(format!("{name}: differs when written and read again"));
        }
        if !again.problems.is_empty() {
            wrong.push(format!("{name}: what is written has problems"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(disks > 500, "only {disks} disks: is this the corpus?");
}

#[test]
fn what_libvirt_refuses_is_read_all_the_same() {
    let Some(corpus) = corpus() else { return };
    let mut read_count = 0;
    for (name, text) in files(&corpus.join("qemuxmlconf-refused")) {
        match read(&text) {
            Ok(document) => {
                read_count += 1;
                let written = document.write().unwrap();
                let again = read(&written).unwrap();
                assert_eq!(again.domain, document.domain, "{name}");
            }
            Err(failure) => panic!("{name}: {failure}"),
        }
    }
    assert!(read_count > 20, "only {read_count} files");
}

#[test]
fn a_disk_snippet_is_read_without_a_problem() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    for (name, text) in files(&corpus.join("qemublock-xml2json")) {
        match read(&text) {
            Ok(document) => wrong.extend(
                document
                    .problems
                    .iter()
                    .map(|problem| format!("{name}: {}", problem.message)),
            ),
            Err(failure) => wrong.push(format!("{name}: {failure}")),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// An element for comparing: names and values, in an order that does not matter to libvirt.
#[derive(Debug, PartialEq, Eq)]
struct Canonical {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Canonical>,
}

fn canonical(node: roxmltree::Node<'_, '_>) -> Canonical {
    let mut attributes: Vec<(String, String)> = node
        .attributes()
        .map(|attribute| (attribute.name().to_owned(), number(attribute.value())))
        .collect();
    attributes.sort();
    let mut children: Vec<Canonical> = node
        .children()
        .filter(roxmltree::Node::is_element)
        .map(canonical)
        .collect();
    // Among elements of one name the order stays, and among controllers of one kind.
    let kind = |child: &Canonical| {
        let mut attributes = child.attributes.iter();
        attributes
            .find(|(name, _)| name == "type" && child.name == "controller")
            .cloned()
    };
    children.sort_by(|a, b| (&a.name, kind(a)).cmp(&(&b.name, kind(b))));
    let text: String = node
        .children()
        .filter(roxmltree::Node::is_text)
        .filter_map(|text| text.text())
        .collect();
    let mut text = match children.is_empty() {
        true => number(text.trim()),
        false => text.trim().to_owned(),
    };
    let name = node.tag_name().name();
    let unit = attributes.iter().position(|(name, _)| name == "unit");
    let is_of_guest = node
        .parent_element()
        .is_some_and(|parent| parent.tag_name().name() == "domain");
    let default = match name {
        "memory" if is_of_guest => Some("KiB"),
        "max_size" => Some("bytes"),
        _ => None,
    };
    if let Some(default) = default {
        let unit = unit.map(|unit| attributes.remove(unit).1);
        let scale = vmdisk_model::Bytes::scale(unit.as_deref().unwrap_or(default)).unwrap();
        text = format!("{} bytes", text.parse::<u64>().unwrap() * scale);
    }
    Canonical {
        name: name.to_owned(),
        attributes,
        text,
        children,
    }
}

/// A number in one of libvirt's three bases as a decimal one.
fn number(text: &str) -> String {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    value.map_or_else(|| text.to_owned(), |value: u64| value.to_string())
}

/// Notes where two elements differ, by path.
fn compare(path: &str, before: &Canonical, after: &Canonical, out: &mut Vec<String>) {
    let path = format!("{path}/{}", before.name);
    if before.attributes != after.attributes {
        for (name, value) in &before.attributes {
            if !after.attributes.contains(&(name.clone(), value.clone())) {
                out.push(format!("{path}/@{name} lost or changed"));
            }
        }
        for (name, _) in &after.attributes {
            if !before.attributes.iter().any(|(known, _)| known == name) {
                out.push(format!("{path}/@{name} added"));
            }
        }
    }
    if before.text != after.text {
        out.push(format!("{path}/text() changed"));
    }
    let count =
        |of: &Canonical, name: &str| of.children.iter().filter(|it| it.name == name).count();
    let mut at = 0;
    for child in &before.children {
        if count(before, &child.name) != count(after, &child.name) {
            out.push(format!("{path}/{} lost", child.name));
            continue;
        }
        while after.children[at].name != child.name {
            at += 1;
        }
        compare(&path, child, &after.children[at], out);
        at += 1;
    }
    for child in &after.children {
        if count(before, &child.name) == 0 {
            out.push(format!("{path}/{} added", child.name));
        }
    }
}

/// What may differ when a guest is written back, and why.
const TOLERATED: &[(&str, &str)] = &[
    (
        "/devices/disk/@type added",
        "`file` is written where nothing is",
    ),
    (
        "/devices/disk/driver added",
        "the driver is written, with its name",
    ),
    (
        "/devices/disk/driver/@name added",
        "the driver's name is written",
    ),
    (
        "/devices/disk/address/@target added",
        "a place is written with all its parts, the target 0 too",
    ),
];

#[test]
fn no_guest_loses_anything_when_it_is_written_back() {
    let Some(corpus) = corpus() else { return };
    let mut found: std::collections::BTreeMap<String, Vec<String>> = Default::default();
    let mut tolerated = std::collections::BTreeSet::new();
    let mut count = 0;
    for (name, text) in files(&corpus.join("qemuxmlconf")) {
        let written = read(&text).unwrap().write().unwrap();
        let parse = |text: &str| {
            canonical(
                roxmltree::Document::parse(text)
                    .unwrap_or_else(|error| panic!("{name}: {error}"))
                    .root_element(),
            )
        };
        let mut differences = Vec::new();
        compare("", &parse(&text), &parse(&written), &mut differences);
        count += 1;
        for difference in differences {
            match TOLERATED.iter().find(|(end, _)| difference.ends_with(end)) {
                Some((end, _)) => _ = tolerated.insert(*end),
                None => found.entry(difference).or_default().push(name.clone()),
            }
        }
    }
    println!(
        "{count} guests were written back, with {} differences that are tolerated",
        TOLERATED.len()
    );
    assert!(count > 600, "only {count} guests");
    assert!(found.is_empty(), "{found:#?}");
    for (end, reason) in TOLERATED {
        assert!(tolerated.contains(end), "no longer needed: {end}: {reason}");
    }
}

/// Elements that the model covers, so that they are written anew; all others are other people's.
const OWNED: &[&str] = &[
    "name",
    "uuid",
    "memory",
    "blkiotune",
    "memoryBacking",
    "vcpu",
    "iothreads",
    "iothreadids",
    "defaultiothread",
    "throttlegroups",
    "os",
    "cpu",
    "devices",
    "disk",
    "controller",
];

#[test]
fn what_is_other_peoples_is_written_back_byte_by_byte() {
    let Some(corpus) = corpus() else { return };
    let (mut elements, mut bytes, mut wrong) = (0, 0, Vec::new());
    for (name, text) in files(&corpus.join("qemuxmlconf")) {
        let written = read(&text).unwrap().write().unwrap();
        let tree = roxmltree::Document::parse(&text).unwrap();
        let around = tree.root_element().children();
        let inside = around
            .clone()
            .filter(|child| child.has_tag_name("devices"))
            .flat_map(|devices| devices.children());
        for node in around.chain(inside).filter(roxmltree::Node::is_element) {
            if OWNED.contains(&node.tag_name().name()) {
                continue;
            }
            let verbatim = &text[node.range()];
            elements += 1;
            bytes += verbatim.len();
            // Where it stands among others libvirt does not mind.
            if !written.contains(verbatim) {
                wrong.push(format!("{name}: {verbatim}"));
            }
        }
    }
    println!("{elements} elements of {bytes} bytes were written back as they were");
    assert!(elements > 5000, "only {elements} elements");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Guests that libvirt makes something else of, and why.
const RESOLVED_DIFFERENTLY: &[(&str, &str)] = &[(
    "hostdev-scsi-autogen-address",
    "devices of the host without an address, which libvirt finds a controller for and the model does not hold",
)];

/// What a guest's disks and controllers are told apart by.
fn outline(document: &vmdisk_libvirt::Document) -> Vec<String> {
    let kept = &document.kept;
    outline_of(&document.domain, kept)
}

fn outline_of(domain: &vmdisk_model::Domain, kept: &vmdisk_libvirt::Unmodeled) -> Vec<String> {
    use vmdisk_model::{Address, BackendSource};
    let mut lines = Vec::new();
    for (nth, disk) in domain.disks.iter().enumerate() {
        let frontend = &disk.frontend;
        let format = match &disk.backend.source {
            BackendSource::Image(image) => image.format.map(|format| format.to_string()),
            BackendSource::VhostUser(_) | BackendSource::Empty => {
                let has = kept.disk(nth).names().any(|name| name == "driver/@type");
                has.then(|| "raw".to_owned())
            }
        };
        let address = match frontend.address {
            Some(Address::Drive(place)) => Some(place),
            _ => None,
        };
        lines.push(format!(
            "disk {} {:?} {:?} {format:?} {address:?} read-only {} snapshot {:?}",
            disk.name(),
            frontend.device,
            frontend.bus,
            disk.backend.is_read_only,
            // libvirt does not write what it takes for a read-only disk anyhow.
            disk.backend.snapshot.filter(|_| !disk.backend.is_read_only),
        ));
    }
    for controller in &domain.controllers {
        lines.push(format!(
            "controller {} {:?} {:?} {:?} {:?}",
            controller.controller_type,
            controller.index,
            controller.scsi_model,
            controller.other_model,
            controller.start_port
        ));
    }
    lines.sort();
    lines
}

#[test]
fn a_resolved_guest_has_libvirts_drivers_buses_controllers_and_places() {
    let Some(corpus) = corpus() else { return };
    let directory = corpus.join("qemuxmlconf");
    let (mut guests, mut disks, mut wrong) = (0, 0, Vec::new());
    for (name, text) in files(&directory) {
        let Some(case) = name.strip_suffix(".x86_64-latest.xml") else {
            continue;
        };
        let source = std::fs::read_to_string(directory.join(format!("{case}.xml"))).unwrap();
        let document = read(&source).unwrap();
        let resolved = vmdisk_libvirt::resolve(&document.domain, &document.kept);
        let ours = outline_of(&resolved.domain, &resolved.kept);
        let theirs = outline(&read(&text).unwrap());
        guests += 1;
        disks += document.domain.disks.len();
        let exception = RESOLVED_DIFFERENTLY
            .iter()
            .find(|(known, _)| *known == case);
        match exception {
            Some((_, reason)) if ours == theirs => {
                wrong.push(format!("{case} is no longer different: {reason}"));
            }
            Some(_) => {}
            None => {
                for line in theirs.iter().filter(|line| !ours.contains(line)) {
                    wrong.push(format!("{case}: libvirt's {line}"));
                }
                for line in ours.iter().filter(|line| !theirs.contains(line)) {
                    wrong.push(format!("{case}: ours      {line}"));
                }
            }
        }
        if !resolved.conflicts.is_empty() {
            wrong.push(format!("{case}: {:?}", resolved.conflicts));
        }
        let again = vmdisk_libvirt::resolve(&resolved.domain, &resolved.kept);
        if !again.decisions.is_empty() {
            wrong.push(format!("{case}: decided twice: {:?}", again.decisions));
        }
    }
    println!(
        "{guests} guests with {disks} disks are resolved as libvirt does it, {} apart",
        RESOLVED_DIFFERENTLY.len()
    );
    assert!(guests > 300, "only {guests} guests");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pools_and_volumes_are_read_without_a_problem() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    let mut read_count = 0;
    for directory in ["storagepool-in", "storagevol-in"] {
        for (name, text) in files(&corpus.join(directory)) {
            match read(&text) {
                Ok(document) => {
                    read_count += usize::from(document.storage.is_some());
                    wrong.extend(
                        document
                            .problems
                            .iter()
                            .map(|problem| format!("{name}: {}", problem.message)),
                    );
                }
                Err(failure) => wrong.push(format!("{name}: {failure}")),
            }
        }
    }
    println!("{read_count} pools and volumes were read");
    assert_eq!(wrong, Vec::<String>::new());
    assert!(read_count > 60, "only {read_count} pools and volumes");
}
