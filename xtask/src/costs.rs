//! The costs of vmdisk: instructions of eleven workloads, the size of the binary and the number of crates, compared with
//! the numbers in `xtask/costs.txt`; the memory that each further file takes; and what twice the input costs.
//!
//! `--rules` measures the share of each rule instead.
//!
//! Instructions are counted by valgrind, because times differ from run to run and from machine to machine.

mod growth;
mod peer;
mod rules;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, bail};
use clap::Args;
use vmdisk_tests::{has_program, real};

use crate::{fleet, memory, release, repository};

/// How to deal with the recorded numbers.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Fail if a number is larger than the recorded one by more than the tolerance
    #[arg(long, conflicts_with = "bless")]
    check: bool,
    /// Record the numbers
    #[arg(long)]
    bless: bool,
    /// Measure the share of each rule instead; fail if one has more than 2 % of a run over 200 domains, or grows faster
    /// than the number of disks (builds a binary with symbols)
    #[arg(long, conflicts_with_all = ["check", "bless"])]
    rules: bool,
    /// Check only that twice the input costs about twice the instructions, for every command and format, and that large
    /// inputs take at most 2 s and 200 MB
    #[arg(long, conflicts_with_all = ["check", "bless", "rules"])]
    growth: bool,
    /// Check only that `vmdisk lint` costs no more than `xmllint --noout` on the same files
    #[arg(long, conflicts_with_all = ["check", "bless", "rules", "growth"])]
    peer: bool,
}

/// The recorded numbers, from the root of the repository.
const RECORD: &str = "xtask/costs.txt";

/// How much larger than the recorded number, in percent, a number of instructions or bytes may be.
///
/// Runs of one binary differ by less than 0.1 percent, because of the seeds of hash maps. The rest is for another patch
/// release of the compiler, and for the C library, which chooses string functions by the processor.
const TOLERANCE_PERCENT: u64 = 5;

/// Number of generated domains, together about 1.3 MB.
const DOMAINS: u32 = 200;

/// Number of disks on the generated command lines, each with a `-blockdev` and a `-device`.
const PAIRS: [usize; 2] = [2000, 20_000];

/// Number of disks in the generated large domains.
const DISKS: [usize; 2] = [400, 4000];

/// Workloads with some disks, and with ten times as many.
const LINEAR: [[&str; 2]; 2] = [
    [
        "2,000 disks on a command line",
        "20,000 disks on a command line",
    ],
    ["400 disks in a domain", "4,000 disks in a domain"],
];

/// Maximum ratio of instructions for ten times as many disks: reading is linear.
const MAX_RATIO: u64 = 12;

/// A run of vmdisk whose instructions are counted.
struct Workload {
    name: &'static str,
    arguments: Vec<String>,
}

/// Builds the release binary, measures it, and prints, compares or records the numbers.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !real(has_program("valgrind"), "cargo xtask costs", "valgrind") {
        return Ok(());
    }
    if arguments.rules {
        return rules::run();
    }
    let program = release::build_release()?;
    if arguments.growth {
        return growth::must_be_linear(&program);
    }
    if arguments.peer {
        return peer::must_be_near(&program);
    }
    let found = measure(&program)?;
    must_be_linear(&found)?;
    memory::must_be_bounded(&program)?;
    let path = repository().join(RECORD);
    if arguments.bless {
        fs::write(&path, record(&found)).with_context(|| path.display().to_string())?;
        println!("recorded {} numbers in {RECORD}", found.len());
        return Ok(());
    }
    let recorded = parse(&fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
    let mut too_large = Vec::new();
    for (name, value) in &found {
        let before = recorded.get(name).copied();
        println!("{}", line(name, *value, before));
        if before.is_none_or(|before| is_too_large(name, *value, before)) {
            too_large.push(name.as_str());
        }
    }
    if arguments.check && !too_large.is_empty() {
        bail!(
            "more than {RECORD} allows: {}; if it is worth it, run `cargo xtask costs --bless` and say why in the commit",
            too_large.join(", ")
        );
    }
    Ok(())
}

/// Refuses a guest of ten times as many disks that costs more than [`MAX_RATIO`] times as much.
fn must_be_linear(found: &BTreeMap<String, u64>) -> anyhow::Result<()> {
    for names in LINEAR {
        let [few, many] = names.map(|name| found[&format!("instructions: {name}")]);
        let ratio = many as f64 / few as f64;
        println!(
            "{} cost {ratio:.1} times as many instructions as {}",
            names[1], names[0]
        );
        if many > MAX_RATIO * few {
            bail!("reading is not linear: at most {MAX_RATIO} times as many are allowed");
        }
    }
    Ok(())
}

/// Measures everything, by name.
fn measure(program: &Path) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    let folder = tempfile::tempdir()?;
    for workload in workloads(folder.path())? {
        let instructions = count(program, &workload.arguments, folder.path())?;
        found.insert(format!("instructions: {}", workload.name), instructions);
    }
    let bytes = fs::metadata(program)?.len();
    found.insert("bytes: the binary".to_owned(), bytes);
    found.insert("crates: in the binary".to_owned(), crates()?);
    Ok(found)
}

/// Writes the inputs of the workloads into `folder`. All paths are relative, so that they have the same length on
/// every machine.
fn workloads(folder: &Path) -> anyhow::Result<Vec<Workload>> {
    fleet::write_all(&folder.join("domains"), DOMAINS, 1)?;
    for pairs in PAIRS {
        fs::write(folder.join(format!("{pairs}.args")), command_line(pairs))?;
    }
    for disks in DISKS {
        fs::write(folder.join(format!("{disks}.xml")), domain(disks))?;
    }
    for (file, name) in [
        ("specs/web1.yaml", "spec.yaml"),
        ("facts/xfs-nvme.json", "facts.json"),
    ] {
        fs::copy(repository().join("fixtures").join(file), folder.join(name))?;
    }
    fs::write(folder.join("large.json"), large_host()?)?;
    let workload = |name, arguments: &str| Workload {
        name,
        arguments: arguments.split(' ').map(str::to_owned).collect(),
    };
    Ok(vec![
        workload("start", "--version"),
        workload("one domain", "lint domains/guest-00000.xml"),
        workload("200 domains", "lint -j1 --format concise domains"),
        workload("200 domains as JSON", "lint -j1 --format json domains"),
        workload(LINEAR[0][0], "lint --format concise 2000.args"),
        workload(LINEAR[0][1], "lint --format concise 20000.args"),
        workload(LINEAR[1][0], "lint --format concise 400.xml"),
        workload(LINEAR[1][1], "lint --format concise 4000.xml"),
        workload(
            "200 domains with facts",
            "lint -j1 --format concise --facts facts.json domains",
        ),
        workload("a spec with facts", "lint --facts facts.json spec.yaml"),
        workload(
            "advice on 500 mounts and 50 volumes",
            "advise --facts large.json --size 10G",
        ),
    ])
}

/// Facts of a host with 500 more mounts, each with a file system and a directory, and 50 more volumes.
fn large_host() -> anyhow::Result<String> {
    let text = fs::read_to_string(repository().join("fixtures/facts/lvm-thin-64k.json"))?;
    let mut facts: serde_json::Value = serde_json::from_str(&text)?;
    let volume = facts["blockdevs"].as_array().and_then(|all| all.last());
    let volume = volume.context("the fixture has a volume")?.clone();
    let mut add = |list: &str, entry: serde_json::Value| {
        let members = facts.as_object_mut();
        let members = members.map(|it| it.entry(list).or_insert_with(|| serde_json::json!([])));
        if let Some(serde_json::Value::Array(list)) = members {
            list.push(entry);
        }
    };
    for nth in 0_u64..500 {
        let (mount, system) = (format!("m{nth}-n"), format!("f{nth}-n"));
        add(
            "mounts",
            serde_json::json!({"id": mount, "point": format!("/srv/{nth}"), "fs": system}),
        );
        add(
            "filesystems",
            serde_json::json!({"id": system, "kind": "xfs", "free_bytes": nth << 30}),
        );
        add(
            "dirs",
            serde_json::json!({"path": format!("/srv/{nth}/img"), "mount": mount}),
        );
        if nth % 10 == 0 {
            let mut volume = volume.clone();
            volume["id"] = format!("b{nth}-n").into();
            volume["paths"] = serde_json::json!([format!("/dev/vg0/v{nth}")]);
            add("blockdevs", volume);
        }
    }
    Ok(facts.to_string())
}

/// A command line with many disks.
fn command_line(pairs: usize) -> String {
    let mut text = String::from("qemu-system-x86_64 -nodefaults -machine q35");
    for nth in 0..pairs {
        let _ = write!(
            text,
            " \\\n  -blockdev driver=file,node-name=f{nth},filename=/srv/{nth}.img,cache.direct=on \\\n  \
             -device virtio-blk-pci,drive=f{nth},id=disk{nth}"
        );
    }
    text.push('\n');
    text
}

/// A domain with many disks.
fn domain(disks: usize) -> String {
    let mut text = String::from("<domain type='kvm'><name>large</name><devices>\n");
    for nth in 0..disks {
        let _ = writeln!(
            text,
            "<disk type='file'><driver name='qemu' type='qcow2' cache='none'/>\
             <source file='/srv/{nth}.qcow2'/><target dev='vd{nth}' bus='virtio'/></disk>"
        );
    }
    text.push_str("</devices></domain>\n");
    text
}

/// Counts the instructions of one run.
fn count(program: &Path, arguments: &[String], folder: &Path) -> anyhow::Result<u64> {
    total(&profile(program, arguments, folder)?)
}

/// The output of callgrind for one run.
fn profile(program: &Path, arguments: &[String], folder: &Path) -> anyhow::Result<String> {
    // Exit code 1 reports findings.
    profile_where(program, arguments, folder, |code| matches!(code, 0 | 1))
}

/// The output of callgrind for one run that ends with an expected exit code.
fn profile_where(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    is_expected: impl Fn(i32) -> bool,
) -> anyhow::Result<String> {
    let counts = folder.join("counts");
    let mut file_option = std::ffi::OsString::from("--callgrind-out-file=");
    file_option.push(&counts);
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(file_option)
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()?;
    if !output.status.code().is_some_and(is_expected) {
        bail!("vmdisk {}: {}", arguments.join(" "), said(&output));
    }
    Ok(fs::read_to_string(&counts)?)
}

/// The instructions of a run, from the output of callgrind.
fn total(text: &str) -> anyhow::Result<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.context("callgrind writes the total")?;
    Ok(total.trim().parse()?)
}

/// Counts the crates that the binary is built from.
fn crates() -> anyhow::Result<u64> {
    let output = Command::new("cargo")
        .args(["tree", "--package", "vmdisk-cli", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--no-dedupe"])
        .current_dir(repository())
        .output()?;
    if !output.status.success() {
        bail!("cargo tree: {}", said(&output));
    }
    let text = String::from_utf8(output.stdout)?;
    let names: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    Ok(names.len() as u64)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn is_too_large(name: &str, value: u64, recorded: u64) -> bool {
    let allowed = match name.starts_with("crates") {
        true => recorded,
        false => recorded + recorded * TOLERANCE_PERCENT / 100,
    };
    value > allowed
}

fn line(name: &str, value: u64, recorded: Option<u64>) -> String {
    match recorded {
        Some(before) => {
            let percent = (value as f64 / before as f64 - 1.0) * 100.0;
            format!("{name:<48} {value:>12} {percent:>+7.1} %")
        }
        None => format!("{name:<48} {value:>12} is not recorded"),
    }
}

/// The numbers as the file has them.
fn record(found: &BTreeMap<String, u64>) -> String {
    let mut text = String::from(
        "# Made by `cargo xtask costs --bless`; `cargo xtask costs --check` compares.\n",
    );
    for (name, value) in found {
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

fn parse(text: &str) -> anyhow::Result<BTreeMap<String, u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.split_once(" = ").with_context(|| line.to_owned())?;
            Ok((name.to_owned(), value.parse()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_back() {
        let found = BTreeMap::from([("bytes: a".to_owned(), 7), ("crates: b".to_owned(), 2)]);
        assert_eq!(parse(&record(&found)).unwrap(), found);
    }

    #[test]
    fn instructions_may_grow_by_the_tolerance_and_crates_may_not_grow() {
        assert!(!is_too_large("instructions: a", 105, 100));
        assert!(is_too_large("instructions: a", 106, 100));
        assert!(!is_too_large("crates: a", 100, 100));
        assert!(is_too_large("crates: a", 101, 100));
    }

    #[test]
    fn ten_times_as_many_disks_may_cost_twelve_times_as_much() {
        let costs = |few, many| -> BTreeMap<String, u64> {
            let name = |name| format!("instructions: {name}");
            let rows = LINEAR.map(|[less, more]| [(name(less), few), (name(more), many)]);
            rows.into_iter().flatten().collect()
        };
        assert!(must_be_linear(&costs(10, 120)).is_ok());
        assert!(must_be_linear(&costs(10, 121)).is_err());
    }

    #[test]
    fn every_workload_has_a_recorded_number() {
        let folder = tempfile::tempdir().unwrap();
        let text = fs::read_to_string(repository().join(RECORD)).unwrap();
        let recorded = parse(&text).unwrap();
        for workload in workloads(folder.path()).unwrap() {
            let name = format!("instructions: {}", workload.name);
            assert!(recorded.contains_key(&name), "{name}");
        }
    }
}
