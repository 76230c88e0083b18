//! libvirt, by its program virsh.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::stop::plain;

/// A libvirt that virsh connects to.
#[derive(Clone, Debug)]
pub(crate) struct Virsh {
    connect: Option<String>,
}

/// The reason why virsh did not do what was asked.
#[derive(Debug)]
pub(crate) enum VirshError {
    /// It could not be started.
    NotStarted(String),
    /// The libvirt that the caller names does not answer, with this message.
    Unreachable(String),
    /// It failed, with this message.
    Failed(String),
}

impl fmt::Display for VirshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VirshError::NotStarted(why) => write!(f, "virsh could not be started: {why}"),
            VirshError::Unreachable(why) | VirshError::Failed(why) => write!(f, "virsh: {why}"),
        }
    }
}

impl VirshError {
    /// True if libvirt knows no guest of this name.
    pub(crate) fn is_unknown_guest(&self) -> bool {
        matches!(self, VirshError::Failed(why) if why.starts_with("failed to get domain"))
    }

    /// The remedy.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            VirshError::NotStarted(_) => "install libvirt's client, or name files",
            VirshError::Unreachable(_) => {
                "the libvirt that -c names does not answer: `virsh -c URI list` shows the same"
            }
            VirshError::Failed(_) if self.is_unknown_guest() => {
                "`virsh list --all` lists the guests; -c names another libvirt"
            }
            VirshError::Failed(_) => "name the libvirt with -c, such as -c qemu:///system",
        }
    }
}

impl Virsh {
    /// The libvirt at a URI; without one, virsh chooses.
    pub(crate) fn new(connect: Option<&str>) -> Self {
        Virsh {
            connect: connect.map(str::to_owned),
        }
    }

    /// The URI of the libvirt.
    pub(crate) fn uri(&self) -> Result<String, VirshError> {
        self.run(["uri"].map(OsStr::new)).map(|it| text(&it))
    }

    /// The name of the host that the guests run on.
    pub(crate) fn host_name(&self) -> Result<String, VirshError> {
        self.run(["hostname"].map(OsStr::new)).map(|it| text(&it))
    }

    /// The names of all guests.
    pub(crate) fn names(&self) -> Result<Vec<String>, VirshError> {
        let listed = self.run(["list", "--all", "--name"].map(OsStr::new))?;
        let listed = String::from_utf8_lossy(&listed);
        let names = listed.lines().filter(|line| !line.is_empty());
        Ok(names.map(str::to_owned).collect())
    }

    /// The definition of a guest without its passwords.
    pub(crate) fn definition(&self, name: &str) -> Result<Vec<u8>, VirshError> {
        self.run(["dumpxml", "--inactive", "--domain", name].map(OsStr::new))
    }

    /// The definition of a guest with its passwords, which a new definition needs.
    pub(crate) fn whole_definition(&self, name: &str) -> Result<Vec<u8>, VirshError> {
        let words = ["dumpxml", "--inactive", "--security-info", "--domain", name];
        self.run(words.map(OsStr::new))
    }

    /// True if a guest runs or is paused: its QEMU has the definition that it was started with.
    pub(crate) fn is_active(&self, name: &str) -> bool {
        let words = ["domstate", "--domain", name].map(OsStr::new);
        self.run(words)
            .is_ok_and(|state| text(&state) != "shut off")
    }

    /// Defines the guest of a file.
    pub(crate) fn define(&self, file: &Path) -> Result<(), VirshError> {
        let words = [OsStr::new("define"), OsStr::new("--file"), file.as_os_str()];
        self.run(words).map(|_| ())
    }

    fn run<const N: usize>(&self, words: [&OsStr; N]) -> Result<Vec<u8>, VirshError> {
        let mut command = Command::new("virsh");
        if let Some(uri) = &self.connect {
            command.arg("--connect").arg(uri);
        }
        let output = command
            .arg("--quiet")
            .args(words)
            // Messages are recognised.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| VirshError::NotStarted(plain(&error)))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().map(|line| line.trim_start_matches("error: "));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let why = match lines.as_slice() {
            [] => output.status.to_string(),
            lines => lines.join("; "),
        };
        let is_silent = why.starts_with("failed to connect to the hypervisor");
        Err(match is_silent && self.connect.is_some() {
            true => VirshError::Unreachable(why),
            false => VirshError::Failed(why),
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
