//! A configuration and the hosts that it may run on.

use std::collections::BTreeMap;

use vmdisk_facts::{Fact, HostIndex, Target};
use vmdisk_model::{Disk, Domain, Image};

use crate::{Context, Missing};

/// A class of hosts with identical facts.
#[derive(Clone, Copy, Debug)]
pub struct ComparedHost<'a> {
    /// Its name in findings.
    pub name: &'a str,
    /// The number of hosts in this class.
    pub count: usize,
    /// Facts of the host.
    pub host: &'a HostIndex<'a>,
    /// The target on this host.
    pub target: &'a Target,
}

/// A configuration and the hosts that it may run on or migrate between.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The configuration.
    pub domain: &'a Domain,
    /// The hosts; findings refer to their indexes.
    pub hosts: &'a [ComparedHost<'a>],
}

/// Hosts, grouped by a value.
pub type ByAnswer<T> = BTreeMap<T, Vec<usize>>;

impl<'a> Comparison<'a> {
    /// Disks whose backend is an image with a path on the host: index, disk, image, path.
    pub fn images_with_paths(
        &self,
    ) -> impl Iterator<Item = (usize, &'a Disk, &'a Image, &'a str)> + use<'a> {
        let disks = self.domain.disks.iter().enumerate();
        disks.filter_map(|(index, disk)| {
            let image = disk.backend.image()?;
            Some((index, disk, image, image.host_path()?))
        })
    }

    /// The names of hosts in a sentence: `kvm1, kvm2 and 38 more`.
    pub fn names(&self, numbers: &[usize]) -> String {
        /// The number of names that are printed; the rest is counted.
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
    /// The context of this host alone, for rules about one host.
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
