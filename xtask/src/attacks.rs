//! Mutated inputs of every kind for the release binary, and sessions with its language server.
//!
//! A run fails if it ends by a signal, with an unknown exit code or with the message of a bug, takes more than the
//! memory or processor time of [`LIMITS`], or prints what is no UTF-8, no JSON or a control character.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, bail};
use serde_json::json;
use vmdisk_testing::Editor;

use crate::random::Random;
use crate::{release, repository};

/// How much to attack.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The binary; by default it is built
    #[arg(long)]
    program: Option<PathBuf>,
    /// Number of mutated inputs of the command
    #[arg(long, default_value_t = 60_000)]
    inputs: usize,
    /// Number of sessions with the language server
    #[arg(long, default_value_t = 300)]
    sessions: usize,
    /// Seed: the same seed gives the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Limits of a run, as commands of a shell: 5 s of processor time, 1 GB of addresses, no file above 64 MiB.
const LIMITS: &str = "ulimit -t 5 && ulimit -v 1000000 && ulimit -f 131072 && exec \"$0\" \"$@\"";

/// What a run prints if it has a bug, or is no run of the command.
const BUGS: [&str; 4] = [
    "panicked",
    "a bug in vmdisk",
    "internal error",
    "try '--help'",
];

/// A kind of input.
struct Kind {
    name: &'static str,
    /// The name of the mutated file.
    file: &'static str,
    /// Where the first inputs are: files and folders of the repository.
    seeds: &'static [&'static str],
    /// Runs that read [`Self::file`], beside the files of [`COMPANIONS`].
    runs: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "libvirt XML",
        file: "a.xml",
        seeds: &[
            "fixtures/mistakes",
            "fixtures/clean",
            "fixtures/healthy",
            "fixtures/guests",
            "fixtures/fuzz/domain-xml",
        ],
        runs: &[
            "lint a.xml",
            "lint --verbose a.xml",
            "lint --format json --facts facts.json a.xml",
            "lint --format json-lines a.xml",
            "lint --format sarif a.xml",
            "lint --format github a.xml",
            "lint --format gitlab a.xml",
            "lint --format junit a.xml",
            "lint --format checkstyle a.xml",
            "lint --format prometheus a.xml",
            "lint --format html a.xml",
            "lint --diff --unsafe-fixes --facts facts.json a.xml",
            "lint --fix --unsafe-fixes a.xml",
            "lint --statistics a.xml",
            "convert --to qemu a.xml",
            "convert --to qmp a.xml",
            "convert --to spec a.xml",
            "convert --to disk-xml a.xml",
            "convert --to libvirt-xml --resolved a.xml",
            "trace --format text --facts facts.json a.xml",
            "trace --format json a.xml",
            "trace --format svg a.xml",
            "decide --format text --facts facts.json a.xml",
            "decide --format json a.xml",
            "facts redact --salt-file salt a.xml",
            "lint a.xml --write-baseline",
        ],
    },
    Kind {
        name: "command line",
        file: "a.args",
        seeds: &[
            "fixtures/command-lines",
            "fixtures/articles",
            "fixtures/fuzz/command-line",
        ],
        runs: &[
            "lint a.args",
            "lint --format json --facts facts.json a.args",
            "lint --format sarif a.args",
            "lint --diff --unsafe-fixes a.args",
            "lint --fix --unsafe-fixes a.args",
            "convert --to libvirt-xml a.args",
            "convert --to qemu a.args",
            "convert --to spec a.args",
            "trace --format json a.args",
            "decide --format diff a.args",
        ],
    },
    Kind {
        name: "spec",
        file: "a.yaml",
        seeds: &["fixtures/specs", "fixtures/fuzz/spec"],
        runs: &[
            "lint a.yaml",
            "lint --format json --facts facts.json a.yaml",
            "generate --to libvirt-xml a.yaml",
            "generate --to disk-xml --facts facts.json a.yaml",
            "generate --to qemu a.yaml",
            "generate --to qmp a.yaml",
            "generate --to blockdev-json a.yaml",
            "generate --to script a.yaml",
            "convert --to qemu a.yaml",
            "trace --format json a.yaml",
        ],
    },
    Kind {
        name: "facts",
        file: "a.json",
        seeds: &[
            "fixtures/facts",
            "fixtures/facts-lab",
            "fixtures/fuzz/facts",
        ],
        runs: &[
            "facts show a.json",
            "facts check a.json",
            "facts diff --format json a.json facts.json",
            "facts redact --salt-file salt a.json",
            "lint --format json --facts a.json guest.xml",
            "trace --format json --facts a.json guest.xml",
            "generate --facts a.json spec.yaml",
        ],
    },
    Kind {
        name: "image",
        file: "a.img",
        seeds: &["fixtures/fuzz/image-header"],
        runs: &[
            "facts a.img",
            "facts --for image.xml",
            "lint --live image.xml",
        ],
    },
    Kind {
        name: "-readconfig file",
        file: "a.cfg",
        seeds: &["xtask/src/attacks/guest.cfg"],
        runs: &[
            "lint a.cfg",
            "lint --format json readconfig.args",
            "convert --to libvirt-xml a.cfg",
            "trace --format json a.cfg",
        ],
    },
    Kind {
        name: "configuration",
        file: "a.toml",
        seeds: &["xtask/src/attacks/configuration.toml"],
        runs: &[
            "lint --config a.toml guest.xml",
            "lint --format json --config a.toml guest.xml",
        ],
    },
    Kind {
        name: "baseline",
        file: "known.json",
        seeds: &["xtask/src/attacks/known.json"],
        runs: &[
            "lint --baseline known.json guest.xml",
            "lint guest.xml --prune-baseline --baseline known.json",
        ],
    },
    Kind {
        name: "result of a benchmark",
        file: "a.json",
        seeds: &["fixtures/measurements"],
        runs: &[
            "bench report --format text a.json",
            "bench report --format json a.json",
            "bench report --format csv a.json",
            "bench report --format markdown a.json",
            "bench compare a.json result.json",
        ],
    },
    Kind {
        name: "plan of a benchmark",
        file: "a.yaml",
        seeds: &["xtask/src/attacks/plan.yaml"],
        runs: &["bench run --dry-run --directory . --plan a.yaml"],
    },
    Kind {
        name: "script",
        file: "start.sh",
        seeds: &["xtask/src/attacks/start.sh"],
        runs: &[
            "lint start.sh",
            "lint --format json --facts facts.json start.sh",
            "lint --fix --unsafe-fixes start.sh",
            "lint --format full start.sh",
            "trace --format text start.sh",
            "decide --format text start.sh",
        ],
    },
    Kind {
        name: "makefile",
        file: "Makefile",
        seeds: &["xtask/src/attacks/Makefile"],
        runs: &[
            "lint Makefile",
            "lint --format sarif Makefile",
            "lint --set LAB=1 Makefile",
            "trace --format json Makefile",
        ],
    },
    Kind {
        name: "unit",
        file: "guest@.service",
        seeds: &["xtask/src/attacks/guest@.service"],
        runs: &[
            "lint guest@.service",
            "lint --format html guest@.service",
            "trace --format text guest@.service",
        ],
    },
    Kind {
        name: "markdown",
        file: "guide.md",
        seeds: &["xtask/src/attacks/guide.md"],
        runs: &[
            "lint guide.md",
            "lint --format json guide.md",
            "trace --format svg --start 1 guide.md",
        ],
    },
    Kind {
        name: "capture",
        file: "capture.json",
        seeds: &["xtask/src/attacks/capture.json"],
        runs: &[
            "lint capture.json",
            "lint --diff --unsafe-fixes capture.json",
            "trace --format json capture.json",
            "facts redact --level full capture.json",
        ],
    },
    Kind {
        name: "template",
        file: "a.xml.j2",
        seeds: &["xtask/src/attacks/guest.xml.j2", "fixtures/templates"],
        runs: &[
            "lint a.xml.j2",
            "lint --format json --facts facts.json a.xml.j2",
            "lint --fix a.xml.j2",
        ],
    },
    Kind {
        name: "recording of a QEMU",
        file: "a.json",
        seeds: &["fixtures/capabilities"],
        runs: &[
            "capabilities --qemu a.json",
            "lint --format json --qemu a.json guest.xml",
        ],
    },
];

/// Files beside the mutated one.
const COMPANIONS: [(&str, &str); 5] = [
    ("facts.json", "fixtures/facts/storage-stacks.json"),
    ("guest.xml", "fixtures/mistakes/09-cache-unsafe.xml"),
    ("spec.yaml", "fixtures/specs/web1.yaml"),
    ("result.json", "fixtures/measurements/cache-modes.json"),
    ("known.json", "xtask/src/attacks/known.json"),
];

/// Files beside the mutated one, with their texts.
const TEXTS: [(&str, &str); 3] = [
    ("salt", "0123456789abcdef0123456789abcdef"),
    ("readconfig.args", "qemu-system-x86_64 -readconfig a.cfg\n"),
    (
        "image.xml",
        "<disk type='file'><driver name='qemu' type='qcow2'/><source file='a.img'/><target dev='vda' bus='virtio'/></disk>",
    ),
];

/// Words that replace others.
const WORDS: [&[u8]; 40] = [
    b"",
    b"0",
    b"-1",
    b"1",
    b"65536",
    b"4294967296",
    b"18446744073709551616",
    b"1e999",
    b"9223372036854775807",
    b"0x10",
    b"\xc3\xbc",
    b"\xe2\x80\xae",
    b"\xff\xfe",
    b"\0",
    b"\x1b[31m",
    b"\r\n",
    b"\n",
    b"\t",
    b" ",
    b"'",
    b"\"",
    b"<",
    b">",
    b"&",
    b"&amp;",
    b"]]>",
    b"--",
    b"{}",
    b"[]",
    b"{\"a\":",
    b"${X}",
    b"`x`",
    b"%s%n",
    b"{{x}}",
    b"../../../../etc/shadow",
    b"/dev/zero",
    b"json:{\"driver\":\"nbd\"}",
    b"::error::x",
    b",,",
    b"=",
];

/// Attacks the release binary.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = match &arguments.program {
        Some(program) => program.canonicalize()?,
        None => release::build_release()?,
    };
    let mut random = Random(arguments.seed);
    let mut failures = Vec::new();
    let seeds: Vec<Vec<Vec<u8>>> = KINDS.iter().map(seeds_of).collect::<Result<_, _>>()?;
    let mut counts = BTreeMap::new();
    let mut refused: BTreeSet<&str> = KINDS.iter().flat_map(|kind| kind.runs).copied().collect();
    for nth in 0..arguments.inputs {
        let chosen = nth % KINDS.len();
        let (kind, seeds) = (&KINDS[chosen], &seeds[chosen]);
        let input = mutated(seeds, &mut random);
        let run = *random.one_of(kind.runs);
        let folder = place(kind, &input)?;
        let words: Vec<&str> = run.split(' ').collect();
        let mut command = Command::new("sh");
        command.args(["-c", LIMITS]).arg(&program).args(words);
        let output = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()?;
        *counts.entry(kind.name).or_insert(0) += 1;
        if matches!(output.status.code(), Some(0 | 1)) {
            refused.remove(run);
        }
        if let Some(fault) = fault_of(&output, run) {
            let kept = folder.keep();
            println!(
                "{}: {run}: {fault}; its files are in {}",
                kind.name,
                kept.display()
            );
            failures.push(fault);
        }
    }
    for (kind, count) in &counts {
        println!("{count:>6} inputs: {kind}");
    }
    for session in 0..arguments.sessions {
        let chosen = session % 3;
        let input = mutated(&seeds[chosen], &mut random);
        edit(&program, KINDS[chosen].file, &input, &mut random)?;
    }
    println!(
        "{:>6} sessions with the language server",
        arguments.sessions
    );
    // A run that takes no input at all is a mistake here.
    failures.extend(
        refused
            .iter()
            .map(|run| format!("refuses every input: {run}")),
    );
    println!("seed {}: {} failures", arguments.seed, failures.len());
    if !failures.is_empty() {
        bail!("failures:\n{}", failures.join("\n"));
    }
    Ok(())
}

/// The first inputs of a kind.
fn seeds_of(kind: &Kind) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> = kind
        .seeds
        .iter()
        .map(|seed| repository().join(seed))
        .collect();
    let suffix = Path::new(kind.file).extension();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
        } else if path.extension().is_none() || path.extension() == suffix {
            found.push(fs::read(&path).with_context(|| path.display().to_string())?);
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("no seeds of {}", kind.name);
    }
    Ok(found)
}

/// A folder with the input and its companions.
fn place(kind: &Kind, input: &[u8]) -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (name, source) in COMPANIONS {
        std::os::unix::fs::symlink(repository().join(source), folder.path().join(name))?;
    }
    for (name, text) in TEXTS {
        fs::write(folder.path().join(name), text)?;
    }
    let path = folder.path().join(kind.file);
    if path.is_symlink() {
        fs::remove_file(&path)?;
    }
    fs::write(path, input)?;
    Ok(folder)
}

/// A changed input: words and values in most, bytes and parts in the others.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.one_of(seeds).clone();
    if random.below(10) < 3 {
        for _ in 0..=random.below(8) {
            destroy(&mut input, seeds, random);
        }
    } else {
        for _ in 0..=random.below(3) {
            replace_word(&mut input, random);
        }
    }
    input
}

fn replace_word(input: &mut Vec<u8>, random: &mut Random) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./".contains(byte);
    if input.is_empty() {
        return;
    }
    let at = random.below(input.len());
    let Some(start) = input[at..]
        .iter()
        .position(is_word)
        .map(|skipped| at + skipped)
    else {
        return;
    };
    let end = input[start..]
        .iter()
        .position(|byte| !is_word(byte))
        .map_or(input.len(), |length| start + length);
    let word = match random.below(4) {
        // Another word of the same text.
        0 => {
            let from = random.below(input.len());
            let to = (from + 1 + random.below(12)).min(input.len());
            input[from..to].to_vec()
        }
        1 => random.one_of(&WORDS).repeat(1 + random.below(300)),
        _ => random.one_of(&WORDS).to_vec(),
    };
    input.splice(start..end, word);
}

fn destroy(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let start = random.below(input.len() + 1);
    let end = (start + random.below(64)).min(input.len());
    match random.below(6) {
        0 => drop(input.drain(start..end)),
        1 => {
            let part = input[start..end].repeat(1 + random.below(50));
            input.splice(start..start, part);
        }
        2 => {
            for byte in &mut input[start..end] {
                *byte ^= u8::try_from(random.below(256)).expect("a byte");
            }
        }
        3 => input.truncate(start),
        4 => {
            let other = random.one_of(seeds);
            let from = random.below(other.len() + 1);
            input.splice(start..end, other[from..].iter().copied().take(512));
        }
        _ => drop(input.splice(start..end, random.one_of(&WORDS).iter().copied())),
    }
}

/// What is wrong with a run.
fn fault_of(output: &Output, run: &str) -> Option<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0..=2)) {
        return Some(format!("{}: {errors}", output.status));
    }
    if BUGS.iter().any(|bug| errors.contains(bug)) {
        return Some(errors.into_owned());
    }
    let (Ok(text), Ok(_)) = (
        std::str::from_utf8(&output.stdout),
        std::str::from_utf8(&output.stderr),
    ) else {
        return Some("prints what is no UTF-8".to_owned());
    };
    // What is written to be read by programs keeps the characters of its input.
    let is_for_people = [
        "lint --format full",
        "lint --format concise",
        "trace --format text",
        "decide --format text",
        "facts show",
        "bench report --format text",
    ]
    .iter()
    .any(|start| run.starts_with(start))
        || run.starts_with("lint ") && !run.contains("--format") && !run.contains("--diff");
    let shown = if is_for_people { text } else { "" };
    let is_control = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if shown.chars().chain(errors.chars()).any(is_control) {
        return Some("prints a control character".to_owned());
    }
    let is_json = [
        "--format json ",
        "--format sarif",
        "--format gitlab",
        "--to blockdev-json",
    ];
    if is_json.iter().any(|format| run.contains(format)) && !text.is_empty() {
        let parsed = serde_json::from_str::<serde_json::Value>(text);
        return parsed.err().map(|error| format!("prints no JSON: {error}"));
    }
    None
}

/// A session that opens a text, types into it and asks for everything; the server must answer all and end.
fn edit(program: &Path, file: &str, input: &[u8], random: &mut Random) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let uri = format!("file://{}/{file}", folder.path().display());
    let mut text = String::from_utf8_lossy(input).into_owned();
    let mut editor = Editor::start(program, &[], folder.path());
    editor.open(&uri, &text);
    for version in 2..8 {
        let characters: Vec<char> = text.chars().collect();
        let at = random.below(characters.len() + 1);
        let typed = String::from_utf8_lossy(random.one_of::<&[u8]>(&WORDS)).into_owned();
        let before: String = characters[..at].iter().collect();
        let line = before.matches('\n').count();
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .encode_utf16()
            .count();
        let place = json!({"line": line, "character": column});
        let range = json!({"start": place, "end": place});
        text = before + &typed + &characters[at..].iter().collect::<String>();
        editor.change(&uri, version, &json!([{"range": range, "text": typed}]));
        let document = json!({"uri": uri});
        let at = json!({"textDocument": document, "position": place});
        for request in ["textDocument/completion", "textDocument/hover"] {
            editor.request(request, at.clone());
        }
        let context = json!({"diagnostics": [], "triggerKind": 2});
        editor.request(
            "textDocument/codeAction",
            json!({"textDocument": document, "range": range, "context": context}),
        );
    }
    match editor.exit() {
        Some(0) => Ok(()),
        code => bail!("the language server ended with {code:?}"),
    }
}
