//! Guests that are not files: those of libvirt, and QEMU processes of this host.

mod processes;
pub(crate) mod virsh;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::input::inputs::{Input, Inputs, Origin};
use crate::io::Io;
use crate::render::message::Message;
use crate::report::input::InputReport;
use crate::stop::Stop;
use virsh::{Virsh, VirshError};

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
    /// True if guests are requested that are not files.
    pub(crate) fn has_any(&self) -> bool {
        !self.domains.is_empty() || self.all_domains || self.running
    }
}

/// Adds the requested guests to the inputs. Returns the guests that could not be read.
pub(crate) fn add(
    args: &GuestArgs,
    inputs: &mut Inputs,
    io: &mut Io<'_>,
) -> Result<Vec<InputReport>, Stop> {
    let mut failed = Vec::new();
    if args.connect.is_some() && args.domains.is_empty() && !args.all_domains {
        return Err(Stop::new(
            "--connect names a libvirt, but none of its guests are to be checked",
        )
        .help("add --all-domains, or --domain NAME"));
    }
    if !args.domains.is_empty() || args.all_domains {
        let virsh = Virsh::new(args.connect.as_deref());
        let mut names = args.domains.clone();
        if args.all_domains {
            names.extend(virsh.names().map_err(|error| stop(&error))?);
        }
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        for name in names {
            let path = PathBuf::from(format!("<domain {name}>"));
            match virsh.definition(&name) {
                Ok(xml) => inputs.files.push(given(path, xml)),
                Err(error @ VirshError::NotStarted(_)) => return Err(stop(&error)),
                // It was removed after the names were listed.
                Err(error) if error.is_unknown_guest() && !args.domains.contains(&name) => {}
                Err(error) => failed.push(unreadable(&path, &error)),
            }
        }
    }
    if args.running {
        let found = processes::qemus(Path::new("/proc"))?;
        for (id, command_line) in found.qemus {
            inputs.files.push(given(
                PathBuf::from(format!("<process {id}>")),
                command_line,
            ));
        }
        if found.unreadable > 0 {
            io.say(&format!(
                "{} processes of other users could not be read; run this as root to check every QEMU\n",
                found.unreadable
            ));
        }
    }
    Ok(failed)
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
