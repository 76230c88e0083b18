//! Facts of the host: from a facts file, or from the host itself.

use std::path::Path;

use vmdisk::facts::FactsNeeded;
use vmdisk::{Facts, LintOptions, Target};

use crate::args::HostArgs;
use crate::clock;
use crate::color::Colors;
use crate::facts_file::read_facts;
use crate::io::Io;
use crate::stop::Stop;

/// The facts of the host; none unless requested.
#[derive(Debug, Default)]
pub(crate) struct Host {
    known: Option<vmdisk::Host>,
    /// The requested target, with the capabilities of the QEMU of `--qemu`.
    asked: Target,
}

impl Host {
    /// Reads `--facts`, which must name one host, and probes the QEMU of `--qemu`, otherwise another named one.
    pub(crate) fn prepare(
        args: &HostArgs,
        other_qemu: Option<&Path>,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<Self, Stop> {
        let known = match crate::hosts::files(&args.facts)?.as_slice() {
            [] => None,
            [path] => Some(vmdisk::Host::new(read_facts(path, io, colors)?)),
            _ => {
                return Err(
                    Stop::new("--facts names several hosts, but this command needs one")
                        .help("name the facts file of one host"),
                );
            }
        };
        let host = Self::without_facts(args, other_qemu)?;
        Ok(Host { known, ..host })
    }

    /// Probes the QEMU of `--qemu`, otherwise another named one, if the caller reads the facts.
    pub(crate) fn without_facts(args: &HostArgs, other_qemu: Option<&Path>) -> Result<Self, Stop> {
        let qemu = args.qemu.as_deref().or(other_qemu);
        let qemu = qemu.map(crate::qemu::ask).transpose()?;
        let asked = crate::qemu::target(args.target.as_ref(), qemu.as_ref())?;
        Ok(Host { known: None, asked })
    }

    /// Asks the host this runs on.
    pub(crate) fn collect(&mut self, needed: &FactsNeeded) {
        self.set(vmdisk::Host::new(collect_here(needed)));
    }

    /// Knows these facts from now on.
    pub(crate) fn set(&mut self, known: vmdisk::Host) {
        self.known = Some(known);
    }

    /// The facts, if there are any.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.known.as_ref().map(vmdisk::Host::facts)
    }

    /// The facts with their index.
    pub(crate) fn known(&self) -> Option<&vmdisk::Host> {
        self.known.as_ref()
    }

    /// Reads the facts and the target of a command about a guest; with `--live`, collects the facts that it needs.
    pub(crate) fn for_guest(
        args: &HostArgs,
        needed: impl FnOnce() -> FactsNeeded,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<Self, Stop> {
        let mut host = Self::prepare(args, None, io, colors)?;
        if args.live {
            host.collect(&needed());
        }
        Ok(host)
    }

    /// The options of the linter for these facts and this target.
    pub(crate) fn options(&self, args: &HostArgs) -> LintOptions {
        LintOptions::default()
            .host(self.known.clone())
            .target(self.target())
            .policy(args.policy.unwrap_or_default())
    }

    /// The requested target, completed from the facts.
    pub(crate) fn target(&self) -> Target {
        let asked = self.asked.clone();
        match self.facts() {
            Some(facts) => asked.or(Target::from_facts(facts)),
            None => asked,
        }
    }
}

/// Asks the host this runs on.
pub(crate) fn collect_here(needed: &FactsNeeded) -> Facts {
    vmdisk_collect::collect(&vmdisk_collect::Request::of(needed, clock::now()))
}
