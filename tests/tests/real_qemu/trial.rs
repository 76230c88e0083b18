//! `vmdisk lint --try-qemu`: what real QEMUs say, at its place, and nothing of the guest's is opened.

use vmdisk_qmp::Launch;
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

/// A guest whose disks are parts of files, an encrypted image and a daemon's, none of which is there.
fn with_stand_ins(order: &str) -> String {
    let key = "<encryption format='luks'><secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f'/></encryption>";
    let disk = |target: &str, format: &str, inside: &str| {
        format!(
            "<disk type='file' device='disk'>\n<driver name='qemu' type='{format}'/>\n\
             <source file='/nowhere/{target}.img'>{inside}</source>\n<target dev='{target}' bus='virtio'/>\n{order}</disk>\n"
        )
    };
    let slice = "<slices><slice type='storage' offset='1048576' size='16777216'/></slices>";
    format!(
        "<domain type='kvm'>\n<name>a</name>\n<memory unit='GiB'>64</memory>\n<vcpu>3</vcpu>\n\
         <memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>\n\
         <os><type arch='x86_64' machine='q35'>hvm</type></os>\n<devices>\n{}{}{}\
         <disk type='vhostuser' device='disk'>\n<driver name='qemu'/>\n<source type='unix' path='/nowhere/sock'/>\n\
         <target dev='vde' bus='virtio'/>\n{order}</disk>\n</devices>\n</domain>\n",
        disk("vda", "raw", slice),
        disk("vdb", "qcow2", slice),
        disk("vdc", "raw", key),
    )
}

#[test]
fn slices_and_daemons_have_stand_ins_and_what_has_none_is_told() {
    on_each_qemu("stand-ins of a trial", |build| {
        let good = with_stand_ins("");
        assert_eq!(tried(build, &good), [""; 0]);
        // What stands for the daemon is told, and what is tried without its key.
        let emulator = build.emulator();
        let arguments = [
            "lint",
            "-",
            "--verbose",
            "--try-qemu",
            emulator.to_str().unwrap(),
        ];
        let told = run(VMDISK, &arguments, &good).stderr;
        assert!(
            told.contains("a qemu-storage-daemon replaces the daemon"),
            "{told}"
        );
        assert!(
            told.contains("the encryption, for which a key would take seconds to make,"),
            "{told}"
        );
        assert!(!told.contains("the slice"), "{told}");
        // All of them are in the guest that is tried: each after the first is refused its place in the boot order.
        let found = tried(build, &with_stand_ins("<boot order='1'/>\n"));
        assert_eq!(found.len(), 3, "{found:?}");
        for (finding, target) in found.iter().zip(["vdb", "vdc", "vde"]) {
            assert!(finding.contains(&format!("`{target}`")), "{found:?}");
            assert!(finding.contains("has already been used"), "{found:?}");
        }
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

/// Longest wait for a QEMU.
const WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Two disks of a guest on one image, with and without locks, in each syntax that has them.
#[test]
fn a_trial_locks_an_image_where_the_guest_does() {
    on_each_qemu("trials with two disks on one image", |build| {
        let storage = Storage::new();
        let image = storage.raw("a.raw", 1 << 20);
        // QEMU 5.2 refuses a second -drive with locks behind one without; later ones take it.
        for off in [[false; 2], [false, true], [true; 2]] {
            let disks = |write: fn(&str, usize, bool) -> String| {
                let line = (0..2).map(|nth| write(&image, nth, off[nth]));
                format!(
                    "qemu-system-x86_64 -m 64 {}\n",
                    line.collect::<Vec<_>>().join(" ")
                )
            };
            let drives = disks(|image, nth, off| {
                let locking = if off { ",file.locking=off" } else { "" };
                format!(
                    "-drive file={image},format=raw,if=none,id=d{nth}{locking} -device virtio-blk-pci,drive=d{nth}"
                )
            });
            let nodes = disks(|image, nth, off| {
                let locking = if off { "off" } else { "auto" };
                format!(
                    "-blockdev file,filename={image},node-name=d{nth},locking={locking} -device virtio-blk-pci,drive=d{nth}"
                )
            });
            for line in [drives, nodes] {
                let words: Vec<&str> = line.split_whitespace().skip(1).collect();
                let starts = Launch::paused(build.emulator())
                    .args(words)
                    .timeout(WAIT)
                    .start()
                    .is_ok();
                let found = tried(build, &line);
                assert_eq!(
                    found.is_empty(),
                    starts,
                    "{}: {line}: {found:?}",
                    build.name
                );
            }
        }
    });
}
