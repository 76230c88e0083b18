//! The GitHub action and the pre-commit hook, run as their services run them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{CLEAN, Place, Run, UNSAFE, finish};

const ACTION: &str = include_str!("../../../../action.yml");
const LINT_GUIDE: &str = include_str!("../../../../docs/lint.md");
const HOOKS: &str = include_str!("../../../../.pre-commit-hooks.yaml");

/// The script of a step of the action.
fn action_script(step: &str) -> String {
    let (_, below) = ACTION.split_once(&format!("- name: {step}\n")).unwrap();
    let (_, below) = below.split_once("run: |\n").unwrap();
    let indent = below.len() - below.trim_start().len();
    let lines = below
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(&" ".repeat(indent)))
        .map(|line| line.get(indent..).unwrap_or_default());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// `bash`, as GitHub's `shell: bash` runs the script of a step.
fn step(name: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c"])
        .arg(action_script(name));
    command
}

/// The default of an input of the action.
fn default_of(input: &str) -> String {
    let (_, below) = ACTION.split_once(&format!("  {input}:\n")).unwrap();
    let line = below
        .lines()
        .find(|line| line.contains("default:"))
        .unwrap();
    line.trim()
        .trim_start_matches("default: ")
        .trim_matches('\'')
        .to_owned()
}

/// Runs the action in a directory with these inputs, and its defaults for the others.
fn act(place: &Place, inputs: &[(&str, &str)]) -> Run {
    let bin = place.path("runner/vmdisk/bin");
    if !bin.exists() {
        std::fs::create_dir_all(&bin).unwrap();
        symlink(crate::program(), bin.join("vmdisk")).unwrap();
    }
    let mut command = step("Lint");
    command
        .current_dir(place.path(""))
        .env("RUNNER_TEMP", place.path("runner"))
        .env("GITHUB_OUTPUT", place.path("runner/output"))
        .env("SOURCE_DATE_EPOCH", "1795000000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for line in ACTION.lines().filter(|line| line.contains("${{ inputs.")) {
        let (variable, input) = line.trim().split_once(": ${{ inputs.").unwrap();
        let input = input.trim_end_matches(" }}");
        let given = inputs.iter().find(|(name, _)| *name == input);
        let value = given.map_or_else(|| default_of(input), |(_, value)| (*value).to_owned());
        command.env(variable, value);
    }
    finish(command, b"")
}

#[test]
fn the_action_says_that_it_builds_and_for_what() {
    let place = Place::with(&[
        ("action/Cargo.toml", "version = \"0.1.0\"\n"),
        ("action/Cargo.lock", ""),
    ]);
    std::fs::create_dir_all(place.path("action/crates")).unwrap();
    place.program("bin/curl", "echo \"$@\" >&2\nexit 22");
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    for (system, arch, why, file) in [
        (
            "Linux",
            "X64",
            "the release v0.1.0 could not be downloaded",
            Some("x86_64"),
        ),
        (
            "Linux",
            "ARM64",
            "the release v0.1.0 could not be downloaded",
            Some("aarch64"),
        ),
        (
            "Linux",
            "RISCV64",
            "no binary is released for Linux on RISCV64",
            None,
        ),
        (
            "macOS",
            "ARM64",
            "no binary is released for macOS on ARM64",
            None,
        ),
    ] {
        let mut command = step("Download the released binary");
        command
            .env("PATH", &path)
            .env("GITHUB_ACTION_PATH", place.path("action"))
            .env("GITHUB_OUTPUT", place.path("output"))
            .env("RUNNER_TEMP", place.path("runner"))
            .env("RUNNER_OS", system)
            .env("RUNNER_ARCH", arch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let run = finish(command, b"");
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            run.stdout.starts_with("::notice title=vmdisk is built::"),
            "{run:?}"
        );
        assert!(run.stdout.contains(why), "{run:?}");
        let asked = file.map(|arch| format!("/v0.1.0/vmdisk-0.1.0-{arch}-linux.tar.gz"));
        assert!(
            asked.is_none_or(|name| run.stderr.contains(&name)),
            "{run:?}"
        );
    }
}

/// Rules that lack facts do not fail the job.
const LENIENT: (&str, &str) = ("fail-on-unchecked", "false");

fn guests() -> Place {
    Place::with(&[
        ("domains/web1.xml", CLEAN),
        ("more/deep/db1.xml", UNSAFE),
        ("more/network.xml", "<network/>"),
        ("sp ace/db2.xml", UNSAFE),
        ("pom.xml", "<project/>"),
        (
            "facts/a.yaml",
            "schema_version: '1.0'\ncollected_at: '2020-01-01T00:00:00Z'\n",
        ),
    ])
}

#[test]
fn the_action_checks_every_line_word_and_pattern_of_its_paths() {
    let place = guests();
    assert_eq!(act(&place, &[("paths", "domains/"), LENIENT]).code, 0);
    for paths in [
        "domains/\nmore/\n",
        "domains/ more/",
        "  domains/\n\n  more/deep/db1.xml\n",
        "domains/*.xml more/**/*.xml",
        "**/*.xml",
        ".",
    ] {
        let run = act(&place, &[("paths", paths), LENIENT]);
        assert_eq!(run.code, 1, "{paths:?}: {run:?}");
        assert!(
            run.stdout.contains("file=more/deep/db1.xml"),
            "{paths:?}: {run:?}"
        );
    }
    for paths in [
        "sp ace/\n",
        "domains/\nsp ace/db2.xml",
        "domains\n  sp ace\n",
    ] {
        let run = act(&place, &[("paths", paths), LENIENT]);
        assert!(run.stdout.contains("sp ace/db2.xml"), "{paths:?}: {run:?}");
    }
    let run = act(&place, &[("paths", "domains/*.yml"), LENIENT]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stdout.contains("no file matches"), "{run:?}");
}

#[test]
fn the_action_passes_its_other_inputs_on() {
    let place = guests();
    let facts = ("facts", "facts/*.yaml\n");
    let paths = ("paths", "domains/");
    assert_eq!(act(&place, &[paths, facts, LENIENT]).code, 0);
    let unchecked = act(&place, &[paths, facts]);
    assert_eq!(unchecked.code, 1, "{unchecked:?}");
    // Without facts, a clean repository is green with the defaults, and one notice says what was not checked.
    let plain = act(&place, &[paths]);
    assert_eq!(plain.code, 0, "{plain:?}");
    assert_eq!(
        plain.stdout.matches("title=not checked").count(),
        1,
        "{plain:?}"
    );
    let old = act(&place, &[paths, facts, LENIENT, ("max-facts-age", "30d")]);
    assert_eq!(old.code, 1, "{old:?}");
    assert!(old.stderr.contains("collect the facts again"), "{old:?}");
    let sarif = act(&place, &[paths, LENIENT, ("sarif", "true")]);
    assert_eq!(sarif.code, 0, "{sarif:?}");
    let output = place.read("runner/output");
    let file = output.trim().strip_prefix("sarif=").unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("\"runs\""));
    let lenient = act(
        &place,
        &[("paths", "more/deep/"), ("fail-on", "error"), LENIENT],
    );
    assert_eq!(lenient.code, 1, "{lenient:?}");
}

#[test]
fn a_cached_build_of_the_action_has_its_sources_as_the_key() {
    let place = Place::with(&[
        ("action/Cargo.toml", "version = \"0.1.0\"\n"),
        ("action/Cargo.lock", ""),
        ("action/crates/a/src/lib.rs", "fn a() {}\n"),
        ("action/README.md", "a"),
    ]);
    let key = || {
        let output = place.path("output");
        std::fs::write(&output, "").unwrap();
        let mut command = step("Download the released binary");
        command
            .env("GITHUB_ACTION_PATH", place.path("action"))
            .env("GITHUB_OUTPUT", &output)
            // No binary is released for it, so that nothing is downloaded.
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "RISCV64")
            .stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        let text = std::fs::read_to_string(&output).unwrap();
        let value = text.strip_prefix("sources=").unwrap().trim().to_owned();
        assert_eq!(value.len(), 64, "{text}");
        value
    };
    assert!(ACTION.contains("key: vmdisk-${{ steps.released.outputs.sources }}-"));
    let first = key();
    place.write("action/README.md", b"b");
    assert_eq!(key(), first, "the binary does not depend on it");
    for file in ["Cargo.toml", "Cargo.lock", "crates/a/src/lib.rs"] {
        let before = key();
        place.write(&format!("action/{file}"), b"version = \"0.1.0\"\n\n");
        assert_ne!(key(), before, "{file}");
    }
}

/// Runs the hook as pre-commit does: its entry, the user's arguments and the files it is for.
fn hook(place: &Place, files: &[&str], arguments: &[&str]) -> Run {
    let key = |key: &str| {
        let prefix = format!("{key}: ");
        let line = HOOKS
            .lines()
            .find_map(|line| line.trim().strip_prefix(&prefix));
        line.unwrap().trim_matches('\'').to_owned()
    };
    // A test compares the whole pattern with the endings that a directory is searched for.
    let files_of = key("files");
    let (endings, _) = files_of
        .strip_prefix(r"(\.(")
        .and_then(|it| it.split_once(')'))
        .unwrap();
    let is_for = |file: &&&str| {
        let extension = Path::new(file).extension().and_then(|name| name.to_str());
        extension.is_some_and(|name| endings.split('|').any(|it| it == name))
    };
    let entry = key("entry");
    let (program, rest) = entry.split_once(' ').unwrap();
    assert_eq!(program, "vmdisk");
    let words = rest.split(' ').chain(arguments.iter().copied());
    finish(
        place.command(words.chain(files.iter().filter(is_for).copied())),
        b"",
    )
}

#[test]
fn the_hook_skips_foreign_files_and_checks_command_lines() {
    let place = guests();
    place.write(
        "web2.args",
        b"qemu-system-x86_64 -drive file=/a.qcow2,format=qcow2,cache=unsafe",
    );
    place.write("server.cfg", b"[server]\nport = 1\n");
    place.write("README.md", b"# Guests\n");
    let foreign = ["pom.xml", "more/network.xml", "server.cfg", "README.md"];
    let run = hook(&place, &foreign, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let clean = ["pom.xml", "domains/web1.xml"];
    assert_eq!(hook(&place, &clean, &[]).code, 0, "green without facts");
    let run = hook(&place, &clean, &["--facts", "facts/a.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("--fail-on-unchecked"), "{run:?}");
    assert!(HOOKS.contains("\n  require_serial: true\n"));
    for bad in ["more/deep/db1.xml", "web2.args"] {
        let run = hook(&place, &["pom.xml", bad], &["--fail-on", "error"]);
        assert_eq!(run.code, 1, "{bad}: {run:?}");
        assert!(run.stdout.contains("cache-unsafe"), "{bad}: {run:?}");
    }
    place.write("compose.yaml", b"services: {web: {image: web}}\n");
    assert_eq!(hook(&place, &["compose.yaml"], &[]).code, 0);
    place.write("web3.yml", b"version: 1\ndisks:\n- raw: {path: a.img}\n");
    assert_eq!(hook(&place, &["web3.yml"], &[]).code, 1);
    // A guest that is broken is not foreign.
    place.write("broken.xml", b"<domain>");
    assert_eq!(hook(&place, &["broken.xml"], &[]).code, 2);
}

/// The `script` of the job in the guide.
fn gitlab_script() -> &'static str {
    let (_, below) = LINT_GUIDE.split_once("\n**GitLab.**\n").unwrap();
    let mut lines = below.lines();
    lines
        .find_map(|line| line.trim().strip_prefix("script: "))
        .unwrap()
}

#[test]
fn the_job_of_gitlab_is_green_on_clean_guests_and_red_on_one_error() {
    let facts = include_str!("../../../../fixtures/facts/xfs-nvme.json");
    let image = "\"path\": \"/srv/img/web1.qcow2\",";
    let access =
        r#""qemu_access": {"search": true, "stopped_at": null, "read": true, "write": true},"#;
    let facts = facts.replacen(image, &format!("{image} {access}"), 1);
    assert!(facts.contains(access));
    let clean = "\
<domain type='kvm'>
  <name>web1</name>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
      <source file='/srv/img/web1.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
";
    let place = Place::with(&[("domains/web1.xml", clean), ("facts/kvm-gen3.json", &facts)]);
    symlink(crate::program(), place.path("vmdisk")).unwrap();
    let job = || {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("PATH=$PWD:$PATH; {}", gitlab_script())])
            .current_dir(place.path(""))
            .env("SOURCE_DATE_EPOCH", "1795000000")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let run = finish(command, b"");
        let report: serde_json::Value =
            serde_json::from_str(&place.read("code-quality.json")).unwrap();
        (run, report)
    };
    let (run, report) = job();
    assert_eq!((run.code, report), (0, serde_json::json!([])), "{run:?}");
    let unsafe_guest = clean.replace("cache='none'", "cache='unsafe'");
    place.write("domains/web1.xml", unsafe_guest.as_bytes());
    let (run, report) = job();
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(report[0]["check_name"], "cache-unsafe", "{report}");
}

#[test]
fn the_unit_of_systemd_writes_the_metrics_that_alerts_are_about() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let unit = std::fs::read_to_string(repository.join("integrations/systemd/vmdisk-lint.service"))
        .unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/vmdisk "));
    // The directory and the guests are those of the test.
    let words = start
        .unwrap()
        .replace("/var/lib/prometheus/node-exporter/", "");
    let words: Vec<&str> = words
        .split(' ')
        .map(|word| if word == "--all-domains" { "." } else { word })
        .collect();
    let place = guests();
    let run = place.run(&words);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let metrics = place.read("vmdisk.prom");
    assert!(
        metrics.contains("vmdisk_lint_findings{rule=\"cache-unsafe\",severity=\"error\""),
        "{metrics}"
    );
    let alerts =
        std::fs::read_to_string(repository.join("integrations/prometheus/vmdisk.rules.yml"))
            .unwrap();
    let expressions: Vec<&str> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .collect();
    assert_eq!(expressions.len(), 4);
    let mut metrics_named = 0;
    for word in expressions
        .iter()
        .flat_map(|it| it.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
    {
        if word.starts_with("vmdisk_") {
            assert!(
                metrics.contains(&format!("# TYPE {word} gauge\n")),
                "{word}"
            );
            metrics_named += 1;
        }
    }
    assert_eq!(metrics_named, 3);
    for rule in ["thin-pool-nearly-full", "lvm-snapshot-fills-up"] {
        assert!(
            alerts.contains(rule) && vmdisk::rules::find(rule).is_some(),
            "{rule}"
        );
    }
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(
            ["service", "timer"]
                .map(|end| repository.join(format!("integrations/systemd/vmdisk-lint.{end}"))),
        )
        .output();
    if let Ok(output) = verify {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut said = said
            .lines()
            .filter(|line| line.contains("vmdisk-lint") && !line.contains("is not executable"));
        assert_eq!(said.next(), None);
    }
}
