//! `vmdisk lint --try-qemu`: what real QEMUs say, at its place, and nothing of the guest's is opened.

use vmdisk_tests::{QEMU_VERSIONS, QemuBuild, fixtures, on_each_qemu, run};

use crate::storage::Storage;

const VMDISK: &str = env!("CARGO_BIN_EXE_vmdisk-under-test");

/// The findings of a trial, as `PLACE: message`.
fn tried(build: &QemuBuild, text: &str) -> Vec<String> {
    let emulator = build.emulator();
    let qemu = emulator.to_str().unwrap();
    let run = run(
        VMDISK,
        &["lint", "-", "--try-qemu", qemu, "--format", "concise"],
        text,
    );
    assert!(run.code < 2, "{}: {run:?}", build.name);
    let lines = run
        .stdout
        .lines()
        .filter(|line| line.contains(": error[refused-by-qemu]"));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_trial_says_what_qemu_refuses_at_the_place_and_opens_nothing() {
    on_each_qemu("dry starts", |build| {
        let storage = Storage::new();
        let locked = storage.raw("a.raw", 1 << 20);
        let before = std::fs::metadata(&locked).unwrap().modified().unwrap();
        let disk = |target: &str, more: &str| {
            format!(
                "<disk type='file' device='disk'>\n<driver name='qemu' type='raw' cache='none' io='native'/>\n\
                 <source file='{locked}.{target}'/>\n<target dev='{target}' bus='virtio'/>\n{more}\n</disk>\n"
            )
        };
        let guest = |machine: &str, disks: &str| {
            format!(
                "<domain type='kvm'>\n<name>a</name>\n<memory unit='GiB'>64</memory>\n\
                 <os><type arch='x86_64' machine='{machine}'>hvm</type></os>\n<devices>\n{disks}</devices>\n</domain>\n"
            )
        };
        let good = disk("vda", "<boot order='1'/>");
        assert_eq!(tried(build, &guest("q35", &good)), [""; 0]);
        let found = tried(build, &guest("pc-q35-99.0", &good));
        assert!(found[0].starts_with("<stdin>:4:34: error"), "{found:?}");
        assert!(found[0].contains("unsupported machine type"), "{found:?}");
        let both = format!("{good}{}", disk("vdb", "<boot order='1'/>"));
        let found = tried(build, &guest("q35", &both));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("<stdin>:12:1: error"), "{found:?}");
        assert!(
            found[0].ends_with("`vdb`: The bootindex 1 has already been used"),
            "{found:?}"
        );
        assert_eq!(
            std::fs::metadata(&locked).unwrap().modified().unwrap(),
            before
        );
        assert!(!std::path::Path::new(&format!("{locked}.vda")).exists());
    });
}

#[test]
fn what_is_generated_passes_every_trial() {
    let folder = fixtures().join("specs/accepted");
    on_each_qemu("dry starts of specs", |build| {
        let mut specs: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        specs.sort();
        // Each version starts all of them elsewhere; here they are shared out.
        let share = QEMU_VERSIONS
            .iter()
            .position(|version| *version == build.name);
        let share = specs
            .iter()
            .skip(share.unwrap_or_default())
            .step_by(QEMU_VERSIONS.len());
        for spec in share {
            let name = spec.file_stem().unwrap().to_str().unwrap();
            // QEMU 11.1 has no machine types that old.
            if name == "old-machine-types-still-fit" {
                continue;
            }
            let target = build.target().to_string();
            let generate = ["generate", spec.to_str().unwrap(), "--target", &target];
            let xml = run(VMDISK, &generate, "");
            assert_eq!(tried(build, &xml.stdout), [""; 0], "{name}");
        }
    });
}
