//! The needs of the guests of one run, and where the guests of a host conflict.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

use vmdisk_facts::verdict::aio::{AioSlots, SLOTS_OF_THREAD};
use vmdisk_facts::{Fact, HostIndex};
use vmdisk_model::{Bytes, Disk, DiskField, DomainField, FieldPath, Protocol, Scope};
use vmdisk_rule::{Context, OtherGuests, Resource, SharedImage, Sharing, Shortage};

use crate::chain::chains;
use crate::{aio, host, hugepages, space};

/// What one guest uses of its host, without its configuration: a few hundred bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNeeds {
    /// The same number for the same guest in another file.
    identity: u64,
    name: Box<str>,
    images: Box<[ImageUse]>,
    /// Size of a huge page, and the number of them; 0 without huge pages.
    pages: (Bytes, u64),
    /// The first disk with Linux AIO, and the slots of all threads.
    aio: Option<(u32, u64)>,
    growth: Box<[Growth]>,
}

/// An image that a guest opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ImageUse {
    /// The same number for all names of the file or device.
    identity: u64,
    disk: u32,
    depth: u16,
    writes: bool,
    is_shareable: bool,
}

/// The bytes by which an image can still grow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Growth {
    identity: u64,
    filesystem: Box<str>,
    disk: u32,
    bytes: u64,
}

impl GuestNeeds {
    /// The needs of the guest in `context`; `None` if it has no machine, or QEMU does not run it. A guest without a
    /// name is known by the number of its input.
    pub fn of(context: &Context<'_>, input: usize) -> Option<Self> {
        let domain = context.domain;
        if domain.scope == Scope::DisksOnly || domain.foreign_type().is_some() {
            return None;
        }
        let name = domain.name.as_deref();
        let identity = match (&domain.uuid, name) {
            (Some(uuid), _) => hash_of(&("uuid", uuid.to_ascii_lowercase())),
            (None, Some(name)) => hash_of(&("name", name)),
            (None, None) => hash_of(&("input", input)),
        };
        let pages = || {
            let asked = domain.memory_backing.huge_pages.as_ref()?;
            let pool = hugepages::compare(domain, asked, context.host?).ok()?;
            Some((pool.page, pool.needed))
        };
        Some(GuestNeeds {
            identity,
            name: name.unwrap_or("a guest without a name").into(),
            images: images_of(context),
            pages: pages().unwrap_or((Bytes(0), 0)),
            aio: aio::threads(context)
                .map(|(disk, threads)| (number(disk), threads.saturating_mul(SLOTS_OF_THREAD))),
            growth: growth_of(context),
        })
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// One number for a file or device, under all names that the facts know.
fn identity_of(context: &Context<'_>, path: &str) -> u64 {
    match context.host.map(|host| host.identity(path)) {
        Some(Fact::Known(identity)) => hash_of(&identity),
        Some(Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) | None => hash_of(&path),
    }
}

/// The images of a guest, and what it does with them.
fn images_of(context: &Context<'_>) -> Box<[ImageUse]> {
    let mut found = Vec::new();
    for_each_image(context, |disk_number, depth, disk, path| {
        let is_top = depth == 0;
        found.push(ImageUse {
            identity: identity_of(context, path),
            disk: number(disk_number),
            depth: u16::try_from(depth).unwrap_or(u16::MAX),
            writes: is_top && disk.is_writable() && !disk.backend.is_transient,
            is_shareable: disk.backend.is_shareable,
        });
    });
    found.into()
}

/// Hands over all images of a guest with the number of their disk and of the images above them: the configured ones, and
/// those that image headers name.
pub(crate) fn for_each_image(
    context: &Context<'_>,
    mut add: impl FnMut(usize, usize, &Disk, &str),
) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            if let Some(path) = image.host_path().filter(|path| !path.is_empty()) {
                add(index, depth, disk, path);
            }
        }
    }
    if context.host.is_some() {
        for chain in chains(context) {
            // The first layer is the last configured image.
            for (nth, layer) in chain.layers.iter().enumerate().skip(1) {
                let depth = chain.written_above + nth;
                add(chain.index, depth, chain.disk, &layer.path);
            }
        }
    }
}

fn growth_of(context: &Context<'_>) -> Box<[Growth]> {
    let Some(facts) = context.host else {
        return Box::default();
    };
    let mut found = Vec::new();
    for (index, _, image, path) in host::kept(context) {
        let is_file = matches!(image.protocol, Protocol::File { .. }) && image.creation.is_none();
        if let Some(Ok(Some((filesystem, bytes)))) = is_file.then(|| space::growth(facts, path)) {
            found.push(Growth {
                identity: identity_of(context, path),
                filesystem: filesystem.id.as_str().into(),
                disk: number(index),
                bytes,
            });
        }
    }
    found.into()
}

/// The guests of one host, with the numbers of their inputs.
#[derive(Clone, Debug, Default)]
pub struct HostGuests {
    guests: Vec<(usize, GuestNeeds)>,
    seen: HashSet<u64>,
}

impl HostGuests {
    /// Adds a guest. The same guest in a second file is not counted again.
    pub fn add(&mut self, input: usize, needs: GuestNeeds) {
        if self.seen.insert(needs.identity) {
            self.guests.push((input, needs));
        }
    }

    /// The inputs whose guests conflict with others, in their order.
    pub fn conflicts(&self, host: Option<&HostIndex<'_>>) -> Vec<(usize, OtherGuests)> {
        let mut found: BTreeMap<usize, OtherGuests> = BTreeMap::new();
        self.find_shared_images(&mut found);
        if let Some(host) = host {
            self.find_shortages(host, &mut found);
        }
        found
            .into_iter()
            .map(|(guest, others)| (self.guests[guest].0, others))
            .collect()
    }

    fn find_shared_images(&self, found: &mut BTreeMap<usize, OtherGuests>) {
        let mut uses: Vec<(u64, usize, ImageUse)> = Vec::new();
        for (guest, (_, needs)) in self.guests.iter().enumerate() {
            uses.extend(
                needs
                    .images
                    .iter()
                    .map(|image| (image.identity, guest, *image)),
            );
        }
        uses.sort_unstable();
        for users in uses.chunk_by(|one, other| one.0 == other.0) {
            let users: Vec<(usize, ImageUse)> = users
                .iter()
                .map(|(_, guest, image)| (*guest, *image))
                .collect();
            if users.first().map(|user| user.0) != users.last().map(|user| user.0)
                && users.iter().any(|(_, image)| image.writes)
            {
                self.add_users(&users, found);
            }
        }
    }

    /// Adds the conflicts of the users of one image, which are sorted by guest.
    fn add_users(&self, users: &[(usize, ImageUse)], found: &mut BTreeMap<usize, OtherGuests>) {
        let guests_with = |has: fn(&ImageUse) -> bool| -> Vec<usize> {
            let found = users.iter().filter(|(_, image)| has(image));
            let mut guests: Vec<usize> = found.map(|(guest, _)| *guest).collect();
            guests.dedup();
            guests
        };
        let writers = guests_with(|image| image.writes);
        let overlays = guests_with(|image| image.depth > 0);
        let first_other = |guests: &[usize], own: usize| {
            let other = guests.iter().take(2).find(|guest| **guest != own).copied();
            let is_own = usize::from(guests.binary_search(&own).is_ok());
            other.map(|other| (other, guests.len() - 1 - is_own))
        };
        for (guest, image) in users {
            let sharing = if image.writes {
                let earlier = writers.first().filter(|first| **first < *guest);
                match (first_other(&overlays, *guest), earlier) {
                    (Some(other), _) => Some((Sharing::IsBacking, other)),
                    (None, Some(_)) if image.is_shareable => None,
                    (None, Some(first)) => Some((Sharing::BothWrite, (*first, 0))),
                    (None, None) => None,
                }
            } else if image.depth == 0 {
                first_other(&writers, *guest).map(|other| (Sharing::OtherWrites, other))
            } else {
                None
            };
            if let Some((sharing, (other, more))) = sharing {
                found.entry(*guest).or_default().images.push(SharedImage {
                    disk: image.disk as usize,
                    depth: usize::from(image.depth),
                    sharing,
                    guest: self.guests[other].1.name.to_string(),
                    more,
                });
            }
        }
    }

    fn find_shortages(&self, host: &HostIndex<'_>, found: &mut BTreeMap<usize, OtherGuests>) {
        let mut sums: BTreeMap<Key<'_>, Sum> = BTreeMap::new();
        let mut images = BTreeSet::new();
        for (guest, (_, needs)) in self.guests.iter().enumerate() {
            let mut own: BTreeMap<Key<'_>, (FieldPath, u64)> = BTreeMap::new();
            let (page, pages) = needs.pages;
            if pages > 0 {
                let at = FieldPath::Domain(DomainField::HugePages);
                own.insert(Key::Pages(page), (at, pages));
            }
            if let Some((disk, slots)) = needs.aio {
                let at = FieldPath::Disk(disk as usize, DiskField::Aio);
                own.insert(Key::Slots, (at, slots));
            }
            for growth in &needs.growth {
                if images.insert(growth.identity) {
                    let at = host::image_of(growth.disk as usize);
                    let sum = own.entry(Key::Space(&growth.filesystem)).or_insert((at, 0));
                    sum.1 = sum.1.saturating_add(growth.bytes);
                }
            }
            for (key, (at, amount)) in own {
                let sum = sums.entry(key).or_insert_with(|| Sum::of(host, &key));
                if let Some(shortage) = sum.add(at, amount, &key, host) {
                    found.entry(guest).or_default().shortages.push(shortage);
                }
            }
        }
    }
}

/// A resource of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Pages(Bytes),
    Slots,
    Space(&'a str),
}

/// The use of a resource by the guests so far.
struct Sum {
    guests: usize,
    needed: u64,
    /// `None` if it is not known, or if the shortage is reported already.
    available: Option<u64>,
}

impl Sum {
    fn of(host: &HostIndex<'_>, key: &Key<'_>) -> Self {
        let available = match key {
            Key::Pages(page) => hugepages::existing(host, *page),
            Key::Slots => AioSlots::of(host.facts(), 0)
                .ok()
                .flatten()
                .map(|it| it.most),
            Key::Space(id) => host
                .filesystem(id)
                .and_then(|filesystem| filesystem.free_bytes.value().copied()),
        };
        Sum {
            guests: 0,
            needed: 0,
            available,
        }
    }

    /// Adds the need of a guest. Returns the shortage with the first guest that is too much; the rules about one guest
    /// report a guest that is too much alone.
    fn add(
        &mut self,
        at: FieldPath,
        amount: u64,
        key: &Key<'_>,
        host: &HostIndex<'_>,
    ) -> Option<Shortage> {
        let available = self.available.filter(|available| amount <= *available)?;
        self.guests += 1;
        self.needed = self.needed.saturating_add(amount);
        if self.needed <= available {
            return None;
        }
        self.available = None;
        Some(Shortage {
            at,
            resource: match key {
                Key::Pages(page) => Resource::HugePages(*page),
                Key::Slots => Resource::AioSlots,
                Key::Space(id) => Resource::Space(point_of(host, id)),
            },
            guests: self.guests,
            needed: self.needed,
            available,
        })
    }
}

/// A mount point of a file system.
fn point_of(host: &HostIndex<'_>, filesystem: &str) -> String {
    let mut mounts = host.facts().mounts.iter();
    let mount = mounts.find(|mount| mount.fs.as_str() == Fact::Known(filesystem));
    mount.map_or_else(|| filesystem.to_owned(), |mount| mount.point.clone())
}
