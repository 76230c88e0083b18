//! Properties of devices and members of nodes, by release and by recording.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::path::Path;

use vmdisk::facts::{Introspection, MemberTable, Owner, Target, Version, is_unstable};
use vmdisk::{LintOptions, Severity, lint, read};

/// A recording in `fixtures/capabilities`.
fn recording(Version(major, minor, _): Version) -> Introspection {
    let path = format!("../../fixtures/capabilities/{major}.{minor}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Introspection::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The owner with one property, as an option; `None` for an object.
fn option(owner: Owner<'_>, name: &str) -> Option<String> {
    match owner {
        Owner::Device(driver) => Some(format!("-device {driver},{name}=1")),
        Owner::Node(driver) => Some(format!("-blockdev driver={driver},node-name=n,{name}=1")),
        Owner::Object(_) => None,
    }
}

/// True if a command line is said to have a property that its owner lacks.
fn is_reported(text: &str, name: &str, target: &Target) -> bool {
    let document = read(&format!("qemu-system-x86_64 -nodefaults {text}\n")).expect(text);
    let options = LintOptions {
        target: target.clone(),
        ..LintOptions::default()
    };
    let report = lint(&document, &options);
    let lacks = format!("has no property `{name}`");
    let mut found = report.diagnostics.iter();
    found.any(|it| it.rule.name == "property-refused" && it.title.contains(&lacks))
}

#[test]
fn a_property_is_reported_exactly_for_the_releases_and_programs_that_lack_it() {
    let table = MemberTable::recorded();
    let mut walked = 0;
    let mut wrong = Vec::new();
    for release in table.releases() {
        let recording = recording(*release);
        let by_version = Target {
            qemu: Some(*release),
            ..Target::default()
        };
        let probed = recording.target();
        for (owner, members) in table.owners() {
            let Some(here) = recording.members.get(&owner.key()) else {
                continue;
            };
            for name in members.keys().filter(|name| !is_unstable(name)) {
                // `driver`, `bus` and `id` are the option's own, and the cache of a node is an object.
                let Some(text) = option(owner, name).filter(|_| {
                    !matches!(
                        name.as_str(),
                        "driver" | "node-name" | "bus" | "id" | "cache"
                    )
                }) else {
                    continue;
                };
                walked += 1;
                for (how, target) in [("version", &by_version), ("program", &probed)] {
                    if is_reported(&text, name, target) == here.contains_key(name) {
                        wrong.push(format!("QEMU {release} by {how}: {text}"));
                    }
                }
            }
        }
    }
    println!("{walked} properties in {} releases", table.releases().len());
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    assert!(walked > 4000, "only {walked} properties were walked");
}

#[test]
fn in_order_is_refused_by_qemu_7_2_and_taken_by_10_0_and_where_no_version_is_known() {
    let text = "-blockdev driver=file,node-name=f0,filename=/srv/a.img \
                -device virtio-blk-pci,drive=f0,in_order=on";
    for (target, is_wrong) in [
        ("qemu=7.2", true),
        ("qemu=10.0", false),
        ("kernel=6.1", false),
    ] {
        let target: Target = target.parse().unwrap();
        assert_eq!(is_reported(text, "in_order", &target), is_wrong, "{target}");
    }
    let probed = recording(Version(7, 2, 0)).target();
    assert!(is_reported(text, "in_order", &probed));
}

#[test]
fn a_writable_disk_on_a_web_server_is_an_error_unless_libvirt_may_use_nbdkit() {
    let text = "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none'/>\
                <source protocol='https' name='a.img'><host name='store.example' port='443'/></source>\
                <target dev='vda' bus='virtio'/></disk>";
    let document = read(text).unwrap();
    for (target, severity) in [
        ("libvirt=9.7", Severity::Error),
        ("libvirt=9.8", Severity::Warning),
        ("libvirt=9.10", Severity::Warning),
        ("libvirt=10.0", Severity::Error),
        ("qemu=10.0", Severity::Warning),
    ] {
        let options = LintOptions {
            target: target.parse().unwrap(),
            ..LintOptions::default()
        };
        let report = lint(&document, &options);
        let found: Vec<Severity> = report
            .diagnostics
            .iter()
            .filter(|it| it.rule.name == "web-source-writable")
            .map(|it| it.severity)
            .collect();
        assert_eq!(found, [severity], "{target}");
    }
}

/// A disk whose chain has so many images.
fn chain(images: usize) -> String {
    let lower: String = (1..images)
        .map(|number| {
            format!(
                "<backingStore type='file'><format type='qcow2'/><source file='/srv/{number}.qcow2'/>"
            )
        })
        .collect();
    let ends = "</backingStore>".repeat(images - 1);
    format!(
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/0.qcow2'/>\
         {lower}<backingStore/>{ends}<target dev='vda' bus='virtio'/></disk>"
    )
}

#[test]
fn a_chain_of_26_images_is_an_error_for_libvirt_10_8_to_11_10() {
    for (images, target, severity) in [
        (25, "libvirt=11.3", Severity::Warning),
        (26, "libvirt=10.7", Severity::Warning),
        (26, "libvirt=10.8", Severity::Error),
        (26, "libvirt=11.3", Severity::Error),
        (26, "libvirt=11.10", Severity::Error),
        (26, "libvirt=12.0", Severity::Warning),
        (26, "kernel=6.1", Severity::Warning),
    ] {
        let document = read(&chain(images)).expect("a disk");
        let options = LintOptions {
            target: target.parse().expect(target),
            ..LintOptions::default()
        };
        let report = lint(&document, &options);
        let mut found = report.diagnostics.iter();
        let found = found.find(|it| it.rule.name == "chain-too-long");
        let found = found.map(|it| it.severity);
        assert_eq!(found, Some(severity), "{images} images, {target}");
    }
}
