//! Facts of the host: from a facts file, or from the host itself.

use std::path::Path;

use vmdisk::facts::FactsNeeded;
use vmdisk::{Facts, HostIndex, LintOptions, Target};

use crate::args::HostArgs;
use crate::clock;
use crate::color::Colors;
use crate::facts_file::read_facts;
use crate::io::Io;
use crate::stop::Stop;

/// The facts of the host; none unless requested.
#[derive(Debug, Default)]
pub(crate) struct Host {
    facts: Option<Facts>,
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
        let facts = match crate::hosts::files(&args.facts)?.as_slice() {
            [] => None,
            [path] => Some(read_facts(path, io, colors)?),
            _ => {
                return Err(
                    Stop::new("--facts names several hosts, but this command needs one")
                        .help("name the facts file of one host"),
                );
            }
        };
        let host = Self::without_facts(args, other_qemu)?;
        Ok(Host { facts, ..host })
    }

    /// Probes the QEMU of `--qemu`, otherwise another named one, if the caller reads the facts.
    pub(crate) fn without_facts(args: &HostArgs, other_qemu: Option<&Path>) -> Result<Self, Stop> {
        let qemu = args.qemu.as_deref().or(other_qemu);
        let qemu = qemu.map(crate::qemu::ask).transpose()?;
        let asked = crate::qemu::target(args.target.as_ref(), qemu.as_ref())?;
        Ok(Host { facts: None, asked })
    }

    /// Asks the host this runs on.
    pub(crate) fn collect(&mut self, needed: &FactsNeeded) {
        self.set_facts(collect_here(needed));
    }

    /// Knows these facts from now on.
    pub(crate) fn set_facts(&mut self, facts: Facts) {
        self.facts = Some(facts);
    }

    /// The facts, if there are any.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// The facts, ready to be asked.
    pub(crate) fn index(&self) -> Option<HostIndex<'_>> {
        self.facts.as_ref().map(HostIndex::new)
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
    pub(crate) fn options<'h>(
        &self,
        args: &HostArgs,
        index: Option<&'h HostIndex<'h>>,
    ) -> LintOptions<'h> {
        LintOptions {
            host: index,
            target: self.target(),
            policy: args.policy.unwrap_or_default(),
            ..LintOptions::default()
        }
    }

    /// The requested target, completed from the facts.
    pub(crate) fn target(&self) -> Target {
        let asked = self.asked.clone();
        match &self.facts {
            Some(facts) => asked.or(Target::from_facts(facts)),
            None => asked,
        }
    }
}

/// Asks the host this runs on.
pub(crate) fn collect_here(needed: &FactsNeeded) -> Facts {
    vmdisk_collect::collect(&vmdisk_collect::Request::of(needed, clock::now()))
}
