//! What a disk has of the things that are wanted, by which mechanism.

use vmdisk_facts::FsKind;
use vmdisk_facts::verdict::attachment::Attachment;
use vmdisk_facts::verdict::redundancy::Redundancy;
use vmdisk_plan::Plan;

use super::intent::{StorageForm, Want};
use super::places::StoragePlace;
use crate::trace::{IoPath, RequestKind, RequestOutcome, StatementBasis};

/// What a disk has of something, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// It has it, by this mechanism.
    Given(String),
    /// It has it, at this price.
    AtPrice(String),
    /// A fact is missing.
    Unknown(String),
    /// It does not have it, for this reason.
    Missing(String),
}

impl Mechanism {
    /// The mechanism, the price, the missing fact or the reason.
    pub fn text(&self) -> &str {
        match self {
            Mechanism::Given(text)
            | Mechanism::AtPrice(text)
            | Mechanism::Unknown(text)
            | Mechanism::Missing(text) => text,
        }
    }

    /// `yes`, `at a price`, `unknown` or `no`.
    pub const fn word(&self) -> &'static str {
        match self {
            Mechanism::Given(_) => "yes",
            Mechanism::AtPrice(_) => "at a price",
            Mechanism::Unknown(_) => "unknown",
            Mechanism::Missing(_) => "no",
        }
    }
}

fn given(text: &str) -> Mechanism {
    Mechanism::Given(text.to_owned())
}

fn missing(text: impl Into<String>) -> Mechanism {
    Mechanism::Missing(text.into())
}

/// What a form of a place has of something.
pub(super) fn of(
    want: Want,
    place: &StoragePlace<'_>,
    form: StorageForm,
    plan: &Plan,
    path: &IoPath,
) -> Mechanism {
    match want {
        Want::Snapshots => snapshots(place, form),
        Want::Thin => thin(place, form),
        Want::Clones => match form {
            StorageForm::ZfsVolume => given("clones of a ZFS snapshot share its blocks"),
            StorageForm::ThinVolume => given("thin snapshots share the chunks of their origin"),
            StorageForm::Volume | StorageForm::WholeDisk => Mechanism::AtPrice(
                "as the base of qcow2 images elsewhere, which must not change then".to_owned(),
            ),
            _ => given("as the base of qcow2 images, which must not change then"),
        },
        Want::Migration => match is_shared(place, form) {
            Mechanism::Given(text) => migration(text, plan),
            other => other,
        },
        Want::Trim => trim(path),
        Want::Checksums if form == StorageForm::ZfsVolume => {
            given("zfs has a checksum of each block")
        }
        Want::Checksums => checksums(place, plan),
        Want::Redundancy => redundancy(place),
    }
}

fn redundancy(place: &StoragePlace<'_>) -> Mechanism {
    let reason = place.redundancy.reason.clone();
    match place.redundancy.redundancy {
        Redundancy::Kept => Mechanism::Given(reason),
        Redundancy::Unknown => Mechanism::Unknown(reason),
        Redundancy::Single | Redundancy::Degraded => Mechanism::Missing(reason),
    }
}

/// True if an overwrite goes to new blocks.
fn is_copied(place: &StoragePlace<'_>, plan: &Plan) -> bool {
    let is_nocow =
        |choice: &vmdisk_plan::Choice| choice.option == "nocow" && choice.value == "true";
    let copies = place
        .abilities
        .is_some_and(|it| it.copies_on_write == Some(true));
    copies && !plan.choices.iter().any(is_nocow)
}

/// Why space that a form takes at the beginning is taken in vain.
pub(super) fn in_vain(place: &StoragePlace<'_>, form: StorageForm, plan: &Plan) -> Option<String> {
    let kind = &place.filesystem?.kind;
    if !is_copied(place, plan) {
        return None;
    }
    let reserves = place.abilities.is_some_and(|it| it.reserves == Some(true));
    match () {
        () if form.is_written() => Some(format!(
            "{kind} is copy-on-write: each write takes new blocks, however the file was filled"
        )),
        () if form.is_reserved() && !reserves => {
            Some(format!("{kind} reserves no space for a file"))
        }
        () => None,
    }
}

fn snapshots(place: &StoragePlace<'_>, form: StorageForm) -> Mechanism {
    let shares = place.abilities.and_then(|it| it.shares_blocks);
    let is_on_zfs = place.filesystem.is_some_and(|it| it.kind == FsKind::Zfs);
    match form {
        _ if form.is_qcow2() => given("qcow2 keeps them in the image"),
        StorageForm::ThinVolume => given("thin snapshots in the same pool"),
        StorageForm::ZfsVolume => given("snapshots of the ZFS volume"),
        StorageForm::Volume => Mechanism::AtPrice(
            "a snapshot of a thick volume copies each block before its first overwrite".to_owned(),
        ),
        StorageForm::WholeDisk => missing("a whole disk has no snapshots"),
        _ if is_on_zfs => given("snapshots of the ZFS dataset"),
        _ if shares == Some(true) => Mechanism::AtPrice(
            "copies that share blocks (reflinks), while the guest is shut off".to_owned(),
        ),
        _ => missing("a raw file has none; an external snapshot makes the disk a qcow2 overlay"),
    }
}

fn thin(place: &StoragePlace<'_>, form: StorageForm) -> Mechanism {
    let has_holes = place.abilities.map(|it| it.has_holes);
    let kind = place.filesystem.map(|it| it.kind.to_string());
    let kind = kind.unwrap_or_default();
    match (form, has_holes) {
        (StorageForm::Raw | StorageForm::RawCopied | StorageForm::Qcow2Metadata, Some(None)) => {
            Mechanism::Unknown(format!("whether files on {kind} have holes is not known"))
        }
        (StorageForm::Raw | StorageForm::Qcow2Metadata, Some(Some(false))) => {
            missing(format!("files on {kind} have no holes"))
        }
        (StorageForm::Raw | StorageForm::RawCopied, _) => given("the file is sparse"),
        (StorageForm::Qcow2 | StorageForm::Qcow2Metadata | StorageForm::Qcow2Copied, _) => {
            given("clusters take space when they are written")
        }
        (StorageForm::ThinVolume, _) => given("chunks of the pool are taken when they are written"),
        _ => missing("all space is taken when the disk is made"),
    }
}

/// Whether other hosts see the storage.
fn is_shared(place: &StoragePlace<'_>, form: StorageForm) -> Mechanism {
    let text = "other hosts see the storage";
    match place.filesystem.map(|filesystem| &filesystem.kind) {
        Some(FsKind::Nfs | FsKind::Nfs4 | FsKind::Ceph | FsKind::Gfs2 | FsKind::Ocfs2) => {
            return given(text);
        }
        Some(FsKind::Fuse(kind)) if kind == "glusterfs" => return given(text),
        Some(FsKind::Cifs | FsKind::Fuse(_) | FsKind::Other(_)) if place.drives.is_empty() => {
            return Mechanism::Unknown("it is not known whether other hosts see it".to_owned());
        }
        Some(FsKind::Plan9 | FsKind::Virtiofs) => {
            return Mechanism::Unknown(
                "the host above decides whether other hosts see it".to_owned(),
            );
        }
        Some(kind) if kind.is_volatile() => return missing("only this host sees its memory"),
        Some(kind) => return missing(format!("only one host may mount {kind}")),
        None if form == StorageForm::ZfsVolume => {
            return missing("only one host may import a ZFS pool");
        }
        None if form == StorageForm::ThinVolume => {
            return missing("only one host may use a thin pool");
        }
        None => {}
    }
    let mut unknown = None;
    for drive in &place.drives {
        let name = drive.name();
        match Attachment::of(drive) {
            Ok(Attachment::Inside | Attachment::Removable | Attachment::Controller) => {
                return missing(format!("only this host sees {name}"));
            }
            Ok(Attachment::Network) => {
                let why = format!("whether other hosts see {name} is not known");
                unknown = unknown.or(Some(why));
            }
            Ok(Attachment::Hypervisor) => {
                let why = format!("the hypervisor decides whether other hosts see {name}");
                unknown = unknown.or(Some(why));
            }
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    let unknown = unknown.unwrap_or_else(|| "the facts do not show the drives".to_owned());
    Mechanism::Unknown(unknown)
}

/// libvirt migrates without a copy if both hosts see the storage and the cache mode bypasses their page caches.
fn migration(is_shared: String, plan: &Plan) -> Mechanism {
    let backend = &plan.domain.disks[0].backend;
    match backend.is_direct() {
        true => Mechanism::Given(format!("{is_shared}, and no host caches it")),
        false => missing(format!(
            "libvirt refuses it with cache mode {}",
            backend.effective_cache().as_str()
        )),
    }
}

/// The first step at which the guest's discards end.
fn trim(path: &IoPath) -> Mechanism {
    for step in &path.steps {
        let effect = step.effect(RequestKind::Discard);
        let text = &effect.statement.text;
        match effect.outcome {
            RequestOutcome::Freed => return given(text),
            RequestOutcome::Honoured => break,
            RequestOutcome::Dropped | RequestOutcome::Refused | RequestOutcome::Absent => {
                return missing(text);
            }
            RequestOutcome::Unknown => {
                return Mechanism::Unknown(match &effect.statement.basis {
                    StatementBasis::Missing { what, why, .. } => format!("{what}: {why}"),
                    _ => text.clone(),
                });
            }
            RequestOutcome::Passed
            | RequestOutcome::Split
            | RequestOutcome::Copied
            | RequestOutcome::Cached
            | RequestOutcome::Blocking => {}
        }
    }
    given("discards reach the drives")
}

fn checksums(place: &StoragePlace<'_>, plan: &Plan) -> Mechanism {
    let Some(filesystem) = place.filesystem else {
        return missing("the block layer has no checksums of data");
    };
    let kind = &filesystem.kind;
    match place.abilities.and_then(|it| it.has_checksums) {
        Some(true) if is_copied(place, plan) => {
            Mechanism::Given(format!("{kind} has a checksum of each block"))
        }
        Some(true) => missing(format!(
            "files that {kind} writes in place have no checksums"
        )),
        Some(false) => missing(format!("{kind} has no checksums of data")),
        None => Mechanism::Unknown(format!("whether {kind} has checksums of data is not known")),
    }
}
