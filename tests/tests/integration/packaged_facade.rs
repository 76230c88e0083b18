//! Programs outside this workspace, built against the packaged crates that are promised.

use std::path::Path;
use std::process::Command;

use vmdisk_tests::{repository, run_in};

const MANIFEST: &str = r#"
[package]
name = "stranger"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
vmdisk = { version = "0.1.0", features = ["plan", "trace"] }
vmdisk-collect = "0.1.0"
"#;

/// Programs of others, each with the most lines that it may need.
const PROGRAMS: [(&str, &str, usize); 3] = [
    ("checker", include_str!("outside/checker.rs"), 40),
    ("provisioner", include_str!("outside/provisioner.rs"), 25),
    ("tracer", include_str!("outside/tracer.rs"), 15),
];

fn cargo(folder: &Path, arguments: &[&str], target: &Path) {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        // Nobody debugs it, and most of the time would go there.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn strangers_build_against_the_packaged_crates_alone() {
    let target = repository().join("target/packaged");
    let crates = [
        "vmdisk-source",
        "vmdisk-document",
        "vmdisk-model",
        "vmdisk-fields",
        "vmdisk-facts",
        "vmdisk-image",
        "vmdisk-rule",
        "vmdisk-libvirt",
        "vmdisk-qemu",
        "vmdisk-rules",
        "vmdisk-trace",
        "vmdisk-plan",
        "vmdisk",
        "vmdisk-qmp",
        "vmdisk-collect",
    ];
    let mut arguments = vec![
        "package",
        "--offline",
        "--allow-dirty",
        "--no-verify",
        "--quiet",
    ];
    for name in crates {
        arguments.extend(["--package", name]);
    }
    cargo(repository(), &arguments, &target);

    // At one place each time, so that what it depends on is built once.
    let folder = target.join("stranger");
    let folder = folder.as_path();
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("src/bin")).unwrap();
    let mut manifest = MANIFEST.to_owned();
    manifest.push_str("\n[patch.crates-io]\n");
    for name in crates {
        let archive = target.join(format!("package/{name}-0.1.0.crate"));
        let unpacked = run_in(
            folder,
            "tar",
            // As of now: files in an archive all have one date, by which cargo would see no change.
            &["-xmzf", archive.to_str().unwrap()],
            "",
        );
        assert_eq!(unpacked.code, 0, "{unpacked:?}");
        manifest.push_str(&format!("{name} = {{ path = \"{name}-0.1.0\" }}\n"));
    }
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    for (name, text, most) in PROGRAMS {
        assert!(text.lines().count() <= most, "{name}");
        std::fs::write(folder.join(format!("src/bin/{name}.rs")), text).unwrap();
    }
    // The versions this workspace is tested with, so that nothing has to be looked up.
    std::fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    cargo(folder, &["build", "--offline", "--quiet"], &target);

    let text = "<disk type='file'>\n<driver type='raw' cache='unsafe'/>\n<source file='/a'/>\n<target dev='vda' bus='virtio'/>\n</disk>\n";
    std::fs::write(folder.join("disk.xml"), text).unwrap();
    std::fs::write(folder.join("facts.json"), "{\"schema_version\": \"1.0\"}").unwrap();
    let run = |name: &str, arguments: &[&str]| {
        let program = target.join("debug").join(name);
        run_in(folder, program.to_str().unwrap(), arguments, "")
    };
    let checked = run("checker", &["facts.json", "disk.xml"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(
        checked.stdout.contains("\"rule\": \"cache-unsafe\""),
        "{checked:?}"
    );
    let planned = run("provisioner", &["/srv/a.qcow2", "40G", "facts.json"]);
    assert_eq!(planned.code, 0, "{planned:?}");
    assert!(
        planned.stdout.contains("<source file='/srv/a.qcow2'/>"),
        "{planned:?}"
    );
    assert!(planned.stdout.contains("42949672960"), "{planned:?}");
    let refused = run("provisioner", &["/srv/a.qcow2", "much", "facts.json"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let traced = run("tracer", &["disk.xml"]);
    assert!(
        traced.stdout.contains("\"layer\": \"block-layer\""),
        "{traced:?}"
    );
}
