//! Properties of devices and members of nodes, by release and by recording.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::path::Path;

use vmdisk::facts::{Facts, Introspection, MemberTable, Owner, Target, Version, is_unstable};
use vmdisk::{Host, LintOptions, Severity, lint, read};

/// A recording in `fixtures/capabilities`.
fn recording(Version(major, minor, _): Version) -> Introspection {
    let path = format!("../../fixtures/capabilities/{major}.{minor}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Introspection::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The owner with one property, as an option.
fn option(owner: Owner<'_>, name: &str) -> String {
    match owner {
        Owner::Device(driver) => format!("-device {driver},{name}=1"),
        Owner::Node(driver) => format!("-blockdev driver={driver},node-name=n,{name}=1"),
        Owner::Object(kind) => format!("-object {kind},id=o,{name}=1"),
    }
}

/// True if a command line is said to have a property that its owner lacks.
fn is_reported(text: &str, name: &str, target: &Target) -> bool {
    let document = read(&format!("qemu-system-x86_64 -nodefaults {text}\n")).expect(text);
    let options = LintOptions::default().target(target.clone());
    let report = lint(&document, &options);
    let lacks = format!("has no property `{name}`");
    let mut found = report.diagnostics.iter();
    found.any(|it| it.rule.name == "property-refused" && it.title.contains(&lacks))
}

#[test]
fn a_property_is_reported_exactly_for_the_releases_and_programs_that_lack_it() {
    let table = MemberTable::recorded();
    let (mut walked, mut objects) = (0, 0);
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
                if matches!(
                    name.as_str(),
                    "driver" | "node-name" | "bus" | "id" | "cache"
                ) {
                    continue;
                }
                // A shell may replace an unquoted pattern such as `isa-irq[0]` by names of files.
                let text = option(owner, name).replace('[', "'['");
                walked += 1;
                objects += usize::from(matches!(owner, Owner::Object(_)));
                for (how, target) in [("version", &by_version), ("program", &probed)] {
                    if is_reported(&text, name, target) == here.contains_key(name) {
                        wrong.push(format!("QEMU {release} by {how}: {text}"));
                    }
                }
            }
        }
    }
    println!(
        "{walked} properties in {} releases, {objects} of them of objects",
        table.releases().len()
    );
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    assert!(walked > 4000, "only {walked} properties were walked");
    assert!(
        objects > 200,
        "only {objects} properties of objects were walked"
    );
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
        let options = LintOptions::default().target(target.parse::<Target>().unwrap());
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

/// The severity of a rule's finding; `None` without one.
fn severity_of(xml: &str, rule: &str, target: &str, facts: Option<&Facts>) -> Option<String> {
    let document = read(xml).expect("the XML is well-formed");
    let index = facts.cloned().map(Host::new);
    let options = LintOptions::default()
        .target(target.parse::<Target>().expect("a target"))
        .host(index.clone());
    let report = lint(&document, &options);
    let found = report.diagnostics.iter().find(|it| it.rule.name == rule)?;
    Some(found.severity.to_string())
}

/// A disk with a chain of so many images.
fn chain(images: usize) -> String {
    let below = (1..images).map(|nth| {
        format!("<backingStore type='file'><format type='qcow2'/><source file='/srv/{nth}.qcow2'/>")
    });
    format!(
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/0.qcow2'/>{}\
         <backingStore/>{}<target dev='vda' bus='virtio'/></disk>",
        below.collect::<String>(),
        "</backingStore>".repeat(images - 1)
    )
}

#[test]
fn a_chain_of_26_images_is_an_error_for_each_libvirt_that_does_not_start_it() {
    for (images, target, expected) in [
        (26, "libvirt=10.7", "warning"),
        (26, "libvirt=10.8", "error"),
        (26, "libvirt=11.10", "error"),
        (26, "libvirt=12.0", "warning"),
        (26, "qemu=10.0", "warning"),
        (25, "libvirt=11.3", "warning"),
    ] {
        let severity = severity_of(&chain(images), "chain-too-long", target, None);
        assert_eq!(severity.as_deref(), Some(expected), "{images} for {target}");
    }
}

#[test]
fn a_bug_of_a_file_system_is_reported_only_there() {
    let xfs = "../../fixtures/facts/xfs-nvme.json";
    let xfs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(xfs)).unwrap();
    let disk = |driver: &str| {
        format!(
            "<disk type='file' device='disk'><driver name='qemu' type='raw' {driver}/>\
             <source file='/srv/img/web1.img'/><target dev='vda' bus='virtio'/></disk>"
        )
    };
    for (kind, driver, target, expected) in [
        ("bcachefs", "cache='none'", "qemu=10.0.13", Some("error")),
        ("bcachefs", "cache='none'", "qemu=11.1", None),
        ("bcachefs", "cache='writeback'", "qemu=10.0.13", None),
        ("xfs", "cache='none'", "qemu=10.0.13", None),
        ("cifs", "io='io_uring'", "kernel=6.1", Some("warning")),
        ("cifs", "io='io_uring'", "kernel=5.14", None),
        ("cifs", "io='threads'", "kernel=6.1", None),
        ("xfs", "io='io_uring'", "kernel=6.1", None),
    ] {
        let facts = xfs.replace("\"kind\": \"xfs\"", &format!("\"kind\": \"{kind}\""));
        let facts = Facts::from_json(&facts).unwrap().facts;
        let severity = severity_of(&disk(driver), "known-bad-build", target, Some(&facts));
        assert_eq!(
            severity.as_deref(),
            expected,
            "{driver} on {kind} for {target}"
        );
    }
}

#[test]
fn io_uring_on_a_logical_volume_is_an_error_for_the_kernel_that_hangs() {
    let facts = "../../fixtures/facts/lvm-thin-64k.json";
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join(facts);
    let facts = std::fs::read_to_string(facts).unwrap();
    let facts = Facts::from_json(&facts).unwrap().facts;
    let disk = |path: &str, io: &str| {
        format!(
            "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' io='{io}'/>\
             <source dev='{path}'/><target dev='vda' bus='virtio'/></disk>"
        )
    };
    let (volume, drive) = ("/dev/vg0/web1", "/dev/nvme0n1");
    for (path, io, target, expected) in [
        (volume, "io_uring", "kernel=5.4", Some("error")),
        (volume, "io_uring", "kernel=5.10", Some("error")),
        (volume, "io_uring", "kernel=5.13", None),
        (volume, "native", "kernel=5.4", None),
        (drive, "io_uring", "kernel=5.4", None),
    ] {
        let severity = severity_of(&disk(path, io), "known-bad-build", target, Some(&facts));
        assert_eq!(severity.as_deref(), expected, "{io} on {path} for {target}");
    }
}

#[test]
fn words_of_libvirt_11_6_are_reported_for_the_release_before() {
    let granularity = |value: u32| {
        format!(
            "<disk type='file' device='disk'><source file='/srv/a.img'/><target dev='vda' bus='virtio'/>\
             <blockio discard_granularity='{value}'/></disk>"
        )
    };
    let rbd = |name: &str| {
        format!(
            "<disk type='network' device='disk'><driver name='qemu' type='raw'/>\
             <source protocol='rbd' name='{name}'><host name='mon.example'/></source>\
             <target dev='vda' bus='virtio'/></disk>"
        )
    };
    for (xml, target, expected) in [
        (granularity(0), "libvirt=11.5", Some("warning")),
        (granularity(0), "libvirt=11.6", None),
        (granularity(4096), "libvirt=11.5", None),
        (granularity(4096), "libvirt=9.7", Some("warning")),
        (rbd("pool/space/image"), "libvirt=11.5", Some("error")),
        (rbd("pool/space/image"), "libvirt=11.6", None),
        (rbd("pool/image"), "libvirt=11.5", None),
    ] {
        let severity = severity_of(&xml, "unsupported-by-target", target, None);
        assert_eq!(severity.as_deref(), expected, "{xml} for {target}");
    }
}

#[test]
fn io_uring_is_reported_for_kernels_of_rhel_that_lack_it() {
    let xfs = "../../fixtures/facts/xfs-nvme.json";
    let xfs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(xfs)).unwrap();
    let disk = "<disk type='file' device='disk'><driver name='qemu' type='raw' io='io_uring'/>\
                <source file='/srv/img/web1.img'/><target dev='vda' bus='virtio'/></disk>";
    for (release, version, vendor, is_reported) in [
        ("4.18.0-553.el8_10.x86_64", "[4, 18, 0]", "almalinux", true),
        (
            "5.14.0-284.11.1.el9_2.x86_64",
            "[5, 14, 0]",
            "almalinux",
            true,
        ),
        (
            "5.14.0-362.8.1.el9_3.x86_64",
            "[5, 14, 0]",
            "almalinux",
            false,
        ),
        ("5.14.0-284-custom", "[5, 14, 0]", "debian", false),
        ("6.12.77+deb13-amd64", "[6, 12, 77]", "debian", false),
    ] {
        let facts = xfs
            .replace("6.12.77+deb13-amd64", release)
            .replace("[6, 12, 77]", version)
            .replace(
                "\"vendor\": \"debian\"",
                &format!("\"vendor\": \"{vendor}\""),
            );
        let facts = Facts::from_json(&facts).unwrap().facts;
        let target = "qemu=7.2";
        let severity = severity_of(disk, "io-uring-disabled", target, Some(&facts));
        assert_eq!(severity.is_some(), is_reported, "{release} of {vendor}");
    }
}

/// A spec has the findings about the target's libvirt that the XML written for it has.
#[test]
fn a_spec_is_held_to_the_version_of_libvirt_as_its_xml_is() {
    let specs = [
        "version: 1\ndisks:\n- network: {protocol: nfs, hosts: h, name: /e/a.raw}\n",
        "version: 1\nguest: {iothreads: [{poll-max-ns: 0}]}\ndisks:\n- raw: {path: /a}\n  iothread: 1\n",
        "version: 1\nguest: {firmware: efi}\ndisks:\n- raw: {path: /a}\n",
    ];
    let mut found = 0;
    for spec in specs {
        for libvirt in [Version(4, 0, 0), Version(9, 0, 0), Version(11, 3, 0)] {
            let options = LintOptions::default().target(Target {
                libvirt: Some(libvirt),
                ..Target::default()
            });
            let places = |text: &str| {
                let report = lint(&read(text).expect(text), &options);
                let versions = report.diagnostics.into_iter();
                let versions = versions.filter(|it| it.rule.name == "unsupported-by-target");
                let mut places: Vec<_> = versions.map(|it| (it.at, it.severity)).collect();
                places.sort();
                places
            };
            let planned = options.planned(&read(spec).expect(spec)).expect(spec);
            let xml = vmdisk::write::libvirt_xml(planned.domain()).expect(spec);
            assert_eq!(places(spec), places(&xml), "{spec}{libvirt}");
            found += places(spec).len();
        }
    }
    assert!(found >= 4, "{found}");
}
