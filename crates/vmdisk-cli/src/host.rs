//! What is known of the host: a facts file, or the host itself.

use std::collections::BTreeSet;
use std::path::Path;

use vmdisk::model::{BackendSource, Domain};
use vmdisk::{Facts, HostIndex, Target};

use crate::args::HostArgs;
use crate::color::Colors;
use crate::io::Io;
use crate::lint::read;
use crate::render::message::Message;
use crate::stop::Stop;

/// What is known of the host; nothing, if nothing was asked for.
#[derive(Debug, Default)]
pub(crate) struct Host {
    facts: Option<Facts>,
}

impl Host {
    /// Reads `--facts`.
    pub(crate) fn prepare(args: &HostArgs, io: &mut Io<'_>, colors: Colors) -> Result<Self, Stop> {
        let facts = match &args.facts {
            Some(path) => Some(read_facts(path, io, colors)?),
            None => None,
        };
        Ok(Host { facts })
    }

    /// Asks the host this runs on about some paths, for `--live`.
    pub(crate) fn collect(&mut self, paths: BTreeSet<String>) {
        self.facts = Some(crate::facts::ask(paths));
    }

    /// The facts, if there are any.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// The facts, ready to be asked.
    pub(crate) fn index(&self) -> Option<HostIndex<'_>> {
        self.facts.as_ref().map(HostIndex::new)
    }

    /// What was asked for, with what that leaves open taken from the facts.
    pub(crate) fn target(&self, args: &HostArgs) -> Target {
        let asked = args.target.clone().unwrap_or_default();
        match &self.facts {
            Some(facts) => asked.or(Target::from_facts(facts)),
            None => asked,
        }
    }
}

fn read_facts(path: &Path, io: &mut Io<'_>, colors: Colors) -> Result<Facts, Stop> {
    let bytes = read::file(path).map_err(Stop::from)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Stop::file("read", path, "a facts file is UTF-8 text"))?;
    let read = Facts::parse(&text).map_err(|error| {
        Stop::file("read", path, error).help("`vmdisk facts` writes such a file")
    })?;
    for warning in read.warnings {
        let message = Message::warning(format!("{}: {warning}", path.display()));
        io.say(&message.render(colors.stderr));
    }
    Ok(read.facts)
}

/// Adds the paths on the host that the disks of a guest name.
pub(crate) fn paths_of(domain: &Domain, paths: &mut BTreeSet<String>) {
    for disk in &domain.disks {
        match &disk.backend.source {
            BackendSource::Image(image) => paths.extend(
                image
                    .chain()
                    .filter_map(|image| image.host_path())
                    .map(str::to_owned),
            ),
            BackendSource::VhostUser(socket) => {
                paths.insert(socket.path.clone());
            }
            BackendSource::Empty | BackendSource::Other(_) => {}
        }
    }
}
