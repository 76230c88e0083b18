//! Compares the manifests with the layer table of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use vmdisk_tests::repository;

/// Layer, crate, and the crates of ours that it may depend on.
const LAYERS: &[(u8, &str, &[&str])] = &[
    (1, "vmdisk-source", &[]),
    // Field paths implement the trait that source maps are generic over.
    (1, "vmdisk-model", &["vmdisk-source"]),
    (1, "vmdisk-fields", &["vmdisk-model"]),
    (1, "vmdisk-document", &["vmdisk-source"]),
    (1, "vmdisk-facts", &["vmdisk-source", "vmdisk-document"]),
    (1, "vmdisk-image", &[]),
    (
        1,
        "vmdisk-rule",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
        ],
    ),
    (
        2,
        "vmdisk-libvirt",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-rule",
        ],
    ),
    (
        2,
        "vmdisk-qemu",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-rule",
        ],
    ),
    (
        2,
        "vmdisk-rules",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-rule",
        ],
    ),
    (
        2,
        "vmdisk-trace",
        &[
            "vmdisk-source",
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-facts",
            "vmdisk-rule",
        ],
    ),
    (
        2,
        "vmdisk-plan",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-document",
            "vmdisk-facts",
        ],
    ),
    (
        3,
        "vmdisk",
        &[
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-image",
            "vmdisk-rule",
            "vmdisk-libvirt",
            "vmdisk-qemu",
            "vmdisk-rules",
            "vmdisk-trace",
            "vmdisk-plan",
        ],
    ),
    (
        3,
        "vmdisk-collect",
        &[
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-image",
            "vmdisk-qmp",
        ],
    ),
    // The table of programs that run their arguments.
    (3, "vmdisk-capture", &["vmdisk-qemu"]),
    (3, "vmdisk-qmp", &["vmdisk-facts"]),
    (
        3,
        "vmdisk-lsp",
        &[
            "vmdisk",
            "vmdisk-model",
            "vmdisk-fields",
            "vmdisk-source",
            "vmdisk-facts",
            "vmdisk-libvirt",
            "vmdisk-qemu",
        ],
    ),
    (
        3,
        "vmdisk-bench-runner",
        &[
            "vmdisk-model",
            "vmdisk-source",
            "vmdisk-document",
            "vmdisk-facts",
            "vmdisk-libvirt",
            "vmdisk-qemu",
            "vmdisk-qmp",
            "vmdisk-collect",
        ],
    ),
    (4, "vmdisk-capi", &["vmdisk"]),
    (4, "vmdisk-python", &["vmdisk", "vmdisk-collect"]),
    (
        4,
        "vmdisk-cli",
        &[
            "vmdisk",
            "vmdisk-capture",
            "vmdisk-collect",
            "vmdisk-qmp",
            "vmdisk-bench-runner",
            "vmdisk-lsp",
            "vmdisk-facts",
            "vmdisk-source",
            "vmdisk-image",
        ],
    ),
];

/// Our packages and, for each, those of ours that it depends on outside of tests.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let ours = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| text(&dependency["name"]))
                .filter(|name| name.starts_with("vmdisk"))
                .collect();
            (text(&package["name"]), ours)
        })
        .collect()
}

#[test]
fn dependencies_point_downward_as_the_table_says() {
    let mut manifests = manifests();
    for (layer, name, allowed) in LAYERS {
        let found = manifests
            .remove(*name)
            .unwrap_or_else(|| panic!("{name} is not in the workspace"));
        for dependency in &found {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} (layer {layer}) depends on {dependency}"
            );
        }
    }
    for outside in ["vmdisk-tests", "vmdisk-testing", "vmdisk-benches", "xtask"] {
        manifests
            .remove(outside)
            .unwrap_or_else(|| panic!("{outside} is not in the workspace"));
    }
    assert!(
        manifests.is_empty(),
        "not in the layer table: {:?}",
        manifests.keys()
    );
}

/// The rows of the layer table of ARCHITECTURE.md: layer and crate.
fn rows_of_the_page() -> BTreeSet<(u8, String)> {
    let page = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let layer = cells.next()?.parse().ok()?;
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            Some((layer, name.to_owned()))
        })
        .collect()
}

#[test]
fn the_layer_table_of_the_page_names_every_crate_at_its_layer() {
    let layers: BTreeSet<(u8, String)> = LAYERS
        .iter()
        .map(|(layer, name, _)| (*layer, (*name).to_owned()))
        .collect();
    assert_eq!(rows_of_the_page(), layers);
}

#[test]
fn the_library_needs_few_packages_of_others() {
    let packages = |features: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--package",
                "vmdisk",
                "--edges",
                "normal",
                "--prefix",
                "none",
            ])
            .args(["--offline", "--locked", "--no-dedupe"])
            .args(features)
            .current_dir(repository())
            .output()
            .expect("cargo runs");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').next());
        let of_others = names.filter(|name| !name.starts_with("vmdisk"));
        of_others.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let least = packages(&["--no-default-features"]);
    assert!((10..=22).contains(&least.len()), "{least:?}");
    assert_eq!(packages(&[]), least);
    for (feature, name) in [
        ("schema", "schemars"),
        ("redact", "hmac"),
        ("plan", "fluent-uri"),
    ] {
        assert!(!least.contains(name) && packages(&["--features", feature]).contains(name));
    }
}

#[test]
fn no_crate_may_depend_on_a_higher_layer() {
    let layer_of: BTreeMap<&str, u8> = LAYERS
        .iter()
        .map(|(layer, name, _)| (*name, *layer))
        .collect();
    for (layer, name, allowed) in LAYERS {
        for dependency in *allowed {
            assert!(layer_of[dependency] <= *layer, "{name} on {dependency}");
        }
    }
}

#[test]
fn layers_1_and_2_forbid_io_with_the_same_words() {
    let mut texts = BTreeSet::new();
    for (layer, name, _) in LAYERS {
        let path = repository().join("crates").join(name).join("clippy.toml");
        if *layer <= 2 || *name == "vmdisk" {
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(
                text.contains("std::fs::read_to_string"),
                "{name} does not forbid reading files"
            );
            texts.insert(text);
        }
    }
    assert_eq!(
        texts.len(),
        1,
        "the clippy.toml files of the pure crates differ"
    );
}

/// Facts behind a verdict, which only `vmdisk_facts::verdict` looks at.
const FACTS_OF_VERDICTS: [&str; 7] = [
    "queue.rotational",
    "limits.io_uring_disabled",
    "limits.io_uring_group",
    "limits.aio_max_nr",
    "limits.aio_nr",
    "limits.memlock_bytes",
    ".alloc.",
];

#[test]
fn a_verdict_about_a_host_has_one_home() {
    // A fleet compares hosts by what they are, without a verdict.
    const EXEMPT: [&str; 3] = [
        "vmdisk/src/fleet.rs",
        // What of a qcow2 image the host has to have in all, and what a file takes more.
        "rules/discard_missing_thin.rs",
        "vmdisk-rules/src/space.rs",
    ];
    let readers = [
        "vmdisk",
        "vmdisk-libvirt",
        "vmdisk-plan",
        "vmdisk-qemu",
        "vmdisk-rule",
        "vmdisk-rules",
        "vmdisk-trace",
    ];
    for name in readers {
        for file in rust_files(&repository().join("crates").join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let is_exempt = EXEMPT.iter().any(|exempt| file.ends_with(exempt));
            for fact in FACTS_OF_VERDICTS {
                assert!(
                    is_exempt || !text.contains(fact),
                    "{} reads `{fact}`: ask vmdisk_facts::verdict",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn layers_1_and_2_name_no_module_that_does_io() {
    const FORBIDDEN: [&str; 5] = [
        "std::fs",
        "std::process",
        "std::env",
        "std::net",
        "std::thread::sleep",
    ];
    for (layer, name, _) in LAYERS {
        if *layer > 2 && *name != "vmdisk" {
            continue;
        }
        for file in rust_files(&repository().join("crates").join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            // Tests may do I/O: the end of a file, and whole files of tests.
            if file.ends_with("tests.rs") {
                continue;
            }
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in FORBIDDEN {
                let used = code
                    .lines()
                    .any(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                assert!(!used, "{} uses {word}", file.display());
            }
        }
    }
}

fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn no_file_in_the_repository_names_the_machine_it_was_written_on() {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(repository())
        .output();
    let Ok(output) = output else { return };
    for file in output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let name = String::from_utf8_lossy(file).into_owned();
        let Ok(text) = std::fs::read_to_string(repository().join(&name)) else {
            continue;
        };
        // Spelt apart, so that this file does not name what it looks for.
        let home = ["/wo", "rk/"].concat();
        assert!(!text.contains(&home), "{name} names a path of one machine");
    }
}

/// Cargo does not look for test files where a manifest names its programs.
#[test]
fn nothing_but_a_command_that_lints_imports_the_linter() {
    let sources = repository().join("crates/vmdisk-cli/src");
    let linter = sources.join("lint");
    let is_user = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        !path.starts_with(&linter) && (text.contains("lint::") || text.contains("crate::lint"))
    };
    let mut users: Vec<PathBuf> = rust_files(&sources).into_iter().filter(is_user).collect();
    users.sort();
    // Inputs are read in `input`, settings in `config`, and results are data in `report`.
    assert_eq!(users, ["edit.rs", "lib.rs"].map(|name| sources.join(name)));
}

#[test]
fn every_test_file_is_a_part_of_a_program() {
    let folders = std::fs::read_dir(repository().join("crates")).unwrap();
    let packages = folders.map(|entry| entry.unwrap().path());
    let mut checked = 0;
    for package in packages.chain([repository().join("tests")]) {
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
        if !manifest.contains("\nautotests = false\n") {
            continue;
        }
        let paths = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"tests/"));
        let programs: Vec<String> = paths
            .map(|path| package.join("tests").join(path.trim_end_matches('"')))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        for entry in std::fs::read_dir(package.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_program = manifest.contains(&format!("\"tests/{name}.rs\""))
                || manifest.contains(&format!("\"tests/{name}/main.rs\""));
            let holds_modules =
                path.is_dir() && !path.join("main.rs").is_file() && !path.join("mod.rs").is_file();
            let module = format!("mod {name};");
            assert!(
                is_program
                    || holds_modules
                    || programs.iter().any(|program| program.contains(&module)),
                "{} is in no test program",
                path.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} files and folders");
}
