//! The memory of `vmdisk lint` on many files, in every format.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

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

/// Guests with two disks: the cache modes of these, and the maximum bytes of memory for each further guest: without the
/// places that could not be checked, and with them. 10,000 guests with findings take less than 300 MB, and 100,000 clean
/// ones took 168 MB, and 515 MB as JSON, with those places.
const GUESTS: [(&str, [&str; 2], [u64; 2]); 2] = [
    ("with findings", ["none", "unsafe"], [5_000, 30_000]),
    ("clean", ["none", "none"], [2_000, 5_000]),
];

/// The formats that name each place that could not be checked.
const NAMING_PLACES: [&str; 3] = ["json", "sarif", "full and all that cannot be checked"];

/// Bytes of lists that may double with the last file.
const MAX_BYTES_OF_LISTS: u64 = 512 * 1024;

/// Numbers of files whose peaks are compared.
const FILES: [u32; 2] = [500, 2000];

/// The largest resident set of a run over the files in `folder`, in bytes.
fn peak_of(program: &Path, arguments: &[&str], folder: &Path) -> anyhow::Result<u64> {
    let mut lint = Command::new(program);
    lint.args(["lint", ".", "-j1"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    resident(lint.spawn()?)
}

/// Waits for a process, and returns the largest resident set that it had, in bytes.
pub(crate) fn resident(mut child: Child) -> anyhow::Result<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak: u64 = 0;
    loop {
        // The value only grows, and an ended process has none.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = number.unwrap_or(0).max(peak);
        if let Some(end) = child.try_wait()? {
            return match end.code() {
                Some(0 | 1) => Ok(peak * 1024),
                _ => bail!("vmdisk ended with {end}"),
            };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Refuses a resident set that grows too much with the number of files.
pub(crate) fn must_be_bounded(program: &Path) -> anyhow::Result<()> {
    let mut too_large = Vec::new();
    for (kind, caches, max_bytes) in GUESTS {
        let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
        for (folder, count) in folders.iter().zip(FILES) {
            write_files(folder.path(), count, caches)?;
        }
        let [few, many] = FILES;
        for (name, arguments) in FORMATS {
            // On a loaded machine nobody may look in the last milliseconds of a run.
            let larger_of_two = |folder: &Path| {
                let first = peak_of(program, arguments, folder)?;
                Ok::<_, anyhow::Error>(first.max(peak_of(program, arguments, folder)?))
            };
            let [before, after] = folders.each_ref().map(|it| larger_of_two(it.path()));
            let further = u64::from(many - few);
            let growth = after?.saturating_sub(before?);
            println!(
                "memory: {name:<36} {:>6} bytes for each further file {kind}",
                growth / further
            );
            let max_bytes = max_bytes[usize::from(NAMING_PLACES.contains(&name))];
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

/// Writes small guests with disks of these cache modes.
fn write_files(folder: &Path, count: u32, caches: [&str; 2]) -> anyhow::Result<()> {
    for number in 0..count {
        // A directory of its own for each thousand, as fleets have them.
        let folder = folder.join(format!("{:03}", number / 1000));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("guest-{number:06}.xml"));
        fs::write(&path, guest(number, caches)).with_context(|| path.display().to_string())?;
    }
    Ok(())
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
    fn the_peak_of_a_process_is_read() {
        let sleep = Command::new("sleep").arg("0.2").spawn().unwrap();
        assert!(resident(sleep).unwrap() > 100 * 1024);
    }
}
