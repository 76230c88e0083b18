//! The device that real QEMUs make for a `-drive` without `if`, and the empty drives that they add.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// The programs that the recording covers; those of other byte orders have the same machines.
pub const PROGRAMS: &[&str] = &[
    "aarch64",
    "alpha",
    "arm",
    "avr",
    "cris",
    "hppa",
    "i386",
    "loongarch64",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mips64",
    "mips64el",
    "mipsel",
    "nios2",
    "or1k",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv32",
    "riscv64",
    "rx",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc64",
    "tricore",
    "x86_64",
    "xtensa",
    "xtensaeb",
];

/// The machines of `qemu-system-PROGRAM`, each with true for the default one; `None` without the program.
pub fn machines(program: &str) -> Option<Vec<(String, bool)>> {
    let output = Command::new(format!("qemu-system-{program}"))
        .args(["-M", "help"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let machine = |line: &str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        (name.to_owned(), line.contains("(default)"))
    };
    Some(lines.map(machine).collect())
}

/// The interface of a `-drive` without `if`, and the empty drives of a machine that have a device, or `-`; `None` if the
/// machine does not start with any of the tried options.
pub fn interface(program: &str, machine: &str) -> Option<String> {
    let empty = std::env::temp_dir().join(format!("vmdisk-empty-{}", std::process::id()));
    std::fs::write(&empty, [0; 4096]).ok()?;
    let file = empty.to_str()?;
    let more: [&[&str]; 6] = [
        &[],
        &["-bios", "none"],
        &["-kernel", file],
        &["-bios", file],
        &["-M", "cap-htm=off"],
        &["-audiodev", "none,id=a"],
    ];
    let found = more.iter().find_map(|more| started(program, machine, more));
    // Another thread may have removed it.
    let _ = std::fs::remove_file(&empty);
    found
}

fn started(program: &str, machine: &str, more: &[&str]) -> Option<String> {
    let (before, _) = drives(program, machine, more);
    let before = before.unwrap_or_default();
    let attached = before.iter().filter(|it| it.is_attached);
    let mut empty: Vec<&str> = attached.map(|it| it.name.as_str()).collect();
    if empty.is_empty() {
        empty.push("-");
    }
    let empty = empty.join(",");
    let with_drive = [more, &["-drive", "file=null-co://,format=raw"]].concat();
    let (after, said) = drives(program, machine, &with_drive);
    let letters =
        |name: &str| -> String { name.chars().take_while(char::is_ascii_lowercase).collect() };
    let Some(after) = after else {
        let (_, refused) = said.split_once("does not support if=")?;
        return Some(format!("{} {empty}", letters(refused)));
    };
    let mut names: Vec<&str> = before.iter().map(|it| it.name.as_str()).collect();
    let mut after = after.iter().map(|it| it.name.as_str());
    let is_new = |name: &&str| match names.iter().position(|old| old == name) {
        Some(at) => {
            names.swap_remove(at);
            false
        }
        None => true,
    };
    // An empty slot of the board's own takes the drive.
    let new = after.clone().find(is_new);
    let new = new.or_else(|| after.find(|name| name.starts_with("sd")))?;
    Some(format!("{} {empty}", letters(new)))
}

/// The names of the drives with a device and without a medium; `None` if QEMU does not start.
pub fn empty(program: &str, machine: &str, options: &[&str]) -> Option<BTreeSet<String>> {
    let found = drives(program, machine, options).0?.into_iter();
    let empty = found.filter(|it| it.is_attached && !it.has_medium);
    Some(empty.map(|it| it.name).collect())
}

struct Drive {
    name: String,
    /// True if it has a device.
    is_attached: bool,
    has_medium: bool,
}

/// All drives, or what QEMU says.
fn drives(program: &str, machine: &str, more: &[&str]) -> (Option<Vec<Drive>>, String) {
    let mut command = Command::new(format!("qemu-system-{program}"));
    command.args(["-M", machine, "-S", "-display", "none", "-serial", "none"]);
    command
        .args(["-monitor", "none", "-qmp", "stdio"])
        .args(more);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        return (None, String::new());
    };
    if let Some(mut stdin) = child.stdin.take() {
        let asked = ["qmp_capabilities", "query-block", "quit"];
        let asked = asked
            .map(|it| format!("{{\"execute\":\"{it}\"}}\n"))
            .concat();
        // A QEMU that refuses its options reads nothing.
        let _ = stdin.write_all(asked.as_bytes());
    }
    let Ok(output) = child.wait_with_output() else {
        return (None, String::new());
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers = answers
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let list = answers
        .filter_map(|answer| answer.get("return")?.as_array().cloned())
        .next();
    let name = |block: serde_json::Value| {
        Some(Drive {
            name: block.get("device")?.as_str()?.to_owned(),
            is_attached: block.get("qdev").is_some(),
            has_medium: block.get("inserted").is_some(),
        })
    };
    (
        list.map(|list| list.into_iter().filter_map(name).collect()),
        said,
    )
}

/// The table of all programs: a line for each interface with its empty drives and each set of programs, with the machines
/// that have them, without their versions. `*` marks the default machine of the programs.
pub fn table() -> String {
    let mut programs: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for program in PROGRAMS {
        let mut seen = BTreeSet::new();
        for (machine, is_default) in machines(program).unwrap_or_default() {
            let family = family(&machine);
            let name = if is_default {
                format!("{family}*")
            } else {
                family.to_owned()
            };
            if !is_default && !seen.insert(family.to_owned()) {
                continue;
            }
            // QEMU knows none, so no drive belongs to it.
            if machine != "none"
                && let Some(interface) = interface(program, &machine)
            {
                programs
                    .entry((interface, name))
                    .or_default()
                    .insert(program);
            }
        }
    }
    let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for ((interface, machine), programs) in programs {
        let programs: Vec<&str> = programs.into_iter().collect();
        rows.entry((programs.join(","), interface))
            .or_default()
            .push(machine);
    }
    let row = |((programs, interface), machines): ((String, String), Vec<String>)| {
        format!("{programs} {interface} {}\n", machines.join(" "))
    };
    rows.into_iter().map(row).collect()
}

/// A machine without its version.
pub fn family(machine: &str) -> &str {
    let is_version = |rest: &str| {
        rest.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit()))
    };
    match machine.rsplit_once('-') {
        Some((family, version)) if is_version(version) => family,
        _ => machine,
    }
}
