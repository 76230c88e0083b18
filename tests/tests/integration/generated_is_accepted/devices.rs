//! The CPU and the devices beside the disks: each QEMU starts with them, and each libvirt defines them.

use vmdisk_qmp::Launch;
use vmdisk_tests::{Step, Verdict, has_program, libvirts, on_each_qemu, run};

use super::generate;

fn spec(guest: &str, image: &str) -> String {
    format!("version: 1\nguest: {{name: a, {guest}}}\ndisks:\n- raw: {{path: {image}}}\n")
}

const FOR_BOTH: [&str; 7] = [
    "network: default",
    "network: none, rng: true",
    "network: default, machine: pc, console: display",
    "network: default, console: serial, rng: true",
    "network: default, os: windows, console: display",
    "network: default, os: windows, machine: pc",
    "network: default, os: windows, drivers: virtio",
];

#[test]
fn each_qemu_starts_with_the_devices_of_a_guest() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a.img");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    on_each_qemu("devices of a guest", |build| {
        let target = format!("qemu={}", build.version);
        for guest in FOR_BOTH {
            let form = ["--to", "qemu", "--qemu-format", "json"];
            let spec = spec(guest, image.to_str().unwrap());
            let argv = generate(&spec, &target, &form).unwrap();
            let argv: Vec<String> = serde_json::from_str(&argv).unwrap();
            // The CPU of a guest with KVM is one that it has without, too.
            let argv = argv[1..].iter().map(|word| match word.as_str() {
                "kvm" => "tcg".to_owned(),
                // QEMU's own input and output are those of the test.
                "mon:stdio" => "null".to_owned(),
                _ => word.clone(),
            });
            let argv: Vec<String> = argv.collect();
            assert!(argv.iter().any(|word| word.starts_with("max")), "{argv:?}");
            let started = Launch::paused(build.emulator()).args(&argv).start();
            if let Err(refusal) = started {
                panic!("{guest}: {refusal}\n{argv:#?}");
            }
        }
    });
}

#[test]
fn each_libvirt_defines_the_devices_of_a_guest() {
    const ONLY_LIBVIRT: [&str; 4] = [
        "network: other, channel: agent",
        "network: 'bridge:br0', rng: true",
        "type: qemu, console: display, channel: agent",
        "tpm: true",
    ];
    for libvirt in libvirts("devices of a guest") {
        let target = format!("libvirt={},qemu={}", libvirt.version, libvirt.qemu);
        let guests = FOR_BOTH.iter().chain(&ONLY_LIBVIRT).map(|guest| {
            let xml = generate(&spec(guest, "/srv/a.img"), &target, &[]).unwrap();
            xml.replace(
                "<name>a<",
                &format!("<name>{}<", guest.replace([':', '\''], "")),
            )
        });
        let guests: Vec<String> = guests.collect();
        let session = libvirt.session();
        let verdicts = session.verdicts(Step::Define, guests.iter().map(String::as_str));
        for (xml, verdict) in guests.iter().zip(&verdicts) {
            let is_accepted = match verdict {
                // It looks for the program of the emulation.
                Verdict::Refused(why) => {
                    why.contains("TPM version '2.0' is not supported") && !has_program("swtpm")
                }
                verdict => *verdict == Verdict::Accepted,
            };
            assert!(is_accepted, "{verdict:?}: {xml}");
        }
    }
    let refused = run(
        crate::VMDISK,
        &["generate", "-", "--to", "qemu"],
        &spec(ONLY_LIBVIRT[3], "/srv/a.img"),
    );
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("a TPM, for which a `swtpm` must run")
    );
}
