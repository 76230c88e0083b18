//! One configuration, and several hosts that it may run on.

use std::collections::BTreeMap;

use vmdisk_facts::{Fact, HostIndex, Target};
use vmdisk_model::{Disk, Domain, FieldPath, Image};

use crate::{Context, Missing, Report};

/// One host, or several of which the same is known.
#[derive(Clone, Copy, Debug)]
pub struct ComparedHost<'a> {
    /// What people call it.
    pub name: &'a str,
    /// Number of hosts in this class, itself included.
    pub count: usize,
    /// Facts of the host.
    pub host: &'a HostIndex<'a>,
    /// What would run the guest there.
    pub target: &'a Target,
}

/// One configuration, and the hosts that it may run on or migrate between.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The configuration.
    pub domain: &'a Domain,
    /// The hosts; findings name them by their numbers here.
    pub hosts: &'a [ComparedHost<'a>],
}

/// Hosts by what was found there.
pub type ByAnswer<T> = BTreeMap<T, Vec<usize>>;

impl<'a> Comparison<'a> {
    /// Disks whose backend is an image with a path on the host: number, disk, image, path.
    pub fn images_with_paths(
        &self,
    ) -> impl Iterator<Item = (usize, &'a Disk, &'a Image, &'a str)> + use<'a> {
        let disks = self.domain.disks.iter().enumerate();
        disks.filter_map(|(index, disk)| {
            let image = disk.backend.image()?;
            Some((index, disk, image, image.host_path()?))
        })
    }

    /// The hosts grouped by their answers to one question; hosts without an answer are reported as not checked at `at`.
    pub fn answers<T: Ord>(
        &self,
        report: &mut Report,
        at: FieldPath,
        mut ask: impl FnMut(&ComparedHost<'a>) -> Result<T, Missing>,
    ) -> ByAnswer<T> {
        let mut answers = ByAnswer::new();
        let mut unanswered: ByAnswer<Missing> = ByAnswer::new();
        for (number, host) in self.hosts.iter().enumerate() {
            match ask(host) {
                Ok(answer) => answers.entry(answer).or_default().push(number),
                Err(missing) => unanswered.entry(missing).or_default().push(number),
            }
        }
        for (missing, hosts) in unanswered {
            report.not_checked_on(at, missing, hosts);
        }
        answers
    }

    /// Hosts in words: `kvm1, kvm2 and 38 more`.
    pub fn names(&self, numbers: &[usize]) -> String {
        /// Number of names printed in full; the rest is counted.
        const TOLD: usize = 3;
        let all: usize = numbers.iter().map(|number| self.hosts[*number].count).sum();
        let told: Vec<&str> = numbers
            .iter()
            .take(TOLD)
            .map(|number| self.hosts[*number].name)
            .collect();
        match all - told.len() {
            0 => match told.as_slice() {
                [others @ .., last] if !others.is_empty() => {
                    format!("{} and {last}", others.join(", "))
                }
                _ => told.concat(),
            },
            more => format!("{} and {more} more", told.join(", ")),
        }
    }
}

impl<'a> ComparedHost<'a> {
    /// This host alone, for what is asked of one.
    pub fn alone(&self, domain: &'a Domain) -> Context<'a> {
        Context::new(domain, self.target).on_host(self.host)
    }

    /// A queue limit of the device at a path; `None` if the device does not exist.
    pub fn of_device(
        &self,
        path: &str,
        what: &str,
        number: impl Fn(&vmdisk_facts::BlockDevice) -> &Fact<u64>,
    ) -> Result<Option<u64>, Missing> {
        let what = || format!("{what} of {path}");
        let Some(device) = Context::known(self.host.block_device(path), what)? else {
            return Ok(None);
        };
        Context::known(number(device).clone(), what)
    }
}
