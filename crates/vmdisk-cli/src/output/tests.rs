//! No output replaces a file that the run reads, a disk, or anything that is not text.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;

use crate::args::Cli;
use crate::exit::Exit;
use crate::io::Io;

const GUEST: &str = "\
<domain type='kvm'>
  <name>web1</name>
  <memory unit='MiB'>512</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><features><acpi/></features>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='writeback' discard='unmap'/>
      <source file='DISK'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
";

const SPEC: &str = "version: 1\nguest: {name: web1}\ndisks:\n- raw: {path: /srv/web1.img}\n";

const POOL: &str = "\
<pool type='dir'>
  <name>images</name>
  <target><path>/srv/images</path></target>
</pool>
";

/// Options with a path of commands that write no file, or of which no run reads what is at the path.
const OTHERS: &[&str] = &[
    // A folder.
    "capture --show",
    // Written, or a directory for files that are written.
    "bench compare --output",
    "advise --measured",
    "bench read --to-facts",
    "bench run --to-facts",
    "bench verify --to-facts",
    "bench report --output",
    "bench report --to-facts",
    "facts qemu --output",
    "convert --output",
    "facts --output",
    "facts redact --output",
    "generate --output",
    "lint --output",
    "lint --report",
    "advise --output",
    "apply spec",
    "apply --facts",
    "apply --qemu",
    "decide --output",
    "trace --output",
    "bench read --output",
    "bench run --output",
    "bench verify --output",
    "facts --probe-dio",
    "facts --record",
    "lint --write-config",
    "print man directory",
    "bench prepare-device device",
    "bench read paths",
    "bench history --output",
    "bench read --baselines",
    "bench history --baselines",
    "bench run --baselines",
    "bench verify --baselines",
    "bench resume directory",
    "bench run --destroy-data-behind",
    "bench run --destroy-data-on",
    "bench run --directory",
    "bench run --domain",
    "bench run --kernel",
    "bench run --modules",
    "bench run --plan",
    "bench verify --destroy-data-behind",
    "bench verify --destroy-data-on",
    "bench verify --directory",
    "bench verify --kernel",
    "bench verify --modules",
    "edit --config",
    "edit --facts",
    "edit --qemu",
    "facts check file",
    "facts diff --for",
    "facts diff new",
    "facts diff old",
    "facts show file",
    "hook install --directory",
    "lsp --config",
    "lsp --facts",
    // Names, a program that is started, and a tree of files.
    "convert --base",
    "decide --base",
    "facts --base",
    "lint --base",
    "trace --base",
    "lint --stdin-filename",
    "lint --try-qemu",
    "facts --root",
];

/// An option or a disk, the file, and a command that reads it.
const READ: &[(&str, &str, &[&str])] = &[
    ("lint paths", "g.xml", &["lint", "g.xml"]),
    (
        "lint --facts",
        "f.json",
        &["lint", "g.xml", "--facts", "f.json"],
    ),
    (
        "lint --config",
        "c.toml",
        &["lint", "g.xml", "--config", "c.toml"],
    ),
    (
        "lint --baseline",
        "b.jsonl",
        &["lint", "g.xml", "--baseline", "b.jsonl"],
    ),
    (
        "lint --qemu",
        "q.json",
        &["lint", "g.xml", "--qemu", "q.json"],
    ),
    ("a disk", "disk.img", &["lint", "g.xml"]),
    (
        "the configuration of a directory",
        "d/vmdisk.toml",
        &["lint", "d"],
    ),
    ("generate spec", "s.yaml", &["generate", "s.yaml"]),
    (
        "generate --facts",
        "f.json",
        &["generate", "s.yaml", "--facts", "f.json"],
    ),
    (
        "generate --qemu",
        "q.json",
        &["generate", "s.yaml", "--qemu", "q.json"],
    ),
    (
        "generate --into",
        "g.xml",
        &["generate", "--disk", "raw:/srv/b.img", "--into", "g.xml"],
    ),
    (
        "convert file",
        "g.xml",
        &["convert", "g.xml", "--to", "qemu"],
    ),
    (
        "convert --facts",
        "f.json",
        &["convert", "g.xml", "--to", "qemu", "--facts", "f.json"],
    ),
    (
        "convert --storage",
        "p.xml",
        &["convert", "g.xml", "--to", "qemu", "--storage", "p.xml"],
    ),
    (
        "convert --qemu",
        "q.json",
        &["convert", "g.xml", "--to", "qemu", "--qemu", "q.json"],
    ),
    ("a disk", "disk.img", &["convert", "g.xml", "--to", "spec"]),
    (
        "advise --facts",
        "f.json",
        &["advise", "--size", "1G", "--facts", "f.json"],
    ),
    (
        "advise --qemu",
        "q.json",
        &[
            "advise", "--size", "1G", "--facts", "f.json", "--qemu", "q.json",
        ],
    ),
    ("decide file", "g.xml", &["decide", "g.xml"]),
    (
        "decide --facts",
        "f.json",
        &["decide", "g.xml", "--facts", "f.json"],
    ),
    (
        "decide --storage",
        "p.xml",
        &["decide", "g.xml", "--storage", "p.xml"],
    ),
    (
        "decide --qemu",
        "q.json",
        &["decide", "g.xml", "--qemu", "q.json"],
    ),
    ("a disk", "disk.img", &["decide", "g.xml"]),
    ("trace file", "g.xml", &["trace", "g.xml"]),
    (
        "trace --facts",
        "f.json",
        &["trace", "g.xml", "--facts", "f.json"],
    ),
    (
        "trace --storage",
        "p.xml",
        &["trace", "g.xml", "--storage", "p.xml"],
    ),
    (
        "trace --qemu",
        "q.json",
        &["trace", "g.xml", "--qemu", "q.json"],
    ),
    ("a disk", "disk.img", &["trace", "g.xml"]),
    ("facts --for", "g.xml", &["facts", "--for", "g.xml"]),
    ("a disk", "disk.img", &["facts", "--for", "g.xml"]),
    ("facts paths", "disk.img", &["facts", "disk.img"]),
    (
        "facts redact file",
        "f.json",
        &["facts", "redact", "f.json", "--salt-file", "salt"],
    ),
    (
        "facts redact --salt-file",
        "salt",
        &["facts", "redact", "f.json", "--salt-file", "salt"],
    ),
    (
        "facts qemu --qemu",
        "q.json",
        &["facts", "qemu", "--qemu", "q.json"],
    ),
    (
        "a baseline of a guest",
        "g.xml",
        &["lint", "g.xml", "--force", "--write-baseline"],
    ),
    (
        "a baseline of a guest with facts",
        "f.json",
        &[
            "lint",
            "g.xml",
            "--force",
            "--facts",
            "f.json",
            "--write-baseline",
        ],
    ),
    (
        "a baseline of a run with a configuration",
        "c.toml",
        &[
            "lint",
            "g.xml",
            "--force",
            "--config",
            "c.toml",
            "--write-baseline",
        ],
    ),
    (
        "a baseline of a run with a recording",
        "q.json",
        &[
            "lint",
            "g.xml",
            "--force",
            "--qemu",
            "q.json",
            "--write-baseline",
        ],
    ),
    (
        "a disk",
        "disk.img",
        &["lint", "g.xml", "--force", "--write-baseline"],
    ),
    #[cfg(feature = "bench")]
    ("bench report run", "r.json", &["bench", "report", "r.json"]),
    #[cfg(feature = "bench")]
    (
        "bench compare first",
        "r.json",
        &["bench", "compare", "r.json", "r2.json"],
    ),
    #[cfg(feature = "bench")]
    (
        "bench compare second",
        "r2.json",
        &["bench", "compare", "r.json", "r2.json"],
    ),
];

/// Writes the files of all runs.
fn write_files(folder: &Path) {
    let fixture = |name: &str| {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
        fs::read_to_string(Path::new(fixtures).join(name)).unwrap()
    };
    let disk = folder.join("disk.img");
    let guest = GUEST.replace("DISK", disk.to_str().unwrap());
    fs::create_dir(folder.join("d")).unwrap();
    for (file, text) in [
        ("g.xml", &*guest),
        ("d/g.xml", &guest),
        ("s.yaml", SPEC),
        ("p.xml", POOL),
        ("c.toml", "policy = \"lab\"\n"),
        ("d/vmdisk.toml", "policy = \"lab\"\n"),
        ("salt", "0123456789abcdef0123456789abcdef\n"),
        // A disk without a header that looks like text.
        ("disk.img", "what the guest has written\n"),
        ("b.jsonl", ""),
        ("f.json", &fixture("facts/aio-slots-few.json")),
        ("q.json", &fixture("capabilities/7.2.json")),
        (
            "r.json",
            &fixture("measurements/cache-flushes-storage-daemon.json"),
        ),
        (
            "r2.json",
            &fixture("measurements/cache-flushes-storage-daemon.json"),
        ),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    let created = run(
        folder,
        &[
            "lint",
            "g.xml",
            "--force",
            "--write-baseline",
            "--baseline",
            "b.jsonl",
        ],
    );
    assert_eq!(created.0, 0, "{}", created.1);
}

/// Runs the command on files of a folder; returns the exit status and standard error.
fn run(folder: &Path, words: &[&str]) -> (u8, String) {
    let word = |word: &&str| match (word.split_once("json="), folder.join(word)) {
        (Some((_, file)), _) => format!("json={}", folder.join(file).display()).into(),
        (None, path) if path.exists() || word.starts_with("new.") => path.into_os_string(),
        (None, _) => OsString::from(word),
    };
    let words = std::iter::once(OsString::from("vmdisk")).chain(words.iter().map(word));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io {
        stdin: &mut &b""[..],
        stdout: &mut stdout,
        stderr: &mut stderr,
        stdout_has_color: false,
        stdout_has_links: false,
        stdout_width: None,
        stderr_has_color: false,
    };
    let exit: Exit = crate::run(words, &mut io);
    (exit.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn no_output_replaces_what_the_run_reads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_files(folder);
    for (what, file, words) in READ {
        let file = folder.join(file);
        let name = file.strip_prefix(folder).unwrap().to_str().unwrap();
        let report = format!("json={name}");
        let (option, new) = match *words.last().unwrap() {
            "--write-baseline" => ("--baseline", "new.jsonl"),
            _ => ("-o", "new.out"),
        };
        let mut outputs = vec![[option, name]];
        if words[0] == "lint" && option == "-o" {
            outputs.push(["--report", &report]);
        }
        let before = fs::read(&file).unwrap();
        for output in outputs {
            let (code, stderr) = run(folder, &[words, &output[..]].concat());
            assert_eq!(code, 2, "{what}, {output:?}: {stderr}");
            let refused = format!("could not write {}: this run reads it", file.display());
            assert!(stderr.contains(&refused), "{what}, {output:?}: {stderr}");
            assert!(fs::read(&file).unwrap() == before, "{what}, {output:?}");
        }
        // Nothing but the name of the output is wrong.
        let (code, stderr) = run(folder, &[words, &[option, new][..]].concat());
        assert!(code < 2, "{what}: {stderr}");
        fs::remove_file(folder.join(new)).unwrap();
    }
}

/// The options and arguments with a path of a command and of those below it.
fn paths_of(command: &clap::Command, name: &str, found: &mut BTreeSet<String>) {
    let is_path = |arg: &clap::Arg| {
        let path: ValueParser = clap::value_parser!(PathBuf);
        arg.get_value_parser().type_id() == path.type_id() || arg.get_id() == "report"
    };
    for arg in command.get_arguments().filter(|arg| is_path(arg)) {
        let option = match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => arg.get_id().to_string(),
        };
        found.insert(format!("{name}{option}").replace("facts collect ", "facts "));
    }
    for below in command.get_subcommands() {
        paths_of(below, &format!("{name}{} ", below.get_name()), found);
    }
}

#[test]
fn every_option_with_a_path_is_classified() {
    let mut found = BTreeSet::new();
    let mut command = Cli::whole();
    command.build();
    paths_of(&command, "", &mut found);
    let is_option = |what: &&str| !what.starts_with("a disk") && !what.contains(" of a ");
    let read = READ.iter().map(|(what, ..)| *what).filter(is_option);
    let known: BTreeSet<String> = read
        .chain(OTHERS.iter().copied())
        .map(str::to_owned)
        .collect();
    assert_eq!(found, known);
}

/// The functions of the standard library that create files are those of `clippy.toml`; options of an open are these.
#[test]
fn only_atomic_and_apply_create_a_file_by_its_name() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut pending = vec![sources.clone()];
    let mut creating = BTreeSet::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            // Each in two parts, so that this file has none of them.
            let words = [
                (".create_new", "(true)"),
                (".create", "(true)"),
                ("OFlags::", "CREATE"),
            ];
            if words
                .iter()
                .any(|(one, other)| text.contains(&[*one, *other].concat()))
            {
                let path = path.strip_prefix(&sources).unwrap();
                creating.insert(path.components().next().unwrap().as_os_str().to_owned());
            }
        }
    }
    // `tempfile` opens what `atomic` creates.
    assert_eq!(creating, BTreeSet::from(["apply".into()]));
}
