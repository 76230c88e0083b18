//! Guests that are not files: those of libvirt, and QEMU processes of this host.

mod processes;
pub(crate) mod virsh;
pub(crate) mod whose;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use vmdisk::plan::shell_word;

use crate::input::inputs::{Input, Inputs, Origin};
use crate::io::Io;
use crate::render::message::Message;
use crate::report::input::InputReport;
use crate::stop::Stop;
use virsh::{Virsh, VirshError};

/// The libvirt of the host.
const SYSTEM: &str = "qemu:///system";

/// Guests that are not files.
#[derive(Args, Debug, Default)]
pub(crate) struct GuestArgs {
    /// Check the definition of this guest of libvirt for its next start (`virsh dumpxml --inactive`); may be repeated.
    #[arg(long = "domain", value_name = "NAME", help_heading = "Guests")]
    pub(crate) domains: Vec<String>,
    /// Check every guest of libvirt, running or not.
    #[arg(long, help_heading = "Guests")]
    pub(crate) all_domains: bool,
    /// Libvirt to connect to, such as qemu:///system; by default virsh chooses.
    #[arg(long, short = 'c', value_name = "URI", help_heading = "Guests")]
    pub(crate) connect: Option<String>,
    /// Check the command lines of the QEMU processes that run on this host, whoever started them.
    #[arg(long, help_heading = "Guests")]
    pub(crate) running: bool,
}

impl GuestArgs {
    /// True if guests of libvirt are requested.
    pub(crate) fn are_of_libvirt(&self) -> bool {
        !self.domains.is_empty() || self.all_domains
    }

    /// The command that changes these guests, with their libvirt and the facts of the same host.
    pub(crate) fn edit_command(&self, is_live: bool) -> String {
        let mut words = vec!["vmdisk edit --fix".to_owned()];
        words.extend(is_live.then(|| "--live".to_owned()));
        words.extend(
            self.connect
                .as_deref()
                .map(|uri| format!("-c {}", shell_word(uri))),
        );
        match self.domains.is_empty() {
            true => words.push("NAME".to_owned()),
            false => words.extend(self.domains.iter().map(|name| shell_word(name))),
        }
        words.join(" ")
    }

    /// True if guests are requested that are not files.
    pub(crate) fn has_any(&self) -> bool {
        self.are_of_libvirt() || self.running
    }
}

/// A guest that is not a file, by the name of its input.
pub(crate) enum NotAFile<'a> {
    /// A guest of libvirt.
    Domain(&'a str),
    /// A QEMU process.
    Process,
}

impl<'a> NotAFile<'a> {
    /// The guest whose input has this name.
    pub(crate) fn of(input: &'a str) -> Option<Self> {
        let words = input.strip_prefix('<')?.strip_suffix('>')?;
        match words.split_once(' ')? {
            ("domain", name) => Some(NotAFile::Domain(name)),
            ("process", _) => Some(NotAFile::Process),
            _ => None,
        }
    }

    /// The name of the input with a guest of libvirt.
    pub(crate) fn domain(name: &str) -> PathBuf {
        PathBuf::from(format!("<domain {name}>"))
    }
}

/// The requested guests that are not among the inputs, and where those of libvirt run.
#[derive(Default)]
pub(crate) struct Added {
    /// The guests that could not be read.
    pub(crate) failed: Vec<InputReport>,
    /// The libvirt of the guests.
    pub(crate) virsh: Option<Virsh>,
}

/// Adds the requested guests to the inputs.
pub(crate) fn add(args: &GuestArgs, inputs: &mut Inputs, io: &mut Io<'_>) -> Result<Added, Stop> {
    let mut added = Added::default();
    if args.connect.is_some() && args.domains.is_empty() && !args.all_domains {
        return Err(Stop::new(
            "--connect names a libvirt, but none of its guests are to be checked",
        )
        .help("add --all-domains, or --domain NAME"));
    }
    if args.are_of_libvirt() {
        let virsh = libvirt(args.connect.as_deref(), io).map_err(|error| stop(&error))?;
        let mut names = args.domains.clone();
        if args.all_domains {
            names.extend(virsh.names().map_err(|error| stop(&error))?);
        }
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        if names.is_empty() && !args.running {
            let uri = virsh.uri().map_err(|error| stop(&error))?;
            let title = format!("nothing to check: {uri} has no guests");
            return Err(
                Stop::new(title).help("-c names another libvirt, such as -c qemu:///system")
            );
        }
        for name in names {
            let path = NotAFile::domain(&name);
            match virsh.definition(&name) {
                Ok(xml) => inputs.files.push(given(path, xml)),
                Err(error @ VirshError::NotStarted(_)) => return Err(stop(&error)),
                // It was removed after the names were listed.
                Err(error) if error.is_unknown_guest() && !args.domains.contains(&name) => {}
                Err(error) => added.failed.push(unreadable(&path, &error)),
            }
        }
        added.virsh = Some(virsh);
    }
    if args.running {
        let found = processes::qemus(Path::new("/proc"))?;
        for (id, command_line) in found.qemus {
            let name = match processes::guest_name(&command_line) {
                Some(name) => format!("<process {id} {name}>"),
                None => format!("<process {id}>"),
            };
            inputs.files.push(given(PathBuf::from(name), command_line));
        }
        if found.unreadable > 0 {
            io.say(&format!(
                "{} processes of other users could not be read; run this as root to check every QEMU\n",
                found.unreadable
            ));
        }
    }
    Ok(added)
}

/// The libvirt that is asked. Without a URI, virsh chooses the session of a user who is not root: if that has no guests,
/// the system's is asked.
fn libvirt(connect: Option<&str>, io: &mut Io<'_>) -> Result<Virsh, VirshError> {
    let chosen = Virsh::new(connect);
    let uri = match connect {
        Some(_) => return Ok(chosen),
        None => chosen.uri()?,
    };
    if !uri.ends_with(":///session") || !chosen.names()?.is_empty() {
        return Ok(chosen);
    }
    let system = Virsh::new(Some(SYSTEM));
    if !system.names().is_ok_and(|names| !names.is_empty()) {
        return Ok(chosen);
    }
    io.say(&format!(
        "{uri} has no guests; these are those of {SYSTEM}\n"
    ));
    Ok(system)
}

fn given(file: PathBuf, bytes: Vec<u8>) -> Input {
    let origin = Origin::Given(bytes);
    Input::new(file, origin)
}

fn stop(error: &VirshError) -> Stop {
    Stop::new(error.to_string()).help(error.help())
}

fn unreadable(path: &Path, error: &VirshError) -> InputReport {
    let help = Some(error.help().to_owned());
    let message = Message::error(error.to_string());
    InputReport::failed(path, message.help(help))
}
