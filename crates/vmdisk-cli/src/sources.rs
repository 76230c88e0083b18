//! The facts of all inputs: of one host, or of several that guests may run on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use vmdisk::facts::FactsNeeded;
use vmdisk::report::Classes;
use vmdisk::{Facts, Fleet, LintOptions};

use crate::args::{HostArgs, LintArgs};
use crate::color::Colors;
use crate::config::settings::{Plan, Settings, Source};
use crate::host::{self, Host};
use crate::hosts::{self, Hosts};
use crate::io::Io;
use crate::report::input::InputReport;
use crate::stop::Stop;

/// The facts of all inputs.
pub(crate) struct Sources {
    /// The hosts, where there are several.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) list: Vec<Loaded>,
    /// Every facts file, each once.
    pub(crate) files: Vec<PathBuf>,
}

/// The hosts of some inputs.
pub(crate) struct Loaded {
    /// The target, and the facts where there is one host.
    pub(crate) host: Host,
    /// Their numbers among the hosts, where there are several.
    pub(crate) members: Vec<usize>,
}

impl Sources {
    /// Reads every facts file once.
    pub(crate) fn load(
        plan: &Plan,
        args: &LintArgs,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<Self, Stop> {
        let mut seen = HashSet::new();
        let named = plan.sources.iter().flat_map(|source| &source.facts);
        let files: Vec<PathBuf> = named.filter(|file| seen.insert(*file)).cloned().collect();
        let hosts = match files.len() {
            0 | 1 => None,
            _ => Some(hosts::read(&files, io, colors)?),
        };
        let tried = args.try_qemu.as_deref();
        let known = hosts
            .iter()
            .flat_map(|hosts| hosts.known.iter().enumerate());
        let numbers: HashMap<&str, usize> = known
            .map(|(number, host)| (host.host.path.as_str(), number))
            .collect();
        let mut list = Vec::new();
        for source in &plan.sources {
            let asked = host_args(args, source);
            let host = match &hosts {
                Some(_) => Host::without_facts(&asked, tried)?,
                None => Host::prepare(&asked, tried, io, colors)?,
            };
            let members = source.facts.iter();
            let mut members: Vec<usize> = members
                .filter_map(|file| numbers.get(&*file.display().to_string()).copied())
                .collect();
            members.sort_unstable();
            list.push(Loaded { host, members });
        }
        Ok(Sources { hosts, list, files })
    }

    /// Asks the host this runs on, for `--live`.
    pub(crate) fn collect(&mut self, needed: &FactsNeeded) {
        let host = vmdisk::Host::new(host::collect_here(needed));
        for loaded in &mut self.list {
            loaded.host.set(host.clone());
        }
    }

    /// Facts files that could not be read, as inputs that could not be.
    pub(crate) fn failed(&mut self) -> Vec<InputReport> {
        let hosts = self.hosts.as_mut();
        hosts.map_or_else(Vec::new, |hosts| std::mem::take(&mut hosts.failed))
    }

    /// The options of inputs with these settings.
    pub(crate) fn options(&self, settings: &Settings, fleets: &[Option<Fleet>]) -> LintOptions {
        let host = &self.list[settings.source].host;
        LintOptions::default()
            .host(host.known().cloned())
            .fleet(fleets[settings.source].clone())
            .target(host.target())
            .policy(settings.policy)
            .rules(settings.rules.clone())
            .ignored(settings.ignored.clone())
            .selection(settings.selection.clone())
    }

    /// The fleets, by source; `None` where there is one host or none.
    pub(crate) fn fleets(&self, plan: &Plan) -> Vec<Option<Fleet>> {
        let sources = self.list.iter().zip(&plan.sources);
        sources
            .map(|(loaded, source)| {
                let hosts = self.hosts.as_ref()?;
                let members = loaded.members.iter().map(|number| &hosts.known[*number]);
                let named = members.map(|host| (host.host.name.as_str(), host.known.clone()));
                let asked = source.target.clone().unwrap_or_default();
                (!loaded.members.is_empty()).then(|| Fleet::new(named, &asked))
            })
            .collect()
    }

    /// The classes of the hosts, where there are several, by the lists of hosts that reports have.
    pub(crate) fn classes<'a>(&'a self, lists: &'a HashSet<Vec<usize>>) -> Option<Classes<'a>> {
        let known = self.hosts.as_ref()?.known.iter();
        let groups = self.list.iter().map(|source| source.members.as_slice());
        let lists = groups.chain(lists.iter().map(Vec::as_slice));
        Some(Classes::new(known.map(|one| &one.host), lists))
    }

    /// Whose facts were used, and when they were collected.
    pub(crate) fn described(&self, classes: Option<&Classes<'_>>) -> String {
        let only = self.list.iter().find_map(|loaded| loaded.host.facts());
        let known = self.hosts.iter().flat_map(|hosts| &hosts.known);
        let facts: Vec<&Facts> = known.map(|one| one.known.facts()).chain(only).collect();
        let times = facts
            .iter()
            .map(|facts| facts.collected_at.as_ref().known());
        let times: BTreeSet<&String> = times.flatten().collect();
        let when = match (times.first(), times.last()) {
            (Some(first), Some(last)) if first != last => format!(" (facts of {first} to {last})"),
            (Some(first), _) => format!(" (facts of {first})"),
            _ => String::new(),
        };
        let whose = match (classes, self.only_host()) {
            (Some(classes), _) => classes.summary().trim_end().to_owned(),
            (None, Some(host)) => format!("on {host}"),
            (None, None) if facts.is_empty() => "without facts of a host".to_owned(),
            (None, None) => "on this host".to_owned(),
        };
        whose + &when
    }

    /// The facts that were read from files, with the paths of these.
    pub(crate) fn dated(&self) -> Vec<(String, &Facts)> {
        let host = self.list.iter().find_map(|loaded| loaded.host.facts());
        match (&self.hosts, self.files.as_slice(), host) {
            (Some(hosts), ..) => {
                let known = hosts.known.iter();
                known
                    .map(|host| (host.host.path.clone(), host.known.facts()))
                    .collect()
            }
            (None, [path], Some(facts)) => vec![(path.display().to_string(), facts)],
            (None, ..) => Vec::new(),
        }
    }

    /// The name of the only host, where there are facts of one.
    pub(crate) fn only_host(&self) -> Option<String> {
        match self.files.as_slice() {
            [file] => file
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
            _ => None,
        }
    }
}

/// The arguments about the host, with those of a source.
fn host_args(args: &LintArgs, source: &Source) -> HostArgs {
    HostArgs {
        facts: source.facts.clone(),
        target: source.target.clone(),
        live: args.host.live,
        qemu: args.host.qemu.clone(),
        policy: args.host.policy,
    }
}
