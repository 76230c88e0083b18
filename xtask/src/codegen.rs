//! Generated files: `docs/rules/`, `docs/schema/` with its copies in the command, `docs/direct-io.md`, the table of
//! QEMU's properties from the recordings, the table of meanings from the documentation of the model, and the types of the
//! Python module and of the npm package.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use vmdisk::facts::{Introspection, MemberTable};
use vmdisk::rules::{Example, Group, RULES, Rule};

use crate::{direct_io, meanings, repository, stubs};

/// The published schemas, and the copies that the command prints: a package has only files of its own folder.
const SCHEMA_FOLDERS: [&str; 2] = ["docs/schema", "crates/vmdisk-cli/src/schemas"];

/// Writes every generated file, or fails if one is out of date.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let files = generate()?;
    let mut stale = Vec::new();
    for (path, text) in &files {
        let full = repository().join(path);
        if std::fs::read_to_string(&full).ok().as_ref() == Some(text) {
            continue;
        }
        stale.push(path.display().to_string());
        if !check {
            std::fs::create_dir_all(full.parent().context("every page is in a folder")?)?;
            std::fs::write(&full, text).with_context(|| full.display().to_string())?;
        }
    }
    for folder in ["docs/rules"].into_iter().chain(SCHEMA_FOLDERS) {
        for entry in std::fs::read_dir(repository().join(folder))
            .into_iter()
            .flatten()
        {
            let path = PathBuf::from(folder).join(entry?.file_name());
            if !files.contains_key(&path) {
                stale.push(format!("{} (no longer generated)", path.display()));
                if !check {
                    std::fs::remove_file(repository().join(&path))?;
                }
            }
        }
    }
    if check && !stale.is_empty() {
        bail!(
            "out of date, run `cargo xtask codegen`:\n{}",
            stale.join("\n")
        );
    }
    println!("{} generated files, {} updated", files.len(), stale.len());
    Ok(())
}

fn generate() -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for rule in RULES {
        files.insert(
            PathBuf::from(format!("docs/rules/{}.md", rule.name)),
            page(rule)?,
        );
    }
    files.insert(PathBuf::from("docs/rules/README.md"), table());
    files.insert(PathBuf::from("docs/direct-io.md"), direct_io::page()?);
    files.insert(
        PathBuf::from("crates/vmdisk-facts/src/members.txt"),
        members()?,
    );
    files.insert(PathBuf::from(meanings::PATH), meanings::table()?);
    let schemas = vmdisk_cli::generate_schemas();
    for (path, language) in stubs::FILES {
        files.insert(PathBuf::from(path), stubs::stub(&schemas, language)?);
    }
    for (name, text) in schemas {
        for folder in SCHEMA_FOLDERS {
            files.insert(PathBuf::from(format!("{folder}/{name}.json")), text.clone());
        }
    }
    Ok(files)
}

/// Returns the table of properties and members of QEMU's releases, from the recordings.
fn members() -> anyhow::Result<String> {
    let mut recordings = Vec::new();
    for entry in std::fs::read_dir(repository().join("fixtures/capabilities"))? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let recording =
            Introspection::from_json(&text).with_context(|| path.display().to_string())?;
        recordings.push(recording);
    }
    recordings.sort_by_key(|recording| recording.qemu);
    Ok(MemberTable::reduce(&recordings).to_text())
}

/// Runs the command in this process and returns its standard output.
pub(crate) fn vmdisk(arguments: &[&str], stdin: &str) -> anyhow::Result<String> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = vmdisk_cli::Io {
        stdin: &mut stdin.as_bytes(),
        stdout: &mut stdout,
        stderr: &mut stderr,
        stdout_has_color: false,
        stdout_has_links: false,
        stdout_width: None,
        stderr_has_color: false,
    };
    let words = std::iter::once("vmdisk").chain(arguments.iter().copied());
    let exit = vmdisk_cli::run(words.map(OsString::from), &mut io);
    if exit.code() > 1 {
        bail!("vmdisk {arguments:?}: {}", String::from_utf8_lossy(&stderr));
    }
    Ok(String::from_utf8(stdout)?)
}

/// Returns a rule's page, with the output for each reported example.
fn page(rule: &Rule) -> anyhow::Result<String> {
    let mut out =
        String::from("<!-- Made by `cargo xtask codegen` from the rule's source. -->\n\n");
    let shown = |example: &Example| !example.says("hidden");
    let mut examples = rule.examples().into_iter().filter(shown);
    let mut current: Option<Example> = None;
    for line in rule.explain().lines() {
        let fence = line.strip_prefix("```");
        if let (Some(info), None) = (fence, &current) {
            current = examples.next();
            if current
                .as_ref()
                .is_some_and(|example| example.says("fixed"))
            {
                out.push_str("\nThe same after its fix:\n\n");
            }
            let language = info.split(',').next().unwrap_or_default();
            let _ = writeln!(out, "```{language}");
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if fence.is_some()
            && let Some(example) = current.take()
            && example.says("reported")
        {
            let _ = write!(out, "\n```text\n{}```\n", finding(rule, &example)?);
        }
    }
    Ok(out)
}

/// Returns the output of this rule for an example.
fn finding(rule: &Rule, example: &Example) -> anyhow::Result<String> {
    // An example may be a QEMU command line.
    let is_xml = example.text.trim_start().starts_with('<');
    let beside = example
        .value_of("beside-")
        .map(|name| repository().join(format!("fixtures/beside/{name}.xml")));
    let beside = beside.map(|path| path.display().to_string());
    let mut arguments = vec!["lint".to_owned()];
    arguments.extend(beside);
    let fixed = [
        "-",
        "--stdin-filename",
        if is_xml { "guest.xml" } else { "guest.sh" },
        "--fail-on",
        "error",
        "--min-severity",
        "pedantic",
        "--verbose",
    ];
    arguments.extend(fixed.map(str::to_owned));
    for name in example.values_of("facts-") {
        let path = repository().join(format!("fixtures/facts/{name}.json"));
        arguments.extend(["--facts".to_owned(), path.display().to_string()]);
    }
    let target: Vec<String> = ["qemu", "libvirt", "kernel", "machine"]
        .iter()
        .filter_map(|key| Some(format!("{key}={}", example.value_of(&format!("{key}-"))?)))
        .collect();
    if !target.is_empty() {
        arguments.extend(["--target".to_owned(), target.join(",")]);
    }
    for policy in vmdisk::Policy::ALL {
        if example.says(policy.as_str()) {
            arguments.extend(["--policy".to_owned(), policy.as_str().to_owned()]);
        }
    }
    for other in RULES.iter().filter(|other| other.name != rule.name) {
        arguments.extend(["--ignore".to_owned(), other.name.to_owned()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = vmdisk(&arguments, &example.text)?;
    if text.is_empty() {
        bail!("{}: no output for a reported example", rule.name);
    }
    Ok(text)
}

/// Returns the list of all rules.
/// The effect of the mistakes of a group.
const fn subject(group: Group) -> &'static str {
    match group {
        Group::Startup => "The guest does not start, or libvirt or QEMU refuses the configuration.",
        Group::DataSafety => "Data can be lost or corrupted.",
        Group::Security => "Data is visible to others, or can be changed by them.",
        Group::Performance => "The disk is slower than it could be.",
        Group::Space => "Storage fills up, or space is never freed.",
        Group::Clarity => "A setting has no effect, or a misleading one.",
    }
}

fn table() -> String {
    let mut out = String::from(
        "<!-- Generated by `cargo xtask codegen` from the rules' sources. -->\n\n# Rules\n\n\
         `vmdisk explain RULE` shows the same pages. [Severities](../lint.md#severities-and-exit-status) explains the second column.\n",
    );
    for group in Group::ALL {
        let rules: Vec<&&Rule> = RULES.iter().filter(|rule| rule.group == *group).collect();
        if rules.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n| rule | severity | |\n|---|---|---|\n",
            group.as_str(),
            subject(*group)
        );
        for rule in rules {
            let _ = writeln!(
                out,
                "| [{0}]({0}.md) | {1} | {2} |",
                rule.name,
                rule.severity,
                rule.summary()
            );
        }
    }
    out
}
