//! What a disk has of the things that are wanted, by which mechanism.

use vmdisk_facts::FsKind;
use vmdisk_plan::Plan;

use super::intent::{StorageForm, Want};
use super::places::StoragePlace;
use crate::trace::{IoPath, RequestKind, RequestOutcome};

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
    let kind = place.filesystem.map(|filesystem| &filesystem.kind);
    match want {
        Want::Snapshots => snapshots(form, kind),
        Want::Thin => thin(form),
        Want::Clones => match form {
            StorageForm::ThinVolume => given("thin snapshots share the chunks of their origin"),
            StorageForm::Volume | StorageForm::WholeDisk => Mechanism::AtPrice(
                "as the base of qcow2 images elsewhere, which must not change then".to_owned(),
            ),
            _ => given("as the base of qcow2 images, which must not change then"),
        },
        Want::Migration => migration(kind, plan),
        Want::Trim => trim(path),
        Want::Checksums => checksums(place, plan),
    }
}

fn snapshots(form: StorageForm, kind: Option<&FsKind>) -> Mechanism {
    match form {
        _ if form.is_qcow2() => given("qcow2 keeps them in the image"),
        StorageForm::ThinVolume => given("thin snapshots in the same pool"),
        StorageForm::Volume => Mechanism::AtPrice(
            "a snapshot of a thick volume copies each block before its first overwrite".to_owned(),
        ),
        StorageForm::WholeDisk => missing("a whole disk has no snapshots"),
        _ if kind == Some(&FsKind::Zfs) => given("snapshots of the ZFS dataset"),
        _ => missing("a raw file has none; an external snapshot makes the disk a qcow2 overlay"),
    }
}

fn thin(form: StorageForm) -> Mechanism {
    match form {
        StorageForm::Raw | StorageForm::RawCopied => given("the file is sparse"),
        StorageForm::Qcow2 | StorageForm::Qcow2Metadata | StorageForm::Qcow2Copied => {
            given("clusters take space when they are written")
        }
        StorageForm::ThinVolume => given("chunks of the pool are taken when they are written"),
        _ => missing("all space is taken when the disk is made"),
    }
}

/// libvirt migrates without a copy if both hosts see the storage and the cache mode bypasses their page caches.
fn migration(kind: Option<&FsKind>, plan: &Plan) -> Mechanism {
    let is_shared = match kind {
        Some(FsKind::Nfs | FsKind::Nfs4 | FsKind::Ceph | FsKind::Gfs2 | FsKind::Ocfs2) => true,
        Some(FsKind::Fuse(kind)) if kind == "glusterfs" => true,
        Some(FsKind::Cifs | FsKind::Fuse(_) | FsKind::Other(_)) => {
            return Mechanism::Unknown("it is not known whether other hosts see it".to_owned());
        }
        _ => false,
    };
    let backend = &plan.domain.disks[0].backend;
    match is_shared {
        false => missing("only this host sees the storage"),
        true if backend.is_direct() => given("other hosts see the storage, and no host caches it"),
        true => missing(format!(
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
            RequestOutcome::Unknown => return Mechanism::Unknown(text.clone()),
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
    match &filesystem.kind {
        FsKind::Zfs => given("ZFS has a checksum of each block"),
        FsKind::Bcachefs => given("bcachefs has a checksum of each extent"),
        FsKind::Btrfs => {
            let is_nocow =
                |choice: &vmdisk_plan::Choice| choice.option == "nocow" && choice.value == "true";
            match plan.choices.iter().any(is_nocow) {
                true => missing("files that btrfs writes in place have no checksums"),
                false => given("btrfs has a checksum of each block"),
            }
        }
        kind => missing(format!("{kind} has no checksums of data")),
    }
}
