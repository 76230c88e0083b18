//! The memory of `vmdisk lint` on many files, in every format.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::race;

/// The formats of `vmdisk lint`, each with its arguments.
const FORMATS: [(&str, &[&str]); 13] = [
    ("full", &["--format", "full"]),
    ("concise", &["--format", "concise"]),
    ("json", &["--format", "json"]),
    ("json-lines", &["--format", "json-lines"]),
    ("sarif", &["--format", "sarif"]),
    ("github", &["--format", "github"]),
    ("gitlab", &["--format", "gitlab"]),
    ("junit", &["--format", "junit"]),
    ("checkstyle", &["--format", "checkstyle"]),
    ("prometheus", &["--format", "prometheus"]),
    ("statistics", &["--statistics"]),
    ("diff", &["--diff", "--unsafe-fixes"]),
    ("full and all that cannot be checked", &["--verbose"]),
];

/// Guests with two disks: the cache modes of these, and the maximum bytes of heap for each further guest. 10,000 guests with
/// findings take less than 300 MB, and 100,000 clean ones less than 500 MB.
const GUESTS: [(&str, [&str; 2], u64); 2] = [
    ("with findings", ["none", "unsafe"], 30_000),
    ("clean", ["none", "none"], 5_000),
];

/// Bytes of lists that may double with the last file.
const MAX_BYTES_OF_LISTS: u64 = 512 * 1024;

/// Numbers of files whose peaks of the heap are compared.
const FILES: [u32; 2] = [500, 2000];

/// Prints the largest resident set of a run for each format and number of files.
pub(crate) fn run(counts: &[u32], jobs: u16) -> anyhow::Result<()> {
    let program = race::build_release()?;
    for (count, (kind, caches, _)) in counts
        .iter()
        .flat_map(|count| GUESTS.map(|kind| (count, kind)))
    {
        let folder = tempfile::tempdir()?;
        let bytes = write_files(folder.path(), *count, caches)?;
        println!("{count} files {kind}, {bytes} bytes, {jobs} threads: peak of the resident set");
        for (name, arguments) in FORMATS {
            let mut command = Command::new(&program);
            command
                .args(["lint", ".", "-j", &jobs.to_string()])
                .args(arguments)
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let peak = peak_of(command.spawn()?)?;
            println!("{name:<36} {:>6.1} MB", peak as f64 / 1000.0);
        }
    }
    Ok(())
}

/// Waits for a process, and returns the largest resident set that it had, in kB.
fn peak_of(mut child: Child) -> anyhow::Result<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        // The value only grows, and an ended process has none.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = number.unwrap_or(0).max(peak);
        if let Some(end) = child.try_wait()? {
            return match end.code() {
                Some(0 | 1) => Ok(peak),
                _ => bail!("vmdisk ended with {end}"),
            };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Refuses a heap that grows too much with the number of files, by the allocations that valgrind counts.
pub(crate) fn must_be_bounded(program: &Path) -> anyhow::Result<()> {
    let mut too_large = Vec::new();
    for (kind, caches, max_bytes) in GUESTS {
        let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
        for (folder, count) in folders.iter().zip(FILES) {
            write_files(folder.path(), count, caches)?;
        }
        let [few, many] = FILES;
        for (name, arguments) in FORMATS {
            let [before, after] = folders.each_ref().map(|folder| {
                heap(program, arguments, folder.path()).with_context(|| name.to_owned())
            });
            let further = u64::from(many - few);
            let growth = after?.saturating_sub(before?);
            println!(
                "heap: {name:<36} {:>6} bytes for each further file {kind}",
                growth / further
            );
            if growth > MAX_BYTES_OF_LISTS + further * max_bytes {
                too_large.push(format!("{name} of files {kind}"));
            }
        }
    }
    if !too_large.is_empty() {
        bail!(
            "memory grows too much with the number of files: {}",
            too_large.join(", ")
        );
    }
    Ok(())
}

/// The largest number of bytes on the heap during a run.
fn heap(program: &Path, arguments: &[&str], folder: &Path) -> anyhow::Result<u64> {
    let snapshots = tempfile::NamedTempFile::new()?;
    let mut file_option = std::ffi::OsString::from("--massif-out-file=");
    file_option.push(snapshots.path());
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=massif", "--depth=1"])
        .arg(file_option)
        .arg(program)
        .args(["lint", "-j1", "."])
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .output()?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = fs::read_to_string(snapshots.path())?;
    largest(&text).context("massif writes snapshots")
}

fn largest(snapshots: &str) -> Option<u64> {
    let sizes = snapshots
        .lines()
        .filter_map(|line| line.strip_prefix("mem_heap_B="));
    sizes.filter_map(|size| size.parse().ok()).max()
}

/// Writes small guests with disks of these cache modes, and returns their size in bytes.
fn write_files(folder: &Path, count: u32, caches: [&str; 2]) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for number in 0..count {
        // A directory of its own for each thousand, as fleets have them.
        let folder = folder.join(format!("{:03}", number / 1000));
        fs::create_dir_all(&folder)?;
        let text = guest(number, caches);
        bytes += text.len() as u64;
        let path = folder.join(format!("guest-{number:06}.xml"));
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(bytes)
}

fn guest(number: u32, caches: [&str; 2]) -> String {
    let mut text = format!(
        "<domain type='kvm'>\n  <name>guest-{number:06}</name>\n  <memory>1048576</memory>\n  <os>\n    \
         <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n  </os>\n  <features><acpi/></features>\n  <devices>\n"
    );
    for (target, cache) in ["vda", "vdb"].iter().zip(caches) {
        let _ = write!(
            text,
            "    <disk type='file' device='disk'>\n      <driver name='qemu' type='raw' cache='{cache}'/>\n      \
             <source file='/srv/guest-{number:06}-{target}.img'/>\n      <target dev='{target}' bus='virtio'/>\n    </disk>\n"
        );
    }
    text.push_str("  </devices>\n</domain>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_snapshot_is_found() {
        let text = "snapshot=0\nmem_heap_B=12\nsnapshot=1\nmem_heap_B=700\nmem_heap_extra_B=900\n";
        assert_eq!(largest(text), Some(700));
        assert_eq!(largest(""), None);
    }

    #[test]
    fn the_peak_of_a_process_is_read() {
        let sleep = Command::new("sleep").arg("0.2").spawn().unwrap();
        assert!(peak_of(sleep).unwrap() > 100);
    }
}
