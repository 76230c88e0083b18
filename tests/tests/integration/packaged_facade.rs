//! A program outside this workspace, built against the packaged facade alone.

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
vmdisk = "0.1.0"
"#;

const PROGRAM: &str = r#"
use vmdisk::{LintOptions, lint, read};

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let document = read(&text).unwrap();
    for diagnostic in lint(&document, &LintOptions::default()).diagnostics {
        println!("{}:{}: {}", diagnostic.place.start.line, diagnostic.rule.name, diagnostic.title);
    }
}
"#;

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
fn a_stranger_builds_against_the_packaged_facade_alone() {
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
    std::fs::create_dir_all(folder.join("src")).unwrap();
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
    std::fs::write(folder.join("src/main.rs"), PROGRAM).unwrap();
    // The versions this workspace is tested with, so that nothing has to be looked up.
    std::fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    cargo(folder, &["build", "--offline", "--quiet"], &target);

    let text = "<disk type='file'>\n<driver type='raw' cache='unsafe'/>\n<source file='/a'/>\n<target dev='vda' bus='virtio'/>\n</disk>\n";
    let file = folder.join("disk.xml");
    std::fs::write(&file, text).unwrap();
    let program = target.join("debug/stranger");
    let found = run_in(
        folder,
        program.to_str().unwrap(),
        &[file.to_str().unwrap()],
        "",
    );
    assert!(found.stdout.contains("2:cache-unsafe: `vda`"), "{found:?}");
}
