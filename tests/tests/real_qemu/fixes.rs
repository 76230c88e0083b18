//! What a QEMU starts with it starts with after fixes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use vmdisk::FixScope;
use vmdisk_model::{Domain, Format, HostStorage, Image};
use vmdisk_tests::fix_cases::{FixCase, Syntax, by_syntax, fix_cases};
use vmdisk_tests::{QemuBuild, qemus};

/// Texts that are started in search of one that starts.
const MAX_ATTEMPTS: usize = 3;

/// The time in which a QEMU must end.
const LIMIT: Duration = Duration::from_secs(30);

/// Size of what stands for an image.
const BYTES: u64 = 16 << 20;

/// Images of a guest, each with the file that stands for it; `None` if one of them is not on the host.
pub(crate) fn stand_ins(domain: &Domain, folder: &Path) -> Option<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for disk in &domain.disks {
        let Some(image) = disk.backend.image() else {
            continue;
        };
        for image in image.chain() {
            let path = match image.protocol.on_host()? {
                HostStorage::File(path) => path,
                HostStorage::Device(path) => &path.0,
            };
            let file = folder.join(format!("image{}", files.len()));
            if !files.contains_key(path) {
                make(image, &file)?;
                files.insert(path.to_owned(), file.display().to_string());
            }
        }
    }
    Some(files)
}

/// Makes an image of the same format.
fn make(image: &Image, path: &Path) -> Option<()> {
    match image.format {
        None | Some(Format::Raw) => File::create(path).and_then(|file| file.set_len(BYTES)).ok(),
        Some(format) => {
            let status = Command::new("qemu-img")
                .args(["create", "-q", "-f", format.qemu_driver()?])
                .arg(path)
                .arg(BYTES.to_string())
                .stderr(Stdio::null())
                .status();
            status.ok()?.success().then_some(())
        }
    }
}

/// The text with stand-ins for its images, and without KVM.
pub(crate) fn ready(text: &str, files: &BTreeMap<String, String>) -> String {
    let mut text = text
        .replace("-accel kvm", "-accel tcg")
        .replace("-enable-kvm", "")
        .replace("accel = \"kvm\"", "accel = \"tcg\"");
    let mut paths: Vec<_> = files.iter().collect();
    // A path that begins as another does.
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, file) in paths {
        text = text.replace(path.as_str(), file);
    }
    text
}

/// Whether a QEMU comes up with a text; `None` where it is not started.
pub(crate) fn starts(build: &QemuBuild, syntax: Syntax, text: &str, folder: &Path) -> Option<bool> {
    let emulator = build.emulator();
    let common = ["-S", "-display", "none", "-no-user-config", "-qmp", "stdio"];
    let mut input = String::new();
    let mut command = match syntax {
        Syntax::Xml | Syntax::Spec => return None,
        Syntax::ConfigFile => {
            let file = folder.join("guest.cfg");
            std::fs::write(&file, text).expect("the folder is writable");
            let mut command = Command::new(emulator);
            if !text.contains("[machine]") {
                command.args(["-machine", "q35"]);
            }
            command.arg("-nodefaults").arg("-readconfig").arg(file);
            command.args(common);
            command
        }
        Syntax::MonitorScript => {
            input.push_str(text);
            let mut command = Command::new(emulator);
            command.args(["-machine", "pc", "-nodefaults"]).args(common);
            command
        }
        Syntax::CommandLine
        | Syntax::Drive
        | Syntax::ShortDrive
        | Syntax::FileName
        | Syntax::BlockdevJson
        | Syntax::BlockdevPairs => {
            let options = text.strip_prefix("qemu-system-x86_64 ")?;
            let line = format!(
                "exec {} {} {}",
                emulator.display(),
                options.trim_end(),
                common.join(" ")
            );
            let mut command = Command::new("sh");
            command.arg("-c").arg(line);
            command
        }
    };
    if syntax != Syntax::MonitorScript {
        input.push_str("{\"execute\":\"qmp_capabilities\"}\n");
    }
    input.push_str("{\"execute\":\"quit\"}\n");
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be started");
    // A QEMU that has ended reads no commands. One whose input ends before it runs the last command forgets the command, and
    // reads the closed input for ever.
    let mut stdin = child.stdin.take().expect("it was piped");
    let _ = stdin.write_all(input.as_bytes());
    let (ended, has_ended) = mpsc::channel::<()>();
    let id = child.id().to_string();
    let guard = std::thread::spawn(move || {
        if has_ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let output = child.wait_with_output().expect("it was started");
    drop((stdin, ended));
    guard.join().expect("it only waits");
    let said = String::from_utf8_lossy(&output.stdout);
    Some(output.status.success() && !said.contains("\"error\""))
}

/// Texts whose words are ours, and may be given to a shell.
pub(crate) fn is_tried(case: &FixCase) -> bool {
    let is_ours = match case.syntax {
        Syntax::Xml | Syntax::Spec => false,
        Syntax::CommandLine => case.origin.contains('#'),
        Syntax::Drive
        | Syntax::ShortDrive
        | Syntax::FileName
        | Syntax::BlockdevJson
        | Syntax::BlockdevPairs
        | Syntax::ConfigFile
        | Syntax::MonitorScript => true,
    };
    is_ours && !case.origin.starts_with("fuzz/")
}

#[test]
fn what_qemu_starts_it_starts_after_every_fix() {
    let builds = qemus("command lines after fixes");
    if builds.is_empty() {
        return;
    }
    // One text that starts for each syntax, machine and set of rules.
    let mut attempts = BTreeMap::new();
    let mut tried: Vec<Vec<Syntax>> = vec![Vec::new(); builds.len()];
    let mut kept = vec![0; builds.len()];
    let mut wrong = Vec::new();
    let mut number = 0;
    for case in fix_cases().iter().filter(|case| is_tried(case)) {
        let document = vmdisk::read(&case.text).expect("cases are read");
        for scope in [FixScope::Safe, FixScope::SafeAndUnsafe] {
            // One QEMU for each text, in turn: all of them would take minutes.
            let nth = number % builds.len();
            let build = &builds[nth];
            let Some(changed) = case.changed(scope, &build.target()) else {
                continue;
            };
            let machine = document.domain().machine.clone().map(|machine| machine.0);
            let attempts = attempts
                .entry((case.syntax, changed.rules.clone(), machine))
                .or_default();
            if *attempts >= MAX_ATTEMPTS {
                continue;
            }
            let folder = tempfile::tempdir().expect("a folder can be made");
            let Some(files) = stand_ins(document.domain(), folder.path()) else {
                continue;
            };
            let run = |text: &str| starts(build, case.syntax, &ready(text, &files), folder.path());
            let Some(before) = run(&case.text) else {
                continue;
            };
            number += 1;
            *attempts += 1;
            tried[nth].push(case.syntax);
            if !before {
                continue;
            }
            kept[nth] += 1;
            *attempts = MAX_ATTEMPTS;
            if run(&changed.after) != Some(true) {
                wrong.push(format!(
                    "QEMU {}: {} in {} after {scope:?} fixes of {:?}\n{}---\n{}",
                    build.name,
                    case.origin,
                    case.syntax.name(),
                    changed.rules,
                    case.text,
                    changed.after
                ));
            }
        }
    }
    for ((build, tried), kept) in builds.iter().zip(&tried).zip(&kept) {
        println!(
            "QEMU {}: {} ({}), {kept} of them started before",
            build.name,
            tried.len(),
            by_syntax(tried)
        );
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(kept.iter().sum::<usize>() > 50, "{kept:?}");
}
