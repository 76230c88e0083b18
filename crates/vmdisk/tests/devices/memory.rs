//! `vhost-user-needs-shared-mem`, `hugepages-insufficient`, `tcg-instead-of-kvm`.

use vmdisk::rules::{Confidence, Severity};
use vmdisk_model::{DiskField, DomainField, FieldPath};

use super::support::{fix_of, guest, lint, lint_on, lint_with, text_of};

fn served(dev: &str) -> String {
    format!(
        "<disk type='vhostuser' device='disk'><driver name='qemu' type='raw'/><source type='unix' path='/run/{dev}.sock'/><target dev='{dev}' bus='virtio'/></disk>"
    )
}

#[test]
fn memory_is_shared_by_default_or_cell_by_cell() {
    let source = FieldPath::Domain(DomainField::MemorySource);
    let access = FieldPath::Domain(DomainField::MemoryAccess);
    let both = vec![(source, Some("memfd")), (access, Some("shared"))];
    let only_access = vec![(access, Some("shared"))];
    let cells = |a: &str, b: &str| {
        format!(
            "<cpu><numa><cell id='0' cpus='0' memory='1' unit='GiB' {a}/><cell id='1' cpus='1' memory='1' unit='GiB' {b}/></numa></cpu>"
        )
    };
    let (shared, private) = ("memAccess='shared'", "memAccess='private'");
    for (rest, fix) in [
        (String::new(), Some(both.clone())),
        (
            "<memoryBacking><access mode='private'/></memoryBacking>".to_owned(),
            Some(both.clone()),
        ),
        (
            "<memoryBacking><source type='anonymous'/></memoryBacking>".to_owned(),
            Some(both),
        ),
        (
            "<memoryBacking><source type='memfd'/></memoryBacking>".to_owned(),
            Some(only_access.clone()),
        ),
        (
            "<memoryBacking><hugepages/></memoryBacking>".to_owned(),
            Some(only_access),
        ),
        (
            "<memoryBacking><access mode='shared'/></memoryBacking>".to_owned(),
            None,
        ),
        (cells(shared, shared), None),
        // A cell that says private wins over the default, and no field of ours can change it.
        (
            format!(
                "<memoryBacking><access mode='shared'/></memoryBacking>{}",
                cells("", private)
            ),
            Some(vec![]),
        ),
    ] {
        let said = lint("vhost-user-needs-shared-mem", &guest(&rest, &served("vda")));
        match fix {
            Some(fix) => assert_eq!(fix_of(said.one()), fix, "{rest}"),
            None => said.is_clean(),
        }
    }
}

#[test]
fn one_finding_speaks_for_all_disks_that_a_daemon_serves() {
    let plain = "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a.img'/><target dev='vda' bus='virtio'/></disk>";
    let devices = plain.to_owned() + &served("vdb") + &served("vdc");
    let said = lint("vhost-user-needs-shared-mem", &guest("", &devices));
    let finding = said.one();
    assert_eq!(finding.at, FieldPath::Disk(1, DiskField::SourceType));
    assert_eq!(
        finding.details().related[0].at,
        FieldPath::Disk(2, DiskField::SourceType)
    );
    lint("vhost-user-needs-shared-mem", &guest("", plain)).is_clean();
}

#[test]
fn a_vdpa_device_needs_shared_memory_too() {
    let device = "<disk type='vhostvdpa' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/vhost-vdpa-0'/><target dev='vda' bus='virtio'/></disk>";
    let said = lint("vhost-user-needs-shared-mem", &guest("", device));
    assert!(text_of(said.one()).contains("'vhostvdpa' requires shared memory"));
}

/// A host with this pool of 2 MiB pages, and what else is in its facts.
fn pool(numbers: &str, rest: &str) -> String {
    format!(
        r#"{{"schema_version":"1.0","cpu":{{"arch":"x86_64"}},
        "kernel":{{"cmdline":{{"default_hugepagesz":null}}}},
        "memory":{{"hugepages":{{"2048":{numbers}{rest}}}}}}}"#
    )
}

const ASKED: &str = "<memory unit='GiB'>4</memory><memoryBacking><hugepages/></memoryBacking>";

#[test]
fn a_pool_that_is_too_small_is_an_error_and_one_that_is_used_a_warning() {
    for (numbers, severity) in [
        (r#"{"nr":2048,"free":2048,"reserved":0}"#, None),
        (
            r#"{"nr":2047,"free":2047,"reserved":0}"#,
            Some(Severity::Error),
        ),
        (r#"{"nr":0,"free":0,"reserved":0}"#, Some(Severity::Error)),
        (
            r#"{"nr":4096,"free":2047,"reserved":0}"#,
            Some(Severity::Warning),
        ),
        (
            r#"{"nr":4096,"free":4096,"reserved":2049}"#,
            Some(Severity::Warning),
        ),
    ] {
        let said = lint_with(
            "hugepages-insufficient",
            &pool(numbers, ""),
            &guest(ASKED, ""),
        );
        assert_eq!(said.severities(), Vec::from_iter(severity), "{numbers}");
        assert!(said.missed.is_empty());
        if severity == Some(Severity::Warning) {
            assert_eq!(said.one().confidence, Confidence::Assumed);
        }
    }
    lint_with(
        "hugepages-insufficient",
        &pool(r#"{"nr":4096}"#, ""),
        &guest(ASKED, ""),
    )
    .missed("2 MiB");
}

#[test]
fn pages_that_the_kernel_makes_on_demand_count() {
    for (numbers, is_reported) in [
        (r#"{"nr":0,"free":0,"reserved":0,"overcommit":2048}"#, false),
        (
            r#"{"nr":1024,"free":1024,"reserved":0,"overcommit":0}"#,
            true,
        ),
        (
            r#"{"nr":2048,"free":0,"reserved":0,"overcommit":1024}"#,
            true,
        ),
    ] {
        let said = lint_with(
            "hugepages-insufficient",
            &pool(numbers, ""),
            &guest(ASKED, ""),
        );
        assert_eq!(!said.findings.is_empty(), is_reported, "{numbers}");
    }
}

#[test]
fn a_size_that_the_kernel_does_not_list_does_not_exist() {
    let asked = "<memory unit='GiB'>4</memory><memoryBacking><hugepages><page size='1' unit='GiB'/></hugepages></memoryBacking>";
    let said = lint_with(
        "hugepages-insufficient",
        &pool(r#"{"nr":9999,"free":9999,"reserved":0}"#, ""),
        &guest(asked, ""),
    );
    assert!(
        said.one().text.title.contains("4 huge pages of 1 GiB"),
        "{}",
        said.one().text.title
    );
}

#[test]
fn the_default_size_is_the_kernels() {
    let facts = |word: &str| {
        pool(
            r#"{"nr":0,"free":0,"reserved":0}"#,
            r#","1048576":{"nr":4,"free":4,"reserved":0}"#,
        )
        .replace(
            "\"default_hugepagesz\":null",
            &format!("\"default_hugepagesz\":{word}"),
        )
    };
    lint_with(
        "hugepages-insufficient",
        &facts("\"1G\""),
        &guest(ASKED, ""),
    )
    .is_clean();
    assert!(
        !lint_with("hugepages-insufficient", &facts("null"), &guest(ASKED, ""))
            .findings
            .is_empty()
    );
    let not_asked = facts("null").replace("\"default_hugepagesz\":null", "");
    lint_with("hugepages-insufficient", &not_asked, &guest(ASKED, "")).missed("default size");
}

#[test]
fn several_sizes_and_cells_with_sizes_of_their_own_cannot_be_judged() {
    let facts = pool(r#"{"nr":0,"free":0,"reserved":0}"#, "");
    let page =
        |size: &str, nodeset: &str| format!("<page size='{size}' unit='MiB' nodeset='{nodeset}'/>");
    let asked = |pages: String| {
        format!(
            "<memory unit='GiB'>4</memory><memoryBacking><hugepages>{pages}</hugepages></memoryBacking>"
        )
    };
    let two = asked(page("2", "0") + &page("1024", "1"));
    lint_with("hugepages-insufficient", &facts, &guest(&two, "")).missed("NUMA cell");
    let cells = asked(page("2", "0"))
        + "<cpu><numa><cell id='0' cpus='0' memory='2' unit='GiB'/><cell id='1' cpus='1' memory='2' unit='GiB'/></numa></cpu>";
    lint_with("hugepages-insufficient", &facts, &guest(&cells, "")).missed("NUMA cell");
}

#[test]
fn a_guest_without_huge_pages_needs_no_facts() {
    lint(
        "hugepages-insufficient",
        &guest("<memory unit='GiB'>4</memory>", ""),
    )
    .is_clean();
}

fn machine(domain_type: &str, arch: &str) -> String {
    format!(
        "<domain type='{domain_type}'><name>a</name><os><type arch='{arch}'>hvm</type></os></domain>"
    )
}

/// A host of this architecture, with these facts about KVM.
fn kvm(arch: &str, kvm: &str) -> String {
    format!(r#"{{"schema_version":"1.0","cpu":{{"arch":"{arch}"}},"kvm":{{{kvm}}}}}"#)
}

#[test]
fn emulation_is_reported_only_where_kvm_was_seen_to_run_this_architecture() {
    let proven = r#""dev_kvm":true,"access":true,"proven":true"#;
    for (host, facts, arch, is_reported) in [
        ("x86_64", proven, "x86_64", true),
        ("x86_64", proven, "i686", true),
        ("x86_64", proven, "aarch64", false),
        ("aarch64", proven, "x86_64", false),
        ("aarch64", proven, "aarch64", true),
        ("aarch64", proven, "armv7l", false),
        ("ppc64le", proven, "ppc64", true),
        (
            "x86_64",
            r#""dev_kvm":true,"proven":false"#,
            "x86_64",
            false,
        ),
        ("x86_64", r#""dev_kvm":false"#, "x86_64", false),
    ] {
        let said = lint_with(
            "tcg-instead-of-kvm",
            &kvm(host, facts),
            &machine("qemu", arch),
        );
        assert_eq!(
            !said.findings.is_empty(),
            is_reported,
            "{arch} on {host} with {facts}"
        );
        assert!(said.missed.is_empty(), "{:?}", said.missed);
    }
}

#[test]
fn a_kvm_that_can_only_be_opened_proves_nothing() {
    // The recorded host has such a node, and its guests do not start.
    lint_on(
        "tcg-instead-of-kvm",
        "hugepages-none",
        &machine("qemu", "x86_64"),
    )
    .missed("seen to run");
    lint_on(
        "tcg-instead-of-kvm",
        "hugepages-none",
        &machine("kvm", "x86_64"),
    )
    .is_clean();
}

#[test]
fn a_kvm_that_ran_no_guest_when_it_was_tried_is_a_warning_with_what_was_said() {
    let said = lint_on(
        "tcg-instead-of-kvm",
        "kvm-does-not-run",
        &machine("kvm", "x86_64"),
    );
    assert_eq!(said.severities(), [Severity::Warning]);
    assert!(
        said.one()
            .text
            .notes
            .iter()
            .any(|note| note.contains("MSR 0x10a")),
        "{:?}",
        said.one().text.notes
    );
    lint_on(
        "tcg-instead-of-kvm",
        "kvm-does-not-run",
        &machine("qemu", "x86_64"),
    )
    .is_clean();
}

#[test]
fn what_is_in_the_way_of_kvm_decides_what_to_do() {
    let help = |obstacle: &str| {
        let facts = format!(r#""dev_kvm":false,"obstacle":"{obstacle}""#);
        let said = lint_with(
            "tcg-instead-of-kvm",
            &kvm("x86_64", &facts),
            &machine("kvm", "x86_64"),
        );
        said.one().text.help.clone().unwrap_or_default()
    };
    assert!(help("processor-or-firmware").starts_with("enable virtualisation"));
    assert!(help("module").starts_with("load kvm_intel"));
    // The kernel has it, so that the host may well have the node that the collector did not see.
    lint_with(
        "tcg-instead-of-kvm",
        &kvm("x86_64", r#""dev_kvm":false,"obstacle":"node""#),
        &machine("kvm", "x86_64"),
    )
    .missed("container");
}

#[test]
fn a_missing_kvm_is_an_error_unless_a_container_hides_it() {
    let said = lint_with(
        "tcg-instead-of-kvm",
        &kvm("x86_64", r#""dev_kvm":false"#),
        &machine("kvm", "x86_64"),
    );
    assert_eq!(said.severities(), [Severity::Error]);
    let hidden = kvm("x86_64", r#""dev_kvm":false"#)
        .replace("\"cpu\"", r#""collector":{"namespace":"container"},"cpu""#);
    lint_with("tcg-instead-of-kvm", &hidden, &machine("kvm", "x86_64")).missed("container");
    lint_with(
        "tcg-instead-of-kvm",
        &kvm("x86_64", ""),
        &machine("kvm", "x86_64"),
    )
    .missed("/dev/kvm");
    lint("tcg-instead-of-kvm", &machine("xen", "x86_64")).missed("QEMU does not run");
}
