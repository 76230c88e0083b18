//! Copy-on-write of new files on btrfs. It is decided before the cache mode, which depends on it.

use std::borrow::Cow;

use vmdisk_facts::{Fact, Facts, File, FileKind, FsKind, HostIndex};
use vmdisk_model::{AioMode, CacheMode};

use super::choice::{ChoiceSource, Chosen};
use crate::spec::{BackendSpec, DiskSpec, Spec};

/// Copy-on-write of the file of one disk.
pub(super) struct Nocow {
    /// True if the file is written in place.
    pub(super) chosen: Chosen<bool>,
    /// True if `qemu-img` has to make it so; false if a new file there is already.
    pub(super) is_set: bool,
}

/// Decides for each disk whether its new file is overwritten in place; `None` if it cannot be chosen.
pub(super) fn choose_all(spec: &Spec, index: &HostIndex<'_>) -> Vec<Option<Nocow>> {
    let disks = spec.disks.iter();
    disks.map(|disk| choose(index, disk)).collect()
}

fn choose(index: &HostIndex<'_>, spec: &DiskSpec) -> Option<Nocow> {
    let (path, asked) = new_file(spec)?;
    let asked_for = |value| Chosen {
        source: ChoiceSource::Asked,
        ..Chosen::by_default(value, "asked for")
    };
    let Some(filesystem) = index.filesystem_of(path).known() else {
        let value = asked?;
        return Some(Nocow {
            chosen: asked_for(value),
            is_set: value,
        });
    };
    if filesystem.kind != FsKind::Btrfs {
        asked?;
        return Some(Nocow {
            chosen: Chosen::by_fact(false, format!("{} has no such flag", filesystem.kind)),
            is_set: false,
        });
    }
    let is_mounted_so = index
        .mount_of(path)
        .and_then(|mount| mount.has_option("nodatacow"));
    if index.nocow(path) == Fact::Known(true) || is_mounted_so == Fact::Known(true) {
        let reason = "new files there are already written in place";
        return Some(Nocow {
            chosen: Chosen::by_fact(true, reason),
            is_set: false,
        });
    }
    let chosen = match asked {
        Some(value) => asked_for(value),
        None => choose_on_btrfs(
            spec,
            filesystem
                .btrfs
                .as_ref()
                .and_then(|btrfs| btrfs.data_profile.as_ref())
                .known(),
        ),
    };
    Some(Nocow {
        is_set: chosen.value == Some(true),
        chosen,
    })
}

fn choose_on_btrfs(spec: &DiskSpec, profiles: Option<&Vec<String>>) -> Chosen<bool> {
    let has_one_copy = profiles.is_some_and(|profiles| {
        let is_single = |profile: &String| profile == "single" || profile == "raid0";
        !profiles.is_empty() && profiles.iter().all(is_single)
    });
    let wants_direct = matches!(spec.cache, Some(CacheMode::None | CacheMode::Directsync))
        || spec.io == Some(AioMode::Native);
    if has_one_copy {
        let reason = "copy-on-write fragments an image (2 extents became 8541 in a trial), and with one copy of \
            the data a checksum detects damage but cannot repair it";
        Chosen::by_fact(true, reason).instead_of("btrfs-cow-image")
    } else if wants_direct {
        let reason =
            "direct writes are requested, and btrfs buffers writes to files with checksums";
        Chosen::by_fact(true, reason).instead_of("btrfs-dio-buffered")
    } else {
        let reason = "the data profile keeps copies that checksums can repair, which is worth more than speed";
        Chosen::by_fact(false, reason)
    }
}

/// The path of a file to create, and its copy-on-write setting in the spec.
fn new_file(spec: &DiskSpec) -> Option<(&str, Option<bool>)> {
    match &spec.backend {
        _ if !spec.backend.is_made() => None,
        BackendSpec::Raw(raw) => Some((&raw.path, raw.nocow)),
        BackendSpec::Qcow2(qcow2) => Some((&qcow2.path, qcow2.nocow)),
        _ => None,
    }
}

/// The facts as they will be when the files that lose copy-on-write exist.
pub(super) fn expected_facts<'a>(
    facts: &'a Facts,
    spec: &Spec,
    nocow: &[Option<Nocow>],
) -> Cow<'a, Facts> {
    let mut expected = Cow::Borrowed(facts);
    for (disk, nocow) in spec.disks.iter().zip(nocow) {
        if let (Some((path, _)), Some(Nocow { is_set: true, .. })) = (new_file(disk), nocow) {
            add_nocow_file(expected.to_mut(), path);
        }
    }
    expected
}

pub(super) fn add_nocow_file(facts: &mut Facts, path: &str) {
    let mount = HostIndex::new(facts).mount_of(path);
    let mount = mount.map(|mount| mount.id.clone());
    facts.files.retain(|file| file.path != path);
    facts.files.push(File {
        path: path.to_owned(),
        present: Fact::Known(true),
        kind: Fact::Known(FileKind::Regular),
        mount,
        nocow: Fact::Known(true),
        ..File::default()
    });
}
