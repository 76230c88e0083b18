//! Twice the input costs about twice the instructions, for every command and format.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::usage::usage;
use super::{profile_where, total};

/// The number of disks, findings, devices, elements or files; the other run has twice as many.
const FEW: usize = 400;

/// Maximum ratio of instructions: twice, and a quadratic part of 15 %.
const MAX_RATIO: f64 = 2.3;

/// Runs, with files of [`inputs`].
const RUNS: &[&str] = &[
    "lint --format full bad.xml",
    "lint --format concise bad.xml",
    "lint --format json bad.xml",
    "lint --format json-lines line.xml",
    "lint --format sarif line.xml",
    "lint --format github line.xml",
    "lint --format gitlab bad.xml",
    "lint --format junit bad.xml",
    "lint --format checkstyle bad.xml",
    "lint --format prometheus bad.xml",
    "lint --format html bad.xml",
    "lint --format json many",
    "lint --format full secrets.args",
    "lint --statistics bad.xml",
    "lint --diff bad.xml",
    "lint --diff --unsafe-fixes iothreads.xml",
    "lint --fix bad.xml",
    "lint --facts chain.json on-devices.xml",
    "lint --facts ring.json on-devices.xml",
    "lint guest.yaml",
    "lint --format concise unknown.xml",
    "lint --format concise values.xml.j2",
    "lint --format concise choices.xml.j2",
    "lint --format concise values.yaml",
    "lint --format concise start.sh",
    "lint --format concise words.sh",
    "lint --format concise Makefile",
    "lint bad.xml --write-baseline --baseline known",
    "convert --to libvirt-xml good.args",
    "convert --to disk-xml good.args",
    "convert --to libvirt-xml --start 1 start.sh",
    "convert --to spec good.xml",
    "convert --to qemu good.xml",
    "convert --to qmp threads.xml",
    "convert --to libvirt-xml --resolved good.xml",
    "convert --to qemu unknown.xml",
    "trace --format text good.args",
    "trace --format text start.sh",
    "trace --format json bad.xml",
    "trace --format svg bad.xml",
    "trace --facts chain.json on-devices.xml",
    "decide --format text good.args",
    "decide --format text drives.sh",
    "decide --format xml good.xml",
    "decide --format diff good.xml",
    "decide --format json good.xml",
    "generate --to libvirt-xml guest.yaml",
    "generate --facts chain.json --to libvirt-xml guest.yaml",
    "generate --to disk-xml guest.yaml",
    "generate --to qemu guest.yaml",
    "generate --to qmp guest.yaml",
    "generate --to blockdev-json guest.yaml",
    "generate --to script guest.yaml",
    "generate --to steps guest.yaml",
    "generate --to steps refused.yaml",
    "advise --facts chain.json --size 1G",
    "facts show chain.json",
    "facts show ring.json",
    "facts diff --format text chain.json ring.json",
    "facts diff --format json chain.json ring.json",
    "facts check chain.json",
    "facts redact --salt-file salt chain.json",
];

/// Runs whose whole cost is limited, each with the number of disks or controllers: the number of texts that are tried, or
/// of places that are named, is limited too.
const LIMITED: [(&str, usize); 5] = [
    ("lint --diff --unsafe-fixes iothreads.xml", 2000),
    ("lint --format concise values.xml.j2", 1250),
    ("lint --format concise values.xml.j2", 20_000),
    ("lint --format json good.xml", 20_000),
    ("decide --format text drives.sh", 2000),
];

/// The processor time and the resident set that such a run may take.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_RESIDENT: u64 = 200_000_000;

/// Commands, each with the option whose every value must be in [`RUNS`].
const OPTIONS: [(&str, &str); 6] = [
    ("lint", "--format"),
    ("convert", "--to"),
    ("generate", "--to"),
    ("trace", "--format"),
    ("decide", "--format"),
    ("facts diff", "--format"),
];

/// Refuses a command and format that is more expensive by more than [`MAX_RATIO`] for twice the input.
pub(super) fn must_be_linear(program: &Path) -> anyhow::Result<()> {
    every_format_is_run(program)?;
    let mut faults = Vec::new();
    for run in RUNS {
        let [once, twice] = [1, 2].map(|times| instructions(program, run, times));
        let (once, twice) = (once? as f64, twice? as f64);
        let ratio = twice / once;
        println!(
            "twice the input: {ratio:.2} times {:>6.1} million: {run}",
            once / 1e6
        );
        if ratio > MAX_RATIO {
            faults.push(format!("{run}: {ratio:.2}"));
        }
    }
    limited(program)?;
    if !faults.is_empty() {
        bail!(
            "more than {MAX_RATIO} times as expensive for twice the input:\n{}",
            faults.join("\n")
        );
    }
    Ok(())
}

/// Refuses a run of [`LIMITED`] that takes more time or memory.
fn limited(program: &Path) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for (run, number) in LIMITED {
        let folder = folder_of(run, number)?;
        let usage = usage(Command::new(program).args(run.split(' ')), folder.path())?;
        let (time, resident) = usage;
        let megabytes = resident / 1_000_000;
        println!(
            "{:.2} s and {megabytes} MB: {number} in {run}",
            time.as_secs_f64()
        );
        if time > MAX_TIME || resident > MAX_RESIDENT {
            faults.push(format!("{number} in {run}"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("more than 2 s or 200 MB: {}", faults.join(", ")),
    }
}

/// Refuses a value of [`OPTIONS`] that no run has.
fn every_format_is_run(program: &Path) -> anyhow::Result<()> {
    for (command, option) in OPTIONS {
        let mut asked = Command::new(program);
        asked
            .args(command.split(' '))
            .args([option, "no-such-value", "x"]);
        let said = String::from_utf8(asked.output()?.stderr)?;
        let (_, values) = said
            .split_once("[possible values: ")
            .with_context(|| said.clone())?;
        let (values, _) = values.split_once(']').with_context(|| said.clone())?;
        for value in values.split(", ") {
            let wanted = format!("{command} {option} {value} ");
            if !RUNS.iter().any(|run| run.starts_with(&wanted)) {
                bail!("costs/growth.rs has no run of vmdisk {wanted}");
            }
        }
    }
    Ok(())
}

/// The instructions of a run, with inputs that are `times` as large.
fn instructions(program: &Path, run: &str, times: usize) -> anyhow::Result<u64> {
    let folder = folder_of(run, times * FEW)?;
    let arguments: Vec<String> = run.split(' ').map(str::to_owned).collect();
    // Exit code 2 says that a part cannot be converted or planned.
    let is_refused = run.contains("unknown.xml") || run.contains("refused.yaml");
    let is_done = |code| matches!(code, 0 | 1) || code == 2 && is_refused;
    total(&profile_where(program, &arguments, folder.path(), is_done)?)
}

/// A folder with the files that a run names.
fn folder_of(run: &str, number: usize) -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (name, content) in inputs(run, number) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(path, content)?;
    }
    Ok(folder)
}

/// A name such as `sda`, `sdaa` or `sdaaa`.
fn name(prefix: &str, nth: usize) -> String {
    match nth {
        0..26 => format!("{prefix}{}", char::from(b"abcdefghijklmnopqrstuvwxyz"[nth])),
        _ => name(&name(prefix, nth / 26 - 1), nth % 26),
    }
}

fn guest(before: &str, devices: &str) -> String {
    format!(
        "<domain type='kvm'><name>a</name><memory>1048576</memory>{before}\
         <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\
         <devices>\n{devices}</devices></domain>\n"
    )
}

fn disk(driver: &str, file: &str, target: &str, inner: &str) -> String {
    let bus = if target.starts_with('v') {
        "virtio"
    } else {
        "scsi"
    };
    format!(
        "<disk type='file'><driver name='qemu' {driver}/><source file='{file}'/>\
         <target dev='{target}' bus='{bus}'/>{inner}</disk>"
    )
}

/// Facts of devices, each on those with these numbers.
fn devices(number: usize, below: impl Fn(usize) -> Vec<usize>) -> String {
    let device = |nth: usize| {
        let slaves: Vec<String> = below(nth).iter().map(|nth| format!("b{nth}")).collect();
        serde_json::json!({
            "id": format!("b{nth}"), "paths": [format!("/dev/dm-{nth}")], "dev": format!("253:{nth}"),
            "kind": "linear", "slaves": slaves,
        })
    };
    let all: Vec<_> = (0..number).map(device).collect();
    let schema = "https://github.com/vmdisk/vmdisk/facts/1";
    serde_json::json!({"schema": schema, "schema_version": "1.0", "blockdevs": all}).to_string()
}

/// A text of parts with numbers.
fn each(number: usize, part: impl Fn(usize) -> String) -> String {
    (0..number).map(part).collect()
}

/// Guests in XML.
fn domains(number: usize) -> Vec<(&'static str, String)> {
    let bad = |end: &str| {
        let driver = "type='raw' cache='unsafe' io='native' discrad='on'";
        let part = |nth| disk(driver, &format!("rel/{nth}.raw"), &name("vd", nth), "") + end;
        guest("", &each(number, part))
    };
    let on_devices = each(number, |nth| {
        let target = name("vd", nth);
        format!(
            "<disk type='block'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/dm-{nth}'/>\
             <target dev='{target}' bus='virtio'/></disk>\n"
        )
    });
    let good = each(number, |nth| {
        let address =
            format!("<address type='drive' controller='0' bus='0' target='0' unit='{nth}'/>");
        let driver = "type='qcow2' cache='none'";
        disk(driver, &format!("/srv/{nth}"), &name("sd", nth), &address) + "\n"
    });
    let threads = each(number, |nth| {
        let driver = format!("type='qcow2' iothread='{}'", nth + 1);
        disk(&driver, &format!("/srv/{nth}"), &name("vd", nth), "") + "\n"
    });
    let unknown = each(number, |nth| format!("<foo{nth}/>\n"));
    let iothreads = each(number, |nth| {
        let id = nth + 1;
        format!(
            "<controller type='scsi' index='{nth}' model='virtio-scsi'><driver iothread='{id}'/></controller>\n"
        )
    });
    let controller = "<controller type='scsi' index='0' model='virtio-scsi'/>";
    vec![
        ("bad.xml", bad("\n")),
        ("line.xml", bad("")),
        ("good.xml", guest("", &format!("{controller}{good}"))),
        (
            "threads.xml",
            guest(&format!("<iothreads>{number}</iothreads>"), &threads),
        ),
        (
            "unknown.xml",
            guest("", &disk("type='raw'", "/srv/a", "vda", &unknown)),
        ),
        ("on-devices.xml", guest("", &on_devices)),
        ("iothreads.xml", guest("", &iothreads)),
    ]
}

/// Guests on a command line and in a spec, facts and a salt.
fn others(number: usize) -> Vec<(&'static str, String)> {
    let start = "qemu-system-x86_64 -nodefaults -machine q35 -m 1024 -device virtio-scsi-pci,id=s";
    let good = each(number, |nth| {
        format!(
            " \\\n -blockdev driver=file,node-name=f{nth},filename=/srv/{nth},cache.direct=on \\\n \
             -device scsi-hd,bus=s.0,channel=0,scsi-id=0,lun={nth},drive=f{nth},id=d{nth}"
        )
    });
    let secrets = each(number, |nth| {
        format!(
            " -drive file=https://user:password{nth}@host/{nth}?signature={nth},if=none,id=d{nth},form=raw"
        )
    });
    let spec =
        "version: 1\nguest: {name: a, memory: 1G, vcpus: 2, machine: q35, arch: x86_64}\ndisks:\n";
    let disks = each(number, |nth| {
        format!("- qcow2: {{path: /srv/{nth}, size: 1G}}\n  bus: scsi\n")
    });
    let refused = each(number, |nth| {
        format!("- raw: {{path: /srv/{nth}}}\n  bus: fdc\n")
    });
    let next = |nth| {
        if nth + 1 < number {
            vec![nth + 1]
        } else {
            Vec::new()
        }
    };
    let ring = |nth| vec![(nth + 1) % number, (nth + 2) % number];
    vec![
        ("good.args", format!("{start}{good}")),
        ("secrets.args", format!("{start}{secrets}")),
        ("guest.yaml", format!("{spec}{disks}")),
        ("refused.yaml", format!("{spec}{refused}")),
        ("chain.json", devices(number, next)),
        ("ring.json", devices(number, ring)),
        ("salt", "0123456789abcdef0123456789abcdef".to_owned()),
    ]
}

/// Templates, a script and a makefile.
fn open(number: usize) -> Vec<(&'static str, String)> {
    let driver = "type='qcow2' cache='unsafe'";
    let one = |nth, file: &str| disk(driver, file, &name("vd", nth), "") + "\n";
    let values = each(number, |nth| {
        one(nth, &format!("{{{{ images.file{nth} }}}}"))
    });
    let choices = each(number, |nth| {
        let disk = one(nth, &format!("/srv/{nth}.qcow2"));
        format!("{{% if has{nth} %}}\n{disk}{{% endif %}}\n")
    });
    let spec = each(number, |nth| {
        format!("- qcow2: {{path: '/srv/{{{{ name{nth} }}}}', size: 1G}}\n  cache: unsafe\n")
    });
    let head = "version: 1\nguest: {name: a, memory: 1G, vcpus: 2}\ndisks:\n";
    let assigned = each(number, |nth| format!("IMAGE{nth}=/srv/{nth}.qcow2\n"));
    // The number of texts that depend on conditions is limited.
    let ifs = "if [ -e $IMAGE0 ]; then CACHE=none; fi\n".repeat(40);
    let used = each(number, |nth| {
        format!(" \\\n -drive file=$IMAGE{nth},if=none,id=d{nth},format=qcow2,cache=$CACHE")
    });
    let drives = each(number, |nth| {
        format!(
            " \\\n -drive file=/srv/{nth},if=none,id=d{nth},format=qcow2 -device virtio-blk-pci,drive=d{nth}"
        )
    });
    let recipes = each(number, |nth| {
        format!("t{nth}:\n\tcd {nth} && echo $(X{nth}) $$A{nth}\n")
    });
    let inside = "-name a$B ".repeat(10 * number);
    let word = "a${X:+b}".repeat(10 * number);
    let words = format!("#!/bin/sh\nif x; then B=b; fi\nqemu-system-x86_64 {inside} -hda {word}\n");
    vec![
        ("words.sh", words),
        ("values.xml.j2", guest("", &values)),
        ("choices.xml.j2", guest("", &choices)),
        ("values.yaml", format!("{head}{spec}")),
        (
            "start.sh",
            format!("#!/bin/sh\n{assigned}{ifs}qemu-system-x86_64 -m 1024{used}\n"),
        ),
        (
            "drives.sh",
            format!("#!/bin/sh\nqemu-system-x86_64 -m 1024{drives}\n"),
        ),
        (
            "Makefile",
            format!("{recipes}run:\n\tqemu-system-x86_64 -drive file=a,format=raw -m $(MEM)\n"),
        ),
    ]
}

/// The files that a run names.
fn inputs(run: &str, number: usize) -> Vec<(String, Vec<u8>)> {
    let texts = [domains(number), others(number), open(number)].concat();
    let mut files: Vec<(String, Vec<u8>)> = texts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into_bytes()))
        .collect();
    let one = disk("type='raw' cache='unsafe' io='native'", "rel/a", "vda", "");
    let one = guest("", &one).into_bytes();
    files.extend((0..number).map(|nth| (format!("many/{nth}.xml"), one.clone())));
    files.retain(|(name, _)| {
        let first = name.split('/').next().unwrap_or(name);
        run.split([' ', '/']).any(|word| word == first)
    });
    files
}
