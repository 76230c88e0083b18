//! Every path that a command writes is made by `atomic`, or by `apply` in a private directory of `atomic`.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that make, name or remove something by a path.
const CALLS: [&str; 26] = [
    "fs::write(",
    "File::create",
    "create_new(",
    "OpenOptions",
    "File::options",
    "fs::rename",
    "fs::copy",
    "fs::hard_link",
    "create_dir",
    "DirBuilder",
    "mkdir",
    "symlink(",
    "set_permissions(",
    "OFlags::CREATE",
    "OFlags::WRONLY",
    "OFlags::RDWR",
    "linkat(",
    "renameat",
    "remove_file(",
    "remove_dir",
    "tempfile::",
    "TempDir",
    "tempdir(",
    "mkfifo",
    "mknod",
    "set_len(",
];

/// Files with such calls, and why.
const EXCEPTIONS: [(&str, &str); 15] = [
    ("vmdisk-cli/src/atomic.rs", "outputs"),
    ("vmdisk-cli/src/atomic/", "outputs"),
    ("vmdisk-cli/src/apply/place.rs", "in a private directory"),
    ("vmdisk-cli/src/input/bounded.rs", "reads"),
    ("vmdisk-cli/src/edit.rs", "a private folder of this run"),
    (
        "vmdisk-cli/src/lint/trial.rs",
        "a private folder of this run",
    ),
    ("vmdisk-cli/src/hook.rs", "the folder of libvirt's hooks"),
    ("vmdisk-cli/src/shell.rs", "the folder of completions"),
    ("vmdisk-cli/src/bench/", "a new folder for exports"),
    (
        "vmdisk-collect/src/record.rs",
        "below the descriptor of a private directory",
    ),
    (
        "vmdisk-collect/src/free/held.rs",
        "reads and claims devices",
    ),
    ("vmdisk-collect/src/paths.rs", "reads"),
    ("vmdisk-collect/src/trial.rs", "a file without a name"),
    (
        "vmdisk-capture/src/capture.rs",
        "the numbers of the sandbox's users",
    ),
    ("vmdisk-capture/src/", "in the sandbox"),
];

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let each = entries.flat_map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    each.collect()
}

/// The lines of a file that make or name something; its tests do not count.
fn writing(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with("use "));
    let lines = lines.map(|line| line.replace("is_symlink()", ""));
    let found = lines.filter(|line| CALLS.iter().any(|call| line.contains(call)));
    found.collect()
}

#[test]
fn every_path_that_a_command_writes_is_made_where_outputs_are() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut unused: Vec<&str> = EXCEPTIONS.iter().map(|(path, _)| *path).collect();
    for name in [
        "vmdisk-cli",
        "vmdisk-collect",
        "vmdisk-capture",
        "vmdisk-lsp",
        "vmdisk-qmp",
    ] {
        for path in files_below(&crates.join(name).join("src")) {
            if path.ends_with("tests.rs") || path.ends_with("races.rs") {
                continue;
            }
            let found = writing(&path);
            let path = path.strip_prefix(&crates).unwrap().to_str().unwrap();
            match EXCEPTIONS.iter().find(|(known, _)| path.starts_with(known)) {
                Some((known, _)) if !found.is_empty() => unused.retain(|it| it != known),
                Some(_) => {}
                None => assert!(found.is_empty(), "{path}: {found:?}"),
            }
        }
    }
    assert!(unused.is_empty(), "{unused:?}");
}
