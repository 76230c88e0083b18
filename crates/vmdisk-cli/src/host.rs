//! What is known of the host: a facts file, or the host itself.

use std::collections::BTreeSet;
use std::path::Path;

use vmdisk::facts::Warning;
use vmdisk::model::{BackendSource, Backing, Domain, Format, Image};
use vmdisk::{Facts, HostIndex, Target};

use crate::args::HostArgs;
use crate::color::Colors;
use crate::io::Io;
use crate::render::message::Message;
use crate::stop::Stop;

/// What is known of the host; nothing, if nothing was asked for.
#[derive(Debug, Default)]
pub(crate) struct Host {
    facts: Option<Facts>,
    /// What was asked for, and what the QEMU of `--qemu` can do.
    asked: Target,
}

impl Host {
    /// Reads `--facts`, which must name one host, and asks the QEMU of `--qemu`, or else another one that is named.
    pub(crate) fn prepare(
        args: &HostArgs,
        other_qemu: Option<&Path>,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<Self, Stop> {
        let facts = match crate::hosts::files(&args.facts)?.as_slice() {
            [] => None,
            [path] => Some(read_facts(path, io, colors)?),
            _ => {
                return Err(
                    Stop::new("--facts names several hosts here, and one is needed")
                        .help("name the facts file of the host in question"),
                );
            }
        };
        let host = Self::without_facts(args, other_qemu)?;
        Ok(Host { facts, ..host })
    }

    /// Asks the QEMU of `--qemu`, or else another one that is named, where facts are read by somebody else.
    pub(crate) fn without_facts(args: &HostArgs, other_qemu: Option<&Path>) -> Result<Self, Stop> {
        let qemu = args.qemu.as_deref().or(other_qemu);
        let qemu = qemu.map(crate::qemu::ask).transpose()?;
        let asked = crate::qemu::target(args.target.as_ref(), qemu.as_ref())?;
        Ok(Host { facts: None, asked })
    }

    /// Asks the host this runs on about some paths, for `--live`.
    pub(crate) fn collect(&mut self, wanted: Wanted) {
        self.facts = Some(crate::facts::ask(wanted));
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
    pub(crate) fn target(&self) -> Target {
        let asked = self.asked.clone();
        match &self.facts {
            Some(facts) => asked.or(Target::from_facts(facts)),
            None => asked,
        }
    }
}

/// Reads a facts file, and warns of what in it nobody understood.
pub(crate) fn read_facts(path: &Path, io: &mut Io<'_>, colors: Colors) -> Result<Facts, Stop> {
    let (facts, warnings) = crate::facts::from_file(path)?;
    warn(path, warnings, io, colors);
    Ok(facts)
}

/// Warns of what in a facts file nobody understood.
pub(crate) fn warn(path: &Path, warnings: Vec<Warning>, io: &mut Io<'_>, colors: Colors) {
    for warning in warnings {
        let message = Message::warning(format!("{}: {warning}", path.display()));
        io.say(&message.render(colors.stderr));
    }
}

/// What to ask a host about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Paths that configurations name.
    pub(crate) paths: BTreeSet<String>,
    /// Those of them that are images whose own headers say what they stand on.
    pub(crate) chains: BTreeSet<String>,
}

impl Wanted {
    /// Adds what the disks of a guest name.
    pub(crate) fn add(&mut self, domain: &Domain) {
        for disk in &domain.disks {
            match &disk.backend.source {
                BackendSource::Image(image) => self.add_image(image),
                BackendSource::VhostUser(socket) => {
                    self.paths.insert(socket.path.clone());
                }
                BackendSource::Empty => {}
            }
        }
    }

    fn add_image(&mut self, image: &Image) {
        for image in image.chain() {
            if let Some(path) = image.data_file.as_deref().and_then(Image::host_path) {
                self.paths.insert(path.to_owned());
            }
            let Some(path) = image.host_path() else {
                continue;
            };
            self.paths.insert(path.to_owned());
            // The header of what is opened as raw is the guest's, and must lead nobody anywhere.
            let is_for_the_header = image.backing == Backing::Unspecified
                && image.is_headed_by_its_format()
                && image.format.is_some_and(Format::has_backing);
            if is_for_the_header {
                self.chains.insert(path.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_of_an_image_that_is_opened_as_such_leads_on() {
        let text = "<devices>
            <disk><driver type='qcow2'/><source file='/a'/><target dev='vda'/></disk>
            <disk><driver type='raw'/><source file='/b'/><target dev='vdb'/></disk>
            <disk><source file='/c'/><target dev='vdc'/></disk>
            <disk><driver type='qcow2'/><source file='/d'/><backingStore/><target dev='vdd'/></disk>
            <disk><driver type='qcow2'/><source file='/e'/>
              <backingStore type='file'><format type='qcow2'/><source file='/f'/></backingStore>
              <target dev='vde'/></disk>
          </devices>";
        let text = format!("<domain>{text}</domain>");
        let mut wanted = Wanted::default();
        wanted.add(vmdisk::read(&text).unwrap().domain());
        let set = |words: &str| words.split(' ').map(str::to_owned).collect();
        assert_eq!(
            wanted,
            Wanted {
                paths: set("/a /b /c /d /e /f"),
                chains: set("/a /f"),
            }
        );
    }
}
