//! QEMU processes, by their command lines in `/proc`.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::input::bounded::{self, MAX_BYTES};
use crate::stop::{Stop, plain};

/// The QEMU processes of a host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Processes {
    /// Ids, ascending, each with the command line: words that end in zero bytes.
    pub(crate) qemus: Vec<(u32, Vec<u8>)>,
    /// Number of processes that may not be read.
    pub(crate) unreadable: usize,
}

/// Finds the QEMU processes below a `/proc`. A process that ends meanwhile is left out.
pub(crate) fn qemus(proc: &Path) -> Result<Processes, Stop> {
    let fail = |error: io::Error| Stop::file("list the processes in", proc, plain(&error));
    let mut found = Processes::default();
    let mut ids: Vec<u32> = Vec::new();
    for entry in fs::read_dir(proc).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        ids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    ids.sort_unstable();
    for id in ids {
        let path = proc.join(id.to_string()).join("cmdline");
        match bounded::regular(&path, MAX_BYTES) {
            Ok(bytes) if is_qemu(&bytes) => found.qemus.push((id, bytes)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => found.unreadable += 1,
            // It ended, or has no command line that could be one of QEMU.
            Err(_) => {}
        }
    }
    Ok(found)
}

/// The guest's name on the command line of a QEMU.
pub(crate) fn guest_name(words: &[u8]) -> Option<String> {
    let mut words = words.split(|byte| *byte == 0);
    words.find(|word| [&b"-name"[..], b"--name"].contains(word))?;
    let options = String::from_utf8_lossy(words.next()?);
    // A comma in the name is doubled.
    let first = options.replace(",,", "\0");
    let first = first.split(',').next()?.replace('\0', ",");
    Some(first.strip_prefix("guest=").unwrap_or(&first).to_owned())
}

/// True for the words of a QEMU that runs a guest. Programs with its name among their arguments do not count.
fn is_qemu(words: &[u8]) -> bool {
    let Some(program) = words.split(|byte| *byte == 0).next() else {
        return false;
    };
    let name = program.rsplit(|byte| *byte == b'/').next();
    let is_named = name.is_some_and(|name| {
        name.starts_with(b"qemu-system-") || [&b"qemu-kvm"[..], b"kvm"].contains(&name)
    });
    is_named && words.iter().filter(|byte| **byte == 0).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, id: &str, words: &[&str]) {
        let folder = proc.join(id);
        fs::create_dir(&folder).unwrap();
        let line: Vec<u8> = words
            .iter()
            .flat_map(|word| word.bytes().chain([0]))
            .collect();
        fs::write(folder.join("cmdline"), line).unwrap();
    }

    #[test]
    fn a_process_has_the_name_of_its_guest() {
        for (words, name) in [
            ("qemu\0-name\0guest=web1,debug-threads=on\0", Some("web1")),
            ("qemu\0-m\x001G\0-name\0a,,b\0", Some("a,b")),
            ("qemu\0-m\x001G\0", None),
            ("qemu\0-name\0", Some("")),
        ] {
            assert_eq!(guest_name(words.as_bytes()).as_deref(), name, "{words}");
        }
    }

    #[test]
    fn qemus_are_found_among_ten_thousand_processes_that_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        for id in 1000..11_000 {
            process(
                proc,
                &id.to_string(),
                &["bash", "-c", "qemu-system-x86_64 -m 1G"],
            );
        }
        process(proc, "20", &["/usr/bin/qemu-system-x86_64", "-m", "1G"]);
        process(proc, "3", &["/usr/libexec/qemu-kvm", "-name", "guest=a"]);
        process(proc, "4", &["grep", "qemu-system-x86_64"]);
        process(proc, "5", &[]);
        process(proc, "6", &["qemu-system-x86_64"]);
        // A process that ended, an unreadable command line, and names without a process.
        fs::create_dir(proc.join("7")).unwrap();
        fs::create_dir_all(proc.join("8/cmdline")).unwrap();
        fs::create_dir(proc.join("self")).unwrap();
        process(proc, "99999999999", &["qemu-system-x86_64", "-m", "1G"]);
        let found = qemus(proc).unwrap();
        let ids: Vec<u32> = found.qemus.iter().map(|(id, _)| *id).collect();
        assert_eq!((ids.as_slice(), found.unreadable), (&[3, 20][..], 0));
    }

    #[test]
    fn a_missing_proc_is_an_error() {
        let Stop(messages) = qemus(Path::new("/nonexistent/proc")).unwrap_err();
        assert!(messages[0].title.contains("/nonexistent/proc"));
    }
}
