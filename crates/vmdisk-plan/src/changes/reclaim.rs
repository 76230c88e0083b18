//! Space that the guest does not use any more.

use vmdisk_model::{Bytes, Disk, Domain};

use super::change::{
    ChangeKind, DefinitionChange, DownTime, KeptImage, LiveChange, PlannedChange, PresentImage,
    PresentState, StorageCopy, empty,
};

/// The change by which a guest that runs discards what its file systems do not use.
pub(super) fn trimmed(have: &PresentState<'_>, guest: &Domain) -> PlannedChange {
    let images = have.images.iter();
    let images: Vec<(&str, &PresentImage)> = images
        .filter_map(|(nth, image)| Some((guest.disks.get(*nth)?.name(), image)))
        .collect();
    let usages = images.iter();
    let usages: Vec<String> = usages
        .map(|(disk, image)| format!("{disk}: {}", usage(image)))
        .collect();
    let kept = images.iter();
    let kept: Vec<String> = kept
        .filter_map(|(disk, image)| keeps(disk, image))
        .collect();
    let parts = images
        .iter()
        .filter_map(|(disk, image)| keeps_parts(disk, image));
    let parts: Vec<String> = kept.iter().cloned().chain(parts).collect();
    let refusal = match images.is_empty() {
        true => Some("the guest has no raw or qcow2 image on this host".to_owned()),
        false => (kept.len() == images.len()).then(|| kept.join("; ")),
    };
    let name = guest.name.as_deref().unwrap_or_default();
    let argv = ["virsh", "domfstrim", "--", name].map(str::to_owned);
    PlannedChange {
        what: usages.join("; "),
        is_final: Some("the guest does not use what it discards"),
        afterwards: (refusal.is_none() && !parts.is_empty()).then(|| parts.join("; ")),
        refusal,
        live: Some(LiveChange {
            argv: argv.to_vec(),
            input: None,
            copy: None,
        }),
        ..empty(ChangeKind::Reclaim, "")
    }
}

/// The change by which a copy without holes takes the name of its image.
pub(super) fn copied(
    change: PlannedChange,
    copy: StorageCopy,
    present: &PresentImage,
    (nth, disk): (usize, &Disk),
) -> PlannedChange {
    let old = format!("{}.old", present.path);
    let check = ["qemu-img", "info", "-f", copy.format(), "--", &old].map(str::to_owned);
    let takes = present.allocated.unwrap_or_default().rounded();
    let afterwards = format!(
        "{old} is the old image, and takes {takes}: remove it when the guest works with the copy"
    );
    let kept = keeps(disk.name(), present);
    PlannedChange {
        kind: ChangeKind::Reclaim,
        what: usage(present),
        differences: Vec::new(),
        down_time: DownTime::Off,
        afterwards: Some(
            [vec![afterwards], kept.into_iter().collect()]
                .concat()
                .join("; "),
        ),
        copy: Some(StorageCopy {
            kept: Some(KeptImage {
                path: old,
                check: check.to_vec(),
            }),
            ..copy
        }),
        // Its image is the one of that name as before.
        definition: DefinitionChange {
            backend: Some((nth, disk.backend.clone())),
            ..DefinitionChange::default()
        },
        ..change
    }
}

fn keeps(disk: &str, image: &PresentImage) -> Option<String> {
    let why = image.keeps_discards.as_ref()?;
    Some(format!("{disk} keeps what the guest discards: {why}"))
}

/// Which discards of the guest free nothing.
fn keeps_parts(disk: &str, image: &PresentImage) -> Option<String> {
    let cluster = image.cluster.filter(|_| image.keeps_discards.is_none())?;
    Some(format!(
        "{disk} keeps what the guest discards in pieces below the cluster size, {cluster}: with `discard-granularity: {}` \
         (libvirt 9.8, `--change options`) it discards whole clusters",
        cluster.0
    ))
}

/// What is known of the space that an image takes. What the guest uses is not seen from outside.
fn usage(image: &PresentImage) -> String {
    let words = |bytes: Option<Bytes>| bytes.map_or("unknown".to_owned(), Bytes::rounded);
    format!(
        "{} takes {} of {}, with {} of data that the guest may use",
        image.path,
        words(image.allocated),
        words(image.size),
        words(image.data)
    )
}
