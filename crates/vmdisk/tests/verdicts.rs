//! Rules, planner, advice and traces give one answer with one reason about a host, whatever the host is.

use std::fmt::Write as _;

use proptest::prelude::*;
use vmdisk::advise::{StorageIntent, advise};
use vmdisk::model::Bytes;
use vmdisk::trace::{RequestKind, RequestOutcome, trace};
use vmdisk::{Diagnostic, Host, LintOptions, LintReport, Severity, decide, lint, read};

/// Facts of a host, each as it is written in a facts file; without text it was not collected.
#[derive(Clone, Debug)]
struct RandomHost {
    kernel: &'static str,
    limits: [Option<&'static str>; 4],
    user: &'static str,
    qemu: &'static str,
    drives: [(&'static str, &'static str, &'static str); 2],
    encryption: Option<&'static str>,
    file: (u64, u64, Option<u64>),
}

const DRIVES: [(&str, &str); 5] = [
    ("disk", "/dev/sda"),
    ("disk", "/dev/vdb"),
    ("nvme", "/dev/nvme0n1"),
    ("nbd", "/dev/nbd0"),
    ("multipath", "/dev/dm-7"),
];
const QUEUES: [&str; 7] = [
    "rotational: false, discard_max: 4096",
    "rotational: true, discard_max: 0",
    "rotational: true, discard_max: 4096",
    "rotational: false, discard_max: 0",
    "discard_max: 4096",
    "rotational: null, discard_max: null",
    "rotational: false",
];

fn random_host() -> impl Strategy<Value = RandomHost> {
    use proptest::option::of;
    use proptest::sample::select;
    let kernel = select(vec![
        "version: [5, 0, 0]",
        "version: [6, 1, 0]",
        "version: [5, 14, 0], release: 5.14.0-284.11.1.el9_2.x86_64, vendor: rhel",
        "machine: x86_64",
    ]);
    let limits = (
        of(select(vec!["0", "1", "2", "null"])),
        of(select(vec!["-1", "107", "null"])),
        of(select(vec!["512", "1024", "2048", "65536"])),
        of(select(vec!["0", "1024", "65000"])),
    );
    let user = select(vec![
        "",
        "libvirt: {version: [10, 0, 0]}",
        "libvirt: {version: [10, 0, 0], qemu_user: {name: qemu, uid: 107, groups: [107], is_configured: true}}",
        "libvirt: {version: [10, 0, 0], qemu_user: {name: qemu, uid: 106, groups: [106], is_configured: true}}",
        "libvirt: {version: [10, 0, 0], qemu_user: {name: qemu, uid: 106, groups: [106]}}",
    ]);
    let qemu = select(vec!["", "[7, 2, 0]", "[11, 1, 0]"]);
    let drive = (select(DRIVES.to_vec()), select(QUEUES.to_vec()));
    let drive = drive.prop_map(|((kind, path), queue)| (kind, path, queue));
    let size = select(vec![1 << 20, (1 << 20) + 512, (1 << 20) + 1024, 1_000_001]);
    let file = (
        size,
        select(vec![0, 1, 50, 99, 100]),
        of(select(vec![0, 512, 1024, 4096])),
    );
    let encryption = of(select(vec!["true", "false"]));
    (
        kernel,
        limits,
        user,
        qemu,
        [drive.clone(), drive],
        encryption,
        file,
    )
        .prop_map(
            |(kernel, (disabled, group, most, taken), user, qemu, drives, encryption, file)| {
                RandomHost {
                    kernel,
                    limits: [disabled, group, most, taken],
                    user,
                    qemu,
                    drives,
                    encryption,
                    file,
                }
            },
        )
}

impl RandomHost {
    /// A device `/dev/mapper/data` on both drives, with a file system that has an image.
    fn options(&self) -> LintOptions {
        let mut text = format!(
            "schema_version: '1.0'\nkernel: {{{}}}\nlimits: {{",
            self.kernel
        );
        let names = [
            "io_uring_disabled",
            "io_uring_group",
            "aio_max_nr",
            "aio_nr",
        ];
        for (name, value) in names.into_iter().zip(self.limits) {
            if let Some(value) = value {
                write!(text, "{name}: {value}, ").expect("the own input of the test is right");
            }
        }
        writeln!(text, "}}\n{}", self.user).expect("the own input of the test is right");
        if !self.qemu.is_empty() {
            writeln!(
                text,
                "qemu: [{{path: /usr/bin/qemu-system-x86_64, version: {}}}]",
                self.qemu
            )
            .expect("the own input of the test is right");
        }
        text.push_str("blockdevs:\n");
        for (nth, (kind, path, queue)) in self.drives.iter().enumerate() {
            let path = format!("{path}{}", ["", "x"][nth]);
            writeln!(text, "- {{id: d{nth}, kind: {kind}, paths: [{path}], size: 10737418240, queue: {{logical: 512, physical: 512, {queue}}}}}").expect("the own input of the test is right");
        }
        let below = match self.encryption {
            Some(allowed) => {
                writeln!(text, "- {{id: luks, kind: crypt-luks2, paths: [/dev/mapper/c], slaves: [d0, d1], crypt: {{allow_discards: {allowed}}}, queue: {{logical: 512, physical: 512, discard_max: {}}}}}", if allowed == "true" { 4096 } else { 0 }).expect("the own input of the test is right");
                "luks"
            }
            None => "d0, d1",
        };
        writeln!(text, "- {{id: data, kind: lvm, paths: [/dev/mapper/data], slaves: [{below}], queue: {{logical: 512, physical: 512, discard_max: {}}}}}", if self.encryption == Some("false") { 0 } else { 4096 }).expect("the own input of the test is right");
        let (size, percent, alignment) = self.file;
        let alignment = alignment.map_or(String::new(), |it| format!("off: {it}, mem: 512, "));
        writeln!(
            text,
            "mounts: [{{id: m1, point: /srv, fs: f1, options: {{nobarrier: false}}}}]\n\
             filesystems: [{{id: f1, kind: xfs, devices: [data], free_bytes: 99999999999, total_bytes: 999999999999}}]\n\
             dirs: [{{path: /srv, mount: m1, dio: {{off: 512, mem: 512}}}}]\n\
             files: [{{path: /srv/a.raw, kind: regular, mount: m1, size: {size}, alloc: {}, dio: {{{alignment}}}}}]",
            size * percent / 100,
        )
        .expect("the own input of the test is right");
        let host = Host::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut options = host.options();
        options.selection.least = Some(Severity::Pedantic);
        options
    }
}

fn guest(disk: &str) -> String {
    format!(
        "<domain type='kvm'><name>g</name><memory unit='MiB'>64</memory><vcpu>2</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>{disk}</devices></domain>"
    )
}

fn device(driver: &str) -> String {
    guest(&format!(
        "<disk type='block' device='disk'><driver name='qemu' type='raw' {driver}/><source dev='/dev/mapper/data'/><target dev='vda' bus='virtio'/></disk>"
    ))
}

fn file(format: &str, driver: &str) -> String {
    guest(&format!(
        "<disk type='file' device='disk'><driver name='qemu' type='{format}' {driver}/><source file='/srv/a.{format}'/><target dev='vda' bus='virtio'/></disk>"
    ))
}

/// What the planner chooses for an option, and why.
fn choice(xml: &str, option: &str, options: &LintOptions) -> (String, String) {
    let decided = decide(
        &read(xml).expect("the own input of the test is right"),
        |_| true,
        &read,
        options,
    );
    let choices = &decided.disks[0]
        .options
        .as_ref()
        .expect("the own input of the test is right")
        .choices;
    let found = choices.iter().find(|choice| choice.option == option);
    found.map_or_else(Default::default, |it| (it.value.clone(), it.reason.clone()))
}

fn found<'r>(report: &'r LintReport, rule: &str) -> Option<&'r Diagnostic> {
    report.diagnostics.iter().find(|it| it.rule.name == rule)
}

/// The reason of the missing fact without which the rule was not checked.
fn not_checked(report: &LintReport, rule: &str) -> Option<String> {
    let mut missed = report.not_checked.iter();
    missed
        .find(|it| it.rule.name == rule)
        .map(|it| it.missing.why.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_drive_is_as_fast_for_the_planner_and_for_advice_as_for_the_rule(host in random_host()) {
        let options = host.options();
        let report = lint(&read(&device("cache='none'")).expect("the own input of the test is right"), &options);
        let (_, reason) = choice(&device("cache='none'"), "iothread", &options);
        let advice = advise(&StorageIntent::new(Bytes::gib(1)), &options);
        let advised = advice.fitting.iter().find(|it| it.place == "/srv").map(|it| it.is_fast);
        match found(&report, "iothread-missing-fast-media") {
            Some(finding) => {
                let why = finding.notes[0].as_str();
                prop_assert!(why.starts_with("/dev/mapper/data is on ") && reason.starts_with(why), "{why}: {reason}");
                prop_assert_eq!(advised, Some(Some(true)));
            }
            None => {
                prop_assert_eq!(reason, "");
                prop_assert_ne!(advised, Some(Some(true)));
            }
        }
    }

    #[test]
    fn io_uring_is_as_available_for_the_planner_as_for_the_rule(host in random_host()) {
        let options = host.options();
        let report = lint(&read(&file("qcow2", "cache='none' io='io_uring'")).expect("the own input of the test is right"), &options);
        let (io, reason) = choice(&file("qcow2", "cache='none'"), "io", &options);
        let missing = not_checked(&report, "io-uring-disabled");
        match (found(&report, "io-uring-disabled"), missing) {
            (Some(finding), _) => {
                prop_assert!(io == "threads" && reason.ends_with(&finding.notes[0]), "{io}: {reason}");
            }
            (None, Some(why)) => {
                prop_assert!(io == "threads" && reason.ends_with(&why), "{io}: {reason}: {why}");
            }
            (None, None) => prop_assert!(!reason.contains("kernel.io_uring") && !reason.contains("Linux has"), "{io}: {reason}"),
        }
    }

    #[test]
    fn slots_direct_writes_and_discards_are_judged_once(host in random_host()) {
        let options = host.options();
        let report = lint(&read(&device("cache='none' io='native'")).expect("the own input of the test is right"), &options);
        let (io, reason) = choice(&device("cache='none'"), "io", &options);
        if let Some(finding) = found(&report, "aio-slots-exhausted") {
            prop_assert_eq!(&io, "threads");
            let most = host.limits[2].expect("the own input of the test is right");
            prop_assert!(finding.title.contains(&format!("the host has {most}")) && reason.contains(&format!("the host has {most}")), "{reason}");
        } else if io == "threads" && reason.contains("slots") {
            prop_assert!(reason.ends_with("are taken"), "{reason}");
        }

        let report = lint(&read(&file("raw", "cache='none'")).expect("the own input of the test is right"), &options);
        let (cache, reason) = choice(&file("raw", ""), "cache", &options);
        match found(&report, "image-size-unaligned") {
            Some(finding) => prop_assert!(cache == "writeback" && reason.ends_with(&finding.notes[0]), "{reason}"),
            None => prop_assert!(!reason.contains("to their end"), "{reason}"),
        }

        let unmap = read(&device("cache='none' discard='unmap'")).expect("the own input of the test is right");
        let report = lint(&unmap, &options);
        let (discard, reason) = choice(&device("cache='none'"), "discard", &options);
        let dropped = found(&report, "discard-dropped").or(found(&report, "discard-crypt-blocked"));
        let is_traced = trace(&unmap, &options).disks[0].path.steps.iter().any(|step| {
            step.effect(RequestKind::Discard).outcome == RequestOutcome::Dropped
        });
        match dropped {
            Some(finding) => {
                prop_assert_eq!(discard, "ignore");
                let layer = reason.split(" is on ").last().expect("the own input of the test is right");
                let name = layer.split([',', ' ']).next().expect("the own input of the test is right");
                prop_assert!(finding.notes[0].contains(name), "{}: {reason}", finding.notes[0]);
                prop_assert!(is_traced);
            }
            None => prop_assert!(!reason.contains("accepts no discards") && !reason.contains("allow_discards"), "{reason}"),
        }
    }
}
