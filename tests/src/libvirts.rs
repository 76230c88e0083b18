//! The libvirts that tests try things on: the one that is installed, and the newer one that `cargo xtask libvirts`
//! fetched. Both run their QEMU driver without a daemon.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk::facts::{Target, Version};

/// The libvirt that `cargo xtask libvirts` fetches, as people say it.
pub const NEWER_LIBVIRT: &str = "11.3";

/// A libvirt, with the QEMU it runs.
#[derive(Clone, Debug)]
pub struct LibvirtBuild {
    /// Its version.
    pub version: Version,
    /// The version of the QEMU that its driver looks at.
    pub qemu: Version,
    virsh: PathBuf,
}

/// What libvirt says of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes it.
    Accepted,
    /// It does not, and says why.
    Refused(String),
    /// Its driver crashes.
    Crashed,
}

impl Verdict {
    /// What it says against it.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Verdict::Accepted => None,
            Verdict::Crashed => Some("(libvirt crashed)"),
            Verdict::Refused(text) => Some(text),
        }
    }
}

/// Every libvirt at hand, the oldest first. What is missing is said in one line.
///
/// The fetched one is looked for in the folder that `VMDISK_LIBVIRTS` names, else in `target/libvirts`.
///
/// # Panics
/// Under `VMDISK_REAL=require`, if one is missing.
pub fn libvirts(test: &str) -> Vec<LibvirtBuild> {
    let folder = std::env::var_os("VMDISK_LIBVIRTS").map_or_else(
        || crate::repository().join("target").join("libvirts"),
        PathBuf::from,
    );
    let mut found = Vec::new();
    let installed = LibvirtBuild::installed();
    if crate::real(installed.is_some(), test, "virsh and qemu-system-x86_64") {
        found.extend(installed);
    }
    let newer = LibvirtBuild::at(folder.join(NEWER_LIBVIRT).join("virsh"));
    let needs = format!("libvirt {NEWER_LIBVIRT} (cargo xtask libvirts, as root)");
    if crate::real(newer.is_some(), test, &needs) {
        found.extend(newer);
    }
    found.sort_by_key(|build| build.version);
    found
}

impl LibvirtBuild {
    /// The one that is on the search path, if its driver runs here.
    pub fn installed() -> Option<Self> {
        LibvirtBuild::at(PathBuf::from("virsh"))
    }

    fn at(virsh: PathBuf) -> Option<Self> {
        let session = LibvirtSession::new(&virsh)?;
        let said = session.say("version\n")?;
        let number = |after: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(after))?;
            Version::leading(line.rsplit(' ').next()?)
        };
        Some(LibvirtBuild {
            version: number("Using library: libvirt")?,
            qemu: number("Running hypervisor: QEMU")?,
            virsh,
        })
    }

    /// Its program that writes AppArmor profiles.
    pub fn aa_helper(&self) -> PathBuf {
        match self.virsh.parent() {
            Some(folder) if folder != Path::new("") => folder.join("virt-aa-helper"),
            _ => PathBuf::from("/usr/lib/libvirt/virt-aa-helper"),
        }
    }

    /// It as the target of what is checked for it.
    pub fn target(&self) -> Target {
        Target {
            libvirt: Some(self.version),
            qemu: Some(self.qemu),
            ..Target::default()
        }
    }

    /// A driver of its own, which knows no guests yet.
    ///
    /// # Panics
    /// If no folder can be made for it.
    pub fn session(&self) -> LibvirtSession {
        LibvirtSession::new(&self.virsh).expect("a folder for a libvirt can be made")
    }
}

/// What a libvirt is to do with a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep its definition.
    Define,
    /// Start it, and end it again.
    Start,
}

/// A driver with a root of its own, which ends with it.
#[derive(Debug)]
pub struct LibvirtSession {
    virsh: PathBuf,
    folder: tempfile::TempDir,
}

impl LibvirtSession {
    fn new(virsh: &Path) -> Option<Self> {
        // libvirt syncs each definition, which memory does at once.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory).ok()?
        } else {
            tempfile::tempdir().ok()?
        };
        let etc = folder.path().join("root").join("etc");
        std::fs::create_dir_all(&etc).ok()?;
        // As root it need not look at QEMU again for each guest. It has no log daemon, and no mounts of its own, which
        // need not be possible where it runs.
        let configuration = "user = \"root\"\ngroup = \"root\"\nsecurity_driver = \"none\"\nstdio_handler = \"file\"\nnamespaces = []\n";
        std::fs::write(etc.join("qemu.conf"), configuration).ok()?;
        Some(LibvirtSession {
            virsh: virsh.to_owned(),
            folder,
        })
    }

    /// A folder that the driver sees under the same name, for images.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs commands, of which one that fails does not stop those behind it; answers and complaints are in their
    /// order. Its end is cut off if the driver crashes or thinks for too long.
    pub fn say(&self, commands: &str) -> Option<String> {
        let output = self.folder.path().join("said");
        let said = File::create(&output).ok()?;
        let script = self.folder.path().join("commands");
        std::fs::write(&script, commands).ok()?;
        let root = self.folder.path().join("root");
        let mut child = Command::new(&self.virsh)
            .env("VMDISK_ROOT", self.folder.path())
            .env("LC_ALL", "C")
            .arg("--connect")
            .arg(format!("qemu:///embed?root={}", root.display()))
            .stdin(Stdio::from(File::open(&script).ok()?))
            .stdout(Stdio::from(said.try_clone().ok()?))
            .stderr(Stdio::from(said))
            .spawn()
            .ok()?;
        wait_while_it_answers(&mut child, &output);
        Some(String::from_utf8_lossy(&std::fs::read(&output).ok()?).into_owned())
    }

    /// Takes a step with each guest; one verdict for each, in order.
    ///
    /// # Panics
    /// If libvirt does not come to the end of them, with all that it said.
    pub fn verdicts<'a>(
        &self,
        step: Step,
        guests: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Verdict> {
        let file = |number: usize| self.folder.path().join(format!("{number}.xml"));
        let mut names = Vec::new();
        for xml in guests {
            let text = match Path::new("/dev/kvm").exists() {
                true => xml.to_owned(),
                false => emulated(xml),
            };
            std::fs::write(file(names.len()), text).expect("a guest can be written");
            let name = xml
                .split_once("<name>")
                .and_then(|(_, rest)| rest.split_once('<'));
            names.push(name.map_or("", |(name, _)| name));
        }
        let count = names.len();
        let mut verdicts = Vec::with_capacity(count);
        while verdicts.len() < count {
            let mut commands = String::new();
            for (number, name) in names.iter().enumerate().skip(verdicts.len()) {
                let file = file(number);
                let file = file.display();
                let (before, after) = match step {
                    // A definition that stays would be in the way of the next guest with its name.
                    Step::Define => (format!("define {file}"), String::new()),
                    // QEMU outlives the driver that started it.
                    Step::Start => (
                        format!("create --paused {file}"),
                        format!("destroy {name}\n"),
                    ),
                };
                let _ = writeln!(
                    commands,
                    "echo BEGIN {number}\n{before}\necho END {number}\n{after}"
                );
            }
            let said = self.say(&commands).expect("virsh can be started");
            let before = verdicts.len();
            read_verdicts(&said, count, &mut verdicts);
            assert!(
                verdicts.len() > before || said.contains(&format!("\nBEGIN {before}\n")),
                "libvirt does not start: {said}"
            );
            if verdicts.len() < count {
                // The driver runs inside virsh, and ended with it.
                verdicts.push(Verdict::Crashed);
            }
        }
        verdicts
    }
}

/// The guest without KVM: libvirt refuses its type on a machine that has none, whatever else is in it.
fn emulated(xml: &str) -> String {
    xml.replacen("type='kvm'", "type='qemu'", 1)
        .replacen("type=\"kvm\"", "type=\"qemu\"", 1)
        .replace("mode='host-passthrough'", "mode='maximum'")
}

/// Adds the verdicts of the guests from the first that has none, up to where the answers end.
fn read_verdicts(said: &str, count: usize, verdicts: &mut Vec<Verdict>) {
    let mut rest = said;
    let mut part = |end: String| {
        let (part, behind) = rest.split_once(&end)?;
        rest = behind;
        Some(part)
    };
    for number in verdicts.len()..count {
        part(format!("\nBEGIN {number}\n"));
        let Some(said) = part(format!("\nEND {number}\n")) else {
            return;
        };
        verdicts.push(refusal(said).map_or(Verdict::Accepted, Verdict::Refused));
    }
}

/// The last line of an error, without what virsh puts before it.
fn refusal(said: &str) -> Option<String> {
    let mut lines = said.lines().filter_map(|line| line.strip_prefix("error: "));
    lines
        .rfind(|line| {
            !line.starts_with("Failed to define domain from ")
                && !line.starts_with("Failed to create domain from ")
        })
        .map(str::to_owned)
}

/// Longest that libvirt may think about one guest; now and then it waits for ever.
const LONGEST_THOUGHT: Duration = Duration::from_secs(60);

/// Waits for the end of a program, and ends it if it writes nothing more for long.
fn wait_while_it_answers(child: &mut Child, output: &Path) {
    let mut length = 0;
    let mut since = Instant::now();
    while let Ok(None) = child.try_wait() {
        let now = std::fs::metadata(output).map_or(0, |metadata| metadata.len());
        if now != length {
            (length, since) = (now, Instant::now());
        } else if since.elapsed() > LONGEST_THOUGHT {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
