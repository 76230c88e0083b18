//! Disks whose data moves to other storage.

use vmdisk_model::{Backend, Bytes, Disk, Domain, Format, Image, Protocol};

use super::change::{
    AFTER_GROWTH, ChangeKind, DefinitionChange, DownTime, LiveChange, LiveCopy, PlannedChange,
    PresentImage, PresentState, StorageCopy, empty,
};
use super::reclaim;
use crate::plan::Plan;
use crate::spec::{BackendSpec, Difference, Spec};
use crate::steps::{Condition, CopySource, Step, StepKind, copied};

/// The disks whose image is another one that steps make.
pub(super) struct Moves<'a> {
    want: &'a Plan,
    guest: &'a Domain,
    disks: Vec<Move>,
}

/// A disk that gets other storage.
struct Move {
    /// Its number in the plan.
    new: usize,
    /// Its number in the guest.
    old: usize,
    /// The number of the step that makes the new storage.
    step: usize,
    differences: Vec<Difference>,
}

impl<'a> Moves<'a> {
    /// Compares the planned images with those of the guest, whose disks are `named` as in the plan.
    pub(super) fn of(want: &'a Plan, guest: &'a Domain, named: &Domain) -> Self {
        let planned = want.domain.disks.iter().enumerate();
        let disks = planned.filter_map(|(new, disk)| {
            let target = &disk.frontend.target;
            let mut all = named.disks.iter();
            let old = all.position(|it| it.frontend.target == *target && target.is_some())?;
            let protocol = |disk: &Disk| Some(disk.backend.image()?.protocol.clone());
            let before = protocol(&guest.disks[old])?;
            // A seed image is made of its files.
            let is_made = |step: &Step| {
                let is_pool = matches!(step.kind, StepKind::ThinPool | StepKind::Seed);
                step.disk == new && !step.completes() && !is_pool
            };
            let step = want.steps.iter().position(is_made)?;
            (protocol(disk)? != before).then_some(Move {
                new,
                old,
                step,
                differences: Vec::new(),
            })
        });
        Moves {
            want,
            guest,
            disks: disks.collect(),
        }
    }

    /// True for a key that a planned disk gets with its storage.
    pub(super) fn takes(&self, new: usize, key: &str) -> bool {
        let kind = key.split('.').next().unwrap_or_default();
        BackendSpec::KINDS.contains(&kind) && self.disks.iter().any(|it| it.new == new)
    }

    /// Notes that a planned disk gets a key with its storage.
    pub(super) fn note(&mut self, new: usize, difference: Difference) {
        let mut disks = self.disks.iter_mut();
        if let Some(disk) = disks.find(|it| it.new == new) {
            disk.differences.push(difference);
        }
    }

    /// The changes.
    pub(super) fn changes(
        self,
        have: &PresentState<'_>,
        spec: &Spec,
    ) -> impl Iterator<Item = PlannedChange> {
        let Moves { want, guest, disks } = self;
        let nothing = PresentImage::default();
        disks.into_iter().filter_map(move |disk| {
            let present = have.images.get(&disk.old).unwrap_or(&nothing);
            let (new, old) = (&want.domain.disks[disk.new], &guest.disks[disk.old]);
            let (image, before) = (new.backend.image()?, old.backend.image()?);
            let made = &want.steps[disk.step];
            let size = made.resize.as_ref().map(|it| it.size);
            let place = disk.place(have, spec);
            let backend = backend(old, image);
            let refusal = refusal(&place, (image, before), present, (size, guest, made));
            let refusal = refusal.or_else(|| {
                let is_live = have.is_running;
                live_refusal(present.size, size, (old, &backend)).filter(|_| is_live)
            });
            let bytes = size.unwrap_or_default();
            let source = CopySource {
                path: &present.path,
                format: before.format.unwrap_or(Format::Raw),
                allocated: present.allocated.map_or(bytes, |it| it.min(bytes)),
            };
            let [copy, comparison] = copied(made, image, &source);
            let from = storage(before, &present.path);
            let mut what = format!("{from} to {}", made.makes());
            if !present.below.is_empty() {
                what += &format!(", with the data of {}", present.below.join(", "));
            }
            let takes = present.allocated.map_or_else(String::new, |takes| {
                format!(" and takes {}", takes.rounded())
            });
            let mut afterwards =
                format!("{from} stays{takes}: remove it when the guest works with the copy");
            if present.size.is_some_and(|had| had < bytes) {
                afterwards += &format!("; {AFTER_GROWTH}");
            }
            let change = PlannedChange {
                what,
                differences: disk.differences,
                bytes: size,
                refusal,
                afterwards: Some(afterwards),
                ..empty(ChangeKind::Move, new.name())
            };
            if have.is_running {
                let is_room = |it: &Condition| matches!(it, Condition::Room { .. });
                let room = copy.conditions.into_iter().find(is_room);
                let live = blockcopy(guest, (disk.old, disk.step), image, room);
                return Some(PlannedChange {
                    is_final: Some(
                        "the guest writes the copy, and the old storage stays as it was",
                    ),
                    live: Some(live),
                    ..change
                });
            }
            let copy = StorageCopy {
                step: disk.step,
                from: present.path.clone(),
                copy,
                comparison,
                kept: None,
            };
            if have.is_reclaiming {
                return Some(reclaim::copied(change, copy, present, (disk.old, old)));
            }
            Some(PlannedChange {
                down_time: DownTime::Off,
                copy: Some(copy),
                definition: DefinitionChange {
                    backend: Some((disk.old, backend)),
                    ..DefinitionChange::default()
                },
                ..change
            })
        })
    }
}

/// The copy of a disk of a guest that runs into storage that is there.
fn blockcopy(
    guest: &Domain,
    (disk, step): (usize, usize),
    image: &Image,
    room: Option<Condition>,
) -> LiveChange {
    let target = guest.disks[disk].name();
    let guest = guest.name.as_deref().unwrap_or_default();
    let format = image.format.unwrap_or(Format::Raw).as_str();
    let path = image.host_path().unwrap_or_default();
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut argv = words(&["virsh", "blockcopy", "--reuse-external", "--transient-job"]);
    argv.extend(words(&["--wait", "--verbose", "--pivot", "--dest", path]));
    argv.extend(words(&["--format", format]));
    if matches!(image.protocol, Protocol::HostDevice { .. }) {
        argv.extend(words(&["--blockdev"]));
    }
    argv.extend(words(&["--", guest, target]));
    LiveChange {
        argv,
        input: None,
        copy: Some(LiveCopy {
            disk,
            step,
            path: path.to_owned(),
            room,
            stop: words(&["virsh", "blockjob", "--abort", "--", guest, target]),
        }),
    }
}

/// Why the data is not copied while the guest runs.
fn live_refusal(
    had: Option<Bytes>,
    size: Option<Bytes>,
    (old, backend): (&Disk, &Backend),
) -> Option<String> {
    let is_same = Backend {
        source: old.backend.source.clone(),
        ..backend.clone()
    } == old.backend;
    let is_volume = |it: &Image| matches!(it.protocol, Protocol::Volume(_));
    let has_volume = [backend.image(), old.backend.image()]
        .into_iter()
        .flatten()
        .any(is_volume);
    match had {
        _ if has_volume => Some(
            "the guest runs, and libvirt copies no volume of a pool then: shut it off first".to_owned(),
        ),
        _ if !is_same => Some(
            "the guest runs, and keeps options that the new format does not have: shut it off first".to_owned(),
        ),
        Some(had) if size != Some(had) => Some(format!(
            "the guest runs, and the copy must have its size then: write `size: {had}`, and make it larger afterwards"
        )),
        _ => None,
    }
}

/// The state of the place to which a disk moves, from the spec and the host.
struct PlaceState {
    /// True if something of another size is there.
    is_other_size: bool,
    /// True if the spec fills it with something else.
    is_filled: bool,
}

impl Move {
    fn place(&self, have: &PresentState<'_>, spec: &Spec) -> PlaceState {
        PlaceState {
            is_other_size: have.sizes.contains_key(&self.step),
            is_filled: spec.disks[self.new].backend.new_file().source.is_some(),
        }
    }
}

/// The host side of a disk with another image.
fn backend(old: &Disk, image: &Image) -> Backend {
    let mut backend = Backend {
        source: Image {
            creation: None,
            ..image.clone()
        }
        .into(),
        ..old.backend.clone()
    };
    if image.format != Some(Format::Qcow2) {
        backend.discard_no_unref = None;
        backend.metadata_cache_size = None;
    }
    backend
}

/// The name of storage.
fn storage(image: &Image, path: &str) -> String {
    match &image.protocol {
        Protocol::Volume(volume) => format!("{}/{}", volume.pool, volume.volume),
        _ if !path.is_empty() => path.to_owned(),
        _ => image.host_path().unwrap_or("its storage").to_owned(),
    }
}

/// Why the data is not copied.
fn refusal(
    place: &PlaceState,
    (image, before): (&Image, &Image),
    present: &PresentImage,
    (size, guest, made): (Option<Bytes>, &Domain, &Step),
) -> Option<String> {
    let to = made.makes();
    let is_plain = |image: &Image| {
        let is_format = matches!(image.format, Some(Format::Raw | Format::Qcow2));
        let is_here = matches!(
            image.protocol,
            Protocol::File { .. } | Protocol::HostDevice { .. } | Protocol::Volume(_)
        );
        is_format && is_here && image.encryption.is_none() && image.slice.is_none()
    };
    let is_it = |disk: &&Disk| {
        let own = disk.backend.image().map(|image| &image.protocol);
        own == Some(&image.protocol)
    };
    if let Some(other) = guest.disks.iter().find(is_it) {
        return Some(format!("{to} is the disk {} of this guest", other.name()));
    }
    if !is_plain(before) || !is_plain(image) {
        return Some(
            "only raw and qcow2 images in files and on devices of this host, without encryption, are copied".to_owned(),
        );
    }
    if place.is_filled {
        return Some(format!(
            "the spec fills {to} with its `source`: remove that key"
        ));
    }
    if image.chain().nth(1).is_some() {
        return Some(format!(
            "a copy has all data in itself, and the spec has an image below {to}: remove `backing`"
        ));
    }
    if place.is_other_size {
        return Some(format!(
            "{to} exists with another size, and nothing is overwritten: remove it, or write another place"
        ));
    }
    if let Some(why) = present.obstacles.first() {
        return Some(why.clone());
    }
    match (present.size, size) {
        (Some(had), Some(size)) if had <= size => None,
        (Some(had), Some(size)) => Some(format!(
            "{} has {had}, and the plan has {size}: what the guest wrote beyond would be lost; write `size: {had}` or more",
            present.path
        )),
        _ => {
            let name = storage(before, &present.path);
            Some(format!("the size of {name} is not known"))
        }
    }
}
