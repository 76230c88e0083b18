//! Advice about new disks, on every recorded host.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use vmdisk::advise::{
    DiskLoad, StorageAdvice, StorageCandidate, StorageForm, StorageIntent, Want, advise,
};
use vmdisk::facts::{BlockDevice, BlockKind, Directory, Fact, Filesystem, FsKind, Mount};
use vmdisk::model::Bytes;
use vmdisk::plan::{Spec, facts_after, plan};
use vmdisk::trace::Survival;
use vmdisk::{Diagnostic, Facts, Host, LintOptions, Severity, Target, lint, read, write};

use crate::fixtures::{facts_of, files};

fn advice(facts: &Facts, intent: &StorageIntent) -> StorageAdvice {
    let options = Host::new(facts.clone()).options();
    advise(intent, &options)
}

fn rules(candidate: &StorageCandidate) -> BTreeSet<&'static str> {
    let counted = candidate.findings.iter();
    let counted = counted.filter(|it| it.severity >= Severity::Advice);
    counted.map(|it| it.rule.name).collect()
}

fn hosts() -> Vec<(PathBuf, Facts)> {
    let names = ["facts", "facts-lab", "advise"];
    let paths = names.iter().flat_map(|name| files(name, ".json"));
    let articles = files("articles", "").into_iter();
    let articles = articles.map(|folder| folder.join("facts.json"));
    let paths = paths.chain(articles.filter(|path| path.exists()));
    paths.map(|path| (path.clone(), facts_of(&path))).collect()
}

fn intents() -> Vec<StorageIntent> {
    let mut wants = vec![
        vec![],
        vec![Want::Thin, Want::Snapshots],
        vec![Want::Trim, Want::Thin],
    ];
    wants.extend(Want::ALL.iter().map(|want| vec![*want]));
    let mut intents = Vec::new();
    for (nth, wants) in wants.into_iter().enumerate() {
        for size in [1, 200] {
            let mut intent = StorageIntent::new(Bytes::gib(size))
                .with_wants(wants.iter().copied())
                .with_load(DiskLoad::ALL[nth % DiskLoad::ALL.len()]);
            intent.is_scratch = nth % 3 == 2;
            intent.guests = [1, 1, 5][nth % 3];
            intents.push(intent);
        }
    }
    intents
}

/// What counts before the form of a disk, the best first: safety, room, wishes, lasting warnings and the medium.
fn worth(intent: &StorageIntent, candidate: &StorageCandidate) -> [usize; 9] {
    let between = |is_good: Option<bool>| match is_good {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    let lasting = candidate.findings.iter();
    let warned = lasting.filter(|it| !it.is_about_host && it.severity == Severity::Warning);
    let errors = candidate.findings.iter();
    let errors = errors.filter(|it| it.severity == Severity::Error);
    let wishes = |word| {
        let of_wish = intent.wants.iter().map(|want| candidate.mechanism(*want));
        of_wish.filter(|it| it.word() == word).count()
    };
    let whole = intent.size.0 * u64::from(intent.guests);
    let free = candidate.free.map(|free| free.0 >= whole);
    let is_waited_for = intent.load != DiskLoad::Backup;
    [
        errors.count(),
        candidate.loss.flushed as usize,
        candidate.redundancy.redundancy as usize,
        between(candidate.is_removable.map(|it| !it)),
        between(free),
        wishes("unknown"),
        wishes("at a price"),
        warned.count(),
        between(candidate.is_fast) * usize::from(is_waited_for),
    ]
}

/// Hosts without those that differ from another one only in the kernel or in who collected the facts.
fn some_hosts() -> impl Iterator<Item = (PathBuf, Facts)> {
    let is_like_another = |path: &Path| {
        let name = path.to_string_lossy();
        name.ends_with(".nobody.json") || name.contains(".6.1.")
    };
    hosts()
        .into_iter()
        .filter(move |(path, _)| !is_like_another(path))
}

/// Some of them, without scratch disks.
fn some_intents() -> impl Iterator<Item = StorageIntent> {
    let intents = intents().into_iter().filter(|it| !it.is_scratch);
    intents.step_by(5)
}

#[test]
fn no_candidate_of_the_same_worth_avoids_a_finding_of_the_recommended_one() {
    let (mut recommended, mut refused) = (0, 0);
    for (path, facts) in hosts() {
        for intent in intents() {
            let name = format!("{}: {intent:?}", path.display());
            let advice = advice(&facts, &intent);
            let Some(best) = advice.fitting.first() else {
                assert!(
                    !advice.excluded.is_empty() || facts.dirs.is_empty(),
                    "{name}: nothing fits, and nothing says why"
                );
                refused += 1;
                continue;
            };
            recommended += 1;
            assert_eq!(advice.fitting.len(), advice.reasons.len(), "{name}");
            for other in &advice.fitting {
                if !intent.is_scratch {
                    assert!(worth(&intent, best) <= worth(&intent, other), "{name}");
                }
                let is_todo = |it: &&Diagnostic| it.is_about_host && other.form != best.form;
                let [of_best, of_other] = [best, other].map(|it| {
                    let counted = it.findings.iter().filter(|it| !is_todo(it));
                    let counted = counted.filter(|it| it.severity >= Severity::Advice);
                    counted.map(|it| it.rule.name).collect::<BTreeSet<_>>()
                });
                let is_equal = worth(&intent, other) == worth(&intent, best);
                let is_better = of_other.is_subset(&of_best) && of_other != of_best;
                assert!(
                    !is_equal || !is_better,
                    "{name}: {} {}",
                    other.place,
                    other.form
                );
                let room = other.free.or(other.most_free);
                let has_room = room.is_none_or(|room| room >= intent.size);
                assert!(has_room || intent.wants.contains(&Want::Thin), "{name}");
            }
            if !intent.is_scratch {
                assert_ne!(best.loss.flushed, Survival::Lost, "{name}");
            }
            is_ready(&name, best, &facts, intent.is_scratch);
        }
    }
    println!("{recommended} recommended, {refused} refused");
    assert!(recommended > 300 && refused > 50, "{recommended} {refused}");
}

/// Place and form of the recommended disk.
fn answer(facts: &Facts, intent: &StorageIntent) -> Option<(String, StorageForm)> {
    let advice = advice(facts, intent);
    let best = advice.fitting.first();
    best.map(|best| (best.place.clone(), best.form))
}

#[test]
fn a_fault_that_the_host_can_end_moves_no_answer_to_a_worse_place() {
    let mut cases = 0;
    let faults: [fn(&mut BlockDevice); 2] = [
        |drive| drive.queue.scheduler = Fact::Known("bfq".to_owned()),
        |drive| {
            if let Fact::Known(lvm) = &mut drive.lvm {
                lvm.autoextend_threshold = Fact::Known(100);
            }
        },
    ];
    for (path, facts) in some_hosts() {
        for intent in some_intents() {
            let before = advice(&facts, &intent);
            let Some(before) = before.fitting.first() else {
                continue;
            };
            for fault in faults {
                for nth in 0..facts.blockdevs.len() {
                    let mut faulty = facts.clone();
                    fault(&mut faulty.blockdevs[nth]);
                    if faulty.blockdevs[nth] == facts.blockdevs[nth] {
                        continue;
                    }
                    let after = advice(&faulty, &intent);
                    let after = &after.fitting[0];
                    let [of_before, of_after] = [before, after].map(|it| worth(&intent, it));
                    assert!(of_after <= of_before, "{}: {intent:?}", path.display());
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 500, "{cases}");
}

#[test]
fn another_order_of_the_facts_and_irrelevant_facts_change_no_answer() {
    for (path, facts) in some_hosts() {
        let mut other = facts.clone();
        other.dirs.reverse();
        other.files.reverse();
        other.filesystems.reverse();
        other.blockdevs.reverse();
        for device in &mut other.blockdevs {
            device.by_id = device
                .by_id
                .clone()
                .map(|names| names.into_iter().rev().collect());
        }
        other.cpu.count = Fact::Known(3);
        other.blockdevs.push(BlockDevice {
            id: "optical".to_owned(),
            kind: BlockKind::Cdrom,
            ..BlockDevice::default()
        });
        for intent in some_intents() {
            let [one, other] = [&facts, &other].map(|facts| {
                let advice = advice(facts, &intent);
                let fitting = advice.fitting.into_iter().zip(advice.reasons);
                let fitting = fitting.map(|(it, why)| (it.place, it.form, it.redundancy, why));
                (fitting.collect::<Vec<_>>(), advice.excluded)
            });
            assert_eq!(one, other, "{}: {intent:?}", path.display());
        }
    }
}

#[test]
fn more_space_loses_nothing_and_a_larger_disk_does_not_come_back() {
    for (path, facts) in some_hosts() {
        for intent in some_intents() {
            let name = format!("{}: {intent:?}", path.display());
            let (mut left, mut last) = (BTreeSet::new(), None);
            for size in [1, 20, 90, 400, 1500, 30_000] {
                let mut intent = intent.clone();
                intent.size = Bytes::gib(size);
                let best = answer(&facts, &intent).map(|(place, _)| place);
                // A whole disk is left out where most of it would be wasted.
                if best
                    .as_ref()
                    .is_some_and(|place| place.starts_with("/dev/"))
                {
                    break;
                }
                assert!(!left.contains(&best), "{name}: {best:?}");
                if last.as_ref().is_some_and(|last| *last != best) {
                    left.insert(last.take().unwrap());
                }
                last = Some(best.clone());
                let Some(best) = best else {
                    continue;
                };
                let mut more = facts.clone();
                let index = Host::new(facts.clone());
                let filesystem = index.index().filesystem_of(&best).known();
                let Some(filesystem) = filesystem.map(|it| it.id.clone()) else {
                    continue;
                };
                for it in more.filesystems.iter_mut().filter(|it| it.id == filesystem) {
                    it.free_bytes = it.free_bytes.clone().map(|free| free * 2);
                }
                let now = answer(&more, &intent).map(|(place, _)| place);
                assert_eq!(now, Some(best), "{name}");
            }
        }
    }
}

/// A host, the size in GiB, the load and the wishes, and the answer.
type ReviewCase = (
    &'static str,
    u64,
    DiskLoad,
    &'static [Want],
    Option<(&'static str, StorageForm)>,
);

#[test]
fn the_hosts_of_a_review_have_the_answer_of_an_engineer() {
    use StorageForm as Form;
    use Want::{Migration, Redundancy, Snapshots, Thin, Trim};
    let images = "/var/lib/libvirt/images";
    let cases: [ReviewCase; 18] = [
        (
            "nvme-bfq-and-hdd",
            4000,
            DiskLoad::Mixed,
            &[Thin],
            Some(("/backup/vm", Form::Raw)),
        ),
        (
            "nvme-bfq-and-usb-ntfs",
            300,
            DiskLoad::Database,
            &[],
            Some((images, Form::RawFull)),
        ),
        (
            "nvme-bfq-and-hdd",
            100,
            DiskLoad::Database,
            &[],
            Some((images, Form::RawFull)),
        ),
        (
            "btrfs-raid1-nvme-and-hdd-xfs",
            100,
            DiskLoad::Database,
            &[],
            Some((images, Form::RawFalloc)),
        ),
        (
            "qcow2-nvme-vs-thin-hdd",
            100,
            DiskLoad::Mixed,
            &[Snapshots, Thin],
            Some((images, Form::Qcow2Metadata)),
        ),
        (
            "md-degraded-ssd-vs-hdd",
            100,
            DiskLoad::Mixed,
            &[],
            Some(("/old/vm", Form::Raw)),
        ),
        ("vg-full", 20 << 10, DiskLoad::Mixed, &[], None),
        ("vg-full", 1 << 10, DiskLoad::Database, &[], None),
        (
            "vg-full",
            2,
            DiskLoad::Database,
            &[],
            Some((images, Form::RawFull)),
        ),
        (
            "zfs-proxmox",
            100,
            DiskLoad::Database,
            &[],
            Some(("/rpool/data/vm", Form::Raw)),
        ),
        ("exfat", 40, DiskLoad::Mixed, &[Thin, Trim], None),
        (
            "exfat",
            40,
            DiskLoad::Mixed,
            &[Thin],
            Some(("/media/usb/vm", Form::Qcow2)),
        ),
        (
            "multipath-lun",
            150,
            DiskLoad::Mixed,
            &[Migration],
            Some(("/dev/disk/by-id/dm-uuid-mpath-36001", Form::WholeDisk)),
        ),
        (
            "multipath-lun",
            150,
            DiskLoad::Mixed,
            &[Thin, Migration],
            None,
        ),
        (
            "md-raid1-nvme-vs-single-nvme",
            300,
            DiskLoad::Database,
            &[],
            Some(("/srv/vm", Form::RawFull)),
        ),
        (
            "md-raid1-nvme-vs-single-nvme",
            300,
            DiskLoad::Mixed,
            &[Redundancy],
            Some(("/srv/vm", Form::Raw)),
        ),
        (
            "nvme-bfq-and-hdd",
            100,
            DiskLoad::Mixed,
            &[Redundancy],
            None,
        ),
        ("tie", 100, DiskLoad::Mixed, &[], Some(("/a/vm", Form::Raw))),
    ];
    for (host, size, load, wants, expected) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../fixtures/advise/{host}.json"));
        let intent = StorageIntent::new(Bytes::gib(size));
        let intent = intent.with_load(load).with_wants(wants.iter().copied());
        let found = answer(&facts_of(&path), &intent);
        let found = found.as_ref().map(|(place, form)| (place.as_str(), *form));
        assert_eq!(found, expected, "{host}: {intent:?}");
    }
}

#[test]
fn the_number_of_guests_needs_room_and_backups_need_no_fast_medium() {
    use DiskLoad::{Backup, Ci, Mixed};
    let (fast, large) = (
        Some("/var/lib/libvirt/images".to_owned()),
        Some("/backup/vm".to_owned()),
    );
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/advise/nvme-bfq-and-hdd.json");
    let facts = facts_of(&path);
    let cases = [
        (100, 1, Mixed, false, &fast),
        (100, 2, Mixed, false, &fast),
        (100, 10, Mixed, false, &large),
        (100, 50, Mixed, false, &None),
        (100, 50, Mixed, true, &large),
        (100, 1, Backup, false, &large),
        (20, 10, Ci, false, &fast),
    ];
    for (size, guests, load, is_thin, expected) in cases {
        let mut intent = StorageIntent::new(Bytes::gib(size)).with_load(load);
        intent.guests = guests;
        intent.wants.extend(is_thin.then_some(Want::Thin));
        let place = answer(&facts, &intent).map(|(place, _)| place);
        assert_eq!(place, *expected, "{intent:?}");
    }
}

#[test]
fn arrays_partitions_encrypted_devices_and_datasets_are_places() {
    let facts = Facts::parse(
        "schema_version: '1.0'
mounts: [{id: m1, point: /tank, fs: f1, fstype: zfs}]
filesystems: [{id: f1, kind: zfs, devices: [z], free_bytes: 900000000000, zfs: {dataset: tank/vm, sync: standard}}]
blockdevs:
- &disk {id: a, kind: disk, paths: [/dev/sda], by_id: [/dev/disk/by-id/ata-a], size: 40000000000, partitions: [p1, p2],
   holders: [], mounted_at: []}
- {id: p1, kind: partition, paths: [/dev/sda1], by_id: [/dev/disk/by-id/ata-a-part1], size: 15000000000, partitions: [],
   holders: [], mounted_at: [], partition: {parent: a}}
- {id: p2, kind: partition, paths: [/dev/sda2], by_id: [/dev/disk/by-id/ata-a-part2], size: 25000000000, partitions: [],
   holders: [m], mounted_at: [], partition: {parent: a}}
- {id: m, kind: md, paths: [/dev/md0], by_id: [/dev/disk/by-id/md-uuid-1], size: 15000000000, partitions: [], holders: [],
   mounted_at: [], slaves: [p2], md: {level: raid1, degraded: 0}}
- {id: n, kind: multipath, paths: [/dev/dm-1], by_id: [/dev/disk/by-id/dm-name-x, /dev/disk/by-id/dm-uuid-1], size: 15000000000,
   partitions: [], holders: [], mounted_at: []}
- {id: c, kind: crypt-luks2, paths: [/dev/dm-0, /dev/mapper/secret], by_id: [], size: 15000000000, partitions: [], holders: [],
   mounted_at: []}
",
    );
    let facts = facts.unwrap().facts;
    let found = |places: &[&str]| {
        let mut intent = StorageIntent::new(Bytes::gib(10));
        intent.places = places.iter().map(|place| (*place).to_owned()).collect();
        let advice = advice(&facts, &intent);
        let fitting = advice.fitting.into_iter();
        let mut fitting: Vec<_> = fitting.map(|it| (it.place, it.kind, it.form)).collect();
        fitting.sort();
        let excluded = advice.excluded.into_iter();
        (
            fitting,
            excluded.map(|it| (it.place, it.why)).collect::<Vec<_>>(),
        )
    };
    let disk = |place: &str, what: &str| {
        let kind = format!("unused {what}; whether it holds data is not known");
        (place.to_owned(), kind, StorageForm::WholeDisk)
    };
    let dataset = (
        "tank/vm".to_owned(),
        "ZFS dataset".to_owned(),
        StorageForm::ZfsVolume,
    );
    let (fitting, excluded) = found(&[]);
    assert_eq!(
        fitting,
        [
            disk("/dev/disk/by-id/ata-a-part1", "partition"),
            disk("/dev/disk/by-id/dm-uuid-1", "disk"),
            disk("/dev/disk/by-id/md-uuid-1", "array"),
            disk("/dev/mapper/secret", "encrypted device"),
            dataset.clone(),
        ]
    );
    let has_partitions = (
        "/dev/disk/by-id/ata-a".to_owned(),
        "it has partitions".to_owned(),
    );
    assert_eq!(excluded, [has_partitions]);
    assert_eq!(found(&["tank/vm"]).0, [dataset]);
    assert_eq!(
        found(&["/dev/md0"]).0,
        [disk("/dev/disk/by-id/md-uuid-1", "array")]
    );
    let (fitting, excluded) = found(&["/dev/sda2"]);
    assert!(fitting.is_empty());
    assert_eq!(excluded[0].1, "another device is on it");
}

#[test]
fn a_removable_medium_a_slow_drive_and_a_fault_decide_in_this_order() {
    let facts = Facts::parse(
        "schema_version: '1.0'
mounts:
- {id: m1, point: /a, fs: f1, options: {nobarrier: null, discard: null}}
- {id: m2, point: /b, fs: f2, options: {nobarrier: null, discard: null}}
filesystems:
- {id: f1, kind: ext4, free_bytes: 900000000000, devices: [a]}
- {id: f2, kind: ext4, free_bytes: 500000000000, devices: [b]}
dirs: [{path: /a/vm, mount: m1}, {path: /b/vm, mount: m2}]
blockdevs:
- {id: a, kind: disk, paths: [/dev/sda], removable: false, by_id: [/dev/disk/by-id/ata-a],
   queue: {rotational: false, scheduler: none, write_cache: write through}}
- {id: b, kind: disk, paths: [/dev/sdb], removable: false, by_id: [/dev/disk/by-id/ata-b],
   queue: {rotational: false, scheduler: none, write_cache: write through}}
",
    );
    let mut facts = facts.unwrap().facts;
    let intent = StorageIntent::new(Bytes::gib(100));
    let reason = |facts: &Facts, place: &str| {
        let advice = advice(facts, &intent);
        assert_eq!(advice.fitting[0].place, place);
        let is_other = |it: &&StorageCandidate| it.place != place;
        let other = advice.fitting.iter().position(|it| is_other(&it)).unwrap();
        advice.reasons[other].clone()
    };
    let set = |facts: &mut Facts, nth: usize, scheduler: &str| {
        facts.blockdevs[nth].queue.scheduler = Fact::Known(scheduler.to_owned());
    };
    assert_eq!(reason(&facts, "/a/vm"), "more space is free there");
    set(&mut facts, 0, "bfq");
    assert_eq!(
        reason(&facts, "/b/vm"),
        "less is to be done on the host first"
    );
    facts.blockdevs[1].queue.rotational = Fact::Known(true);
    let medium = "its medium is faster (memory, NVMe, other drives that do not rotate)";
    assert_eq!(reason(&facts, "/a/vm"), medium);
    facts.blockdevs[0].by_id = Fact::Known(vec!["/dev/disk/by-id/usb-a".to_owned()]);
    let known = "its medium is known to be neither removable nor on USB";
    assert_eq!(reason(&facts, "/b/vm"), known);
    facts.blockdevs[0].by_id = Fact::NotCollected;
    assert_eq!(reason(&facts, "/b/vm"), known);
    facts.mounts[1].options.clear();
    let known = "flushed data is known to survive a crash of the host";
    assert_eq!(reason(&facts, "/a/vm"), known);
}

#[test]
fn wishes_are_answered_by_what_the_facts_show() {
    let facts = Facts::parse(
        "schema_version: '1.0'
mounts:
- {id: m1, point: /exfat, fs: f1, options: {nobarrier: null}}
- {id: m2, point: /new, fs: f2, options: {nobarrier: null}}
- {id: m3, point: /tank, fs: f3}
- {id: m4, point: /nfs, fs: f4, options: {nobarrier: null}}
- {id: m5, point: /btrfs, fs: f5, options: {nobarrier: null}}
filesystems:
- {id: f1, kind: exfat, free_bytes: 30000000000, devices: [a]}
- {id: f2, kind: ntfs3, free_bytes: 20000000000, devices: [a]}
- {id: f3, kind: zfs, free_bytes: 900000000000}
- {id: f4, kind: nfs4, free_bytes: 900000000000}
- {id: f5, kind: btrfs, free_bytes: 900000000000, btrfs: {data_profile: [raid1]}}
blockdevs:
- {id: a, kind: disk, paths: [/dev/sda], scsi: {host: ahci}}
- {id: lun, kind: disk, paths: [/dev/sdb], scsi: {host: qla2xxx}}
- {id: nvmf, kind: nvme, paths: [/dev/nvme1n1], nvme: {transport: tcp}, size: 99000000000}
- {id: v1, kind: lvm, paths: [/dev/san/v], slaves: [lun], lvm: {vg: san, lv: v, vg_free: 99000000000}}
- {id: v2, kind: lvm, paths: [/dev/fabric/v], slaves: [nvmf], lvm: {vg: fabric, lv: v}}
- {id: v3, kind: lvm, paths: [/dev/local/v], slaves: [a], lvm: {vg: local, lv: v}}
- {id: v4, kind: lvm, paths: [/dev/both/v], slaves: [lun, a], lvm: {vg: both, lv: v}}
- {id: v5, kind: lvm, paths: [/dev/up/v], slaves: [vda], lvm: {vg: up, lv: v}}
- {id: vda, kind: disk, paths: [/dev/vda]}
- {id: thin, kind: lvm-thin, paths: [/dev/a], slaves: [pool], lvm: {vg: san, lv: thin, pool: pool}}
- {id: pool, kind: lvm-thin-pool, paths: [/dev/b], slaves: [lun], size: 8000000000, lvm: {vg: san, lv: pool, data_percent: 50.0}}
",
    );
    let facts = facts.unwrap().facts;
    let mechanism = |place: &str, form: StorageForm, want: Want| {
        let mut intent = StorageIntent::new(Bytes::gib(1));
        intent.places = vec![place.to_owned()];
        let advice = advice(&facts, &intent);
        let candidate = advice.fitting.into_iter().find(|it| it.form == form)?;
        let mechanism = candidate.mechanism(want);
        Some(format!("{}: {}", mechanism.word(), mechanism.text()))
    };
    use StorageForm::{Qcow2, Raw, RawFalloc, RawFull, ThinVolume, Volume};
    use Want::{Checksums, Migration, Snapshots, Thin, Trim};
    let one_mounts = "no: only one host may mount exfat";
    let of_nfs = "yes: other hosts see the storage, and no host caches it";
    for (place, form, want, expected) in [
        (
            "/exfat",
            Raw,
            Thin,
            Some("no: files on exfat have no holes"),
        ),
        (
            "/exfat",
            Qcow2,
            Thin,
            Some("yes: clusters take space when they are written"),
        ),
        (
            "/exfat",
            Raw,
            Checksums,
            Some("no: exfat has no checksums of data"),
        ),
        ("/exfat", Raw, Migration, Some(one_mounts)),
        (
            "/new",
            Raw,
            Thin,
            Some("unknown: whether files on ntfs3 have holes is not known"),
        ),
        (
            "/new",
            Raw,
            Trim,
            Some("unknown: whether ntfs3 punches holes: vmdisk does not know this file system"),
        ),
        (
            "/new",
            Raw,
            Checksums,
            Some("unknown: whether ntfs3 has checksums of data is not known"),
        ),
        ("/tank", RawFalloc, Thin, None),
        ("/tank", RawFull, Thin, None),
        (
            "/tank",
            Raw,
            Checksums,
            Some("yes: zfs has a checksum of each block"),
        ),
        (
            "/tank",
            Raw,
            Snapshots,
            Some("yes: snapshots of the ZFS dataset"),
        ),
        ("/nfs", Raw, Migration, Some(of_nfs)),
        ("/btrfs", RawFull, Thin, None),
        (
            "/btrfs",
            RawFalloc,
            Thin,
            Some("no: all space is taken when the disk is made"),
        ),
        (
            "/btrfs",
            Raw,
            Snapshots,
            Some("at a price: copies that share blocks (reflinks), while the guest is shut off"),
        ),
        (
            "san",
            Volume,
            Migration,
            Some("unknown: whether other hosts see /dev/sdb is not known"),
        ),
        (
            "fabric",
            Volume,
            Migration,
            Some("unknown: whether other hosts see /dev/nvme1n1 is not known"),
        ),
        (
            "local",
            Volume,
            Migration,
            Some("no: only this host sees /dev/sda"),
        ),
        (
            "both",
            Volume,
            Migration,
            Some("no: only this host sees /dev/sda"),
        ),
        (
            "up",
            Volume,
            Migration,
            Some("unknown: the hypervisor decides whether other hosts see /dev/vda"),
        ),
        (
            "san/pool",
            ThinVolume,
            Migration,
            Some("no: only one host may use a thin pool"),
        ),
    ] {
        let found = mechanism(place, form, want);
        assert_eq!(found.as_deref(), expected, "{place} {form} {want}");
    }
    let mut intent = StorageIntent::new(Bytes::gib(1)).with_wants([Migration]);
    intent.places = vec!["san/pool".to_owned(), "/nfs".to_owned()];
    intent.is_scratch = true;
    assert_eq!(answer(&facts, &intent).unwrap().0, "/nfs");
    intent.wants.clear();
    let found = advice(&facts, &intent).fitting;
    let pool = found.iter().find(|it| it.place == "san/pool").unwrap();
    assert_eq!(pool.free, Some(Bytes(4_000_000_000)));
    // A thin disk that nothing has room for is where it lasts longest.
    let mut intent = StorageIntent::new(Bytes::gib(50)).with_wants([Thin]);
    intent.places = ["/exfat", "/new"].map(str::to_owned).to_vec();
    assert_eq!(answer(&facts, &intent).unwrap().0, "/exfat");
    intent.wants.clear();
    assert_eq!(answer(&facts, &intent), None);
    // What the facts do not show is less than what they show, and more than nothing.
    intent.size = Bytes::gib(85);
    intent.places = ["san", "fabric"].map(str::to_owned).to_vec();
    assert_eq!(answer(&facts, &intent).unwrap().0, "san");
}

#[test]
fn directories_of_a_file_system_are_compared_if_they_differ() {
    let facts = Facts::parse(
        "schema_version: '1.0'
mounts: [{id: m, point: /b, fs: f, fstype: btrfs}]
filesystems: [{id: f, kind: btrfs, free_bytes: 900000000000}]
dirs:
- {path: /b/z, mount: m, nocow: false, compressed: false}
- {path: /b/now, mount: m, nocow: true, compressed: false}
- {path: /b/zip, mount: m, nocow: false, compressed: true}
- {path: /b/cow, mount: m, nocow: false, compressed: false}
",
    );
    let facts = facts.unwrap().facts;
    let found = advice(&facts, &StorageIntent::new(Bytes::gib(1))).fitting;
    let places: BTreeSet<&str> = found.iter().map(|it| it.place.as_str()).collect();
    assert_eq!(places, BTreeSet::from(["/b/cow", "/b/now", "/b/zip"]));
}

#[test]
fn what_may_be_lost_may_be_in_memory_without_flushes() {
    let facts = Facts::parse(
        "schema_version: '1.0'
memory: {available_bytes: 60000000000}
mounts:
- {id: m1, point: /run/vm, fs: f1, fstype: tmpfs}
- {id: m2, point: /srv, fs: f2, fstype: xfs, options: {nobarrier: null}}
filesystems:
- {id: f1, kind: tmpfs, free_bytes: 100000000000, total_bytes: 100000000000}
- {id: f2, kind: xfs, free_bytes: 300000000000, devices: [n]}
dirs: [{path: /run/vm, mount: m1}, {path: /srv/vm, mount: m2}]
blockdevs: [{id: n, kind: nvme, paths: [/dev/nvme0n1]}]
",
    );
    let facts = facts.unwrap().facts;
    let mut intent = StorageIntent::new(Bytes::gib(40));
    assert_eq!(answer(&facts, &intent).unwrap().0, "/srv/vm");
    intent.is_scratch = true;
    let found = advice(&facts, &intent);
    assert_eq!(found.fitting[0].place, "/run/vm");
    for candidate in &found.fitting {
        let cache = candidate.spec.disks[0].cache;
        assert_eq!(cache, Some(vmdisk::model::CacheMode::Unsafe));
        assert!(!rules(candidate).contains("cache-unsafe"));
    }
    // Memory that guests need is not free.
    intent.size = Bytes::gib(80);
    assert_eq!(answer(&facts, &intent).unwrap().0, "/srv/vm");
    // libvirt migrates no guest with this mode.
    intent.wants.insert(Want::Migration);
    let found = advice(&facts, &intent);
    assert!(
        found
            .excluded
            .iter()
            .any(|it| it.why.contains("only one host may mount xfs"))
    );
}

/// The spec of a candidate plans to the same disk, lints to the same findings, and converts to the options of QEMU.
fn is_ready(name: &str, candidate: &StorageCandidate, facts: &Facts, is_scratch: bool) {
    let target = Target::from_facts(facts);
    let spec = Spec::from_yaml(&candidate.spec.to_yaml());
    let spec = spec.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    assert_eq!(spec, candidate.spec, "{name}");
    let planned = plan(&spec, facts, &target);
    let planned = planned.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    assert_eq!(planned.domain, candidate.plan.domain, "{name}");
    assert_eq!(planned.steps, candidate.plan.steps, "{name}");
    let xml = write::libvirt_xml(&planned.domain).expect("its names are plain");
    let options = write::QemuOptions {
        target: target.clone(),
    };
    let line = write::qemu_command_line(&planned.domain, &options);
    line.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let after = facts_after(facts, &planned);
    let index = Host::new(after.clone());
    let asked = is_scratch.then(|| "cache-unsafe".to_owned());
    let asked: BTreeSet<String> = asked.into_iter().collect();
    let options = LintOptions::default().host(index.clone()).target(target);
    let options = options.ignored(asked);
    let report = lint(&read(&xml).expect("it was written"), &options);
    let of_disk = report.diagnostics.iter().filter(|it| it.disk.is_some());
    let of_disk = of_disk.filter(|it| it.severity >= Severity::Advice);
    let linted: BTreeSet<&str> = of_disk.map(|it| it.rule.name).collect();
    assert_eq!(linted, rules(candidate), "{name}");
    // The spec is linted with the storage that it creates, too.
    let document = read(&candidate.spec.to_yaml()).expect("it was written");
    let report = lint(&document, &options.host(Host::new(facts.clone())));
    let of_disk = report.diagnostics.iter().filter(|it| it.disk.is_some());
    let of_disk = of_disk.filter(|it| it.severity >= Severity::Advice);
    let of_spec: BTreeSet<&str> = of_disk.map(|it| it.rule.name).collect();
    assert_eq!(of_spec, linted, "{name}");
}

#[test]
fn advice_about_the_hosts_of_the_articles() {
    let articles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/articles");
    let cases: [(&str, &str, StorageIntent); 6] = [
        (
            "000-btrfs-cache-modes",
            "writeback on btrfs, for the installation of FreeBSD",
            StorageIntent::new(Bytes::gib(20)),
        ),
        (
            "001-lvm-thin-iothread-hugepages",
            "a logical volume for Windows; a thin pool if snapshots are needed",
            StorageIntent::new(Bytes::gib(100)).with_load(DiskLoad::Database),
        ),
        (
            "001-lvm-thin-iothread-hugepages",
            "a thin pool if snapshots are needed",
            StorageIntent::new(Bytes::gib(100)).with_wants([Want::Snapshots, Want::Thin]),
        ),
        (
            "002-md-btrfs-schedulers",
            "btrfs raid1 or a volume on md for guests, MySQL on the SSD",
            StorageIntent::new(Bytes::gib(60)).with_load(DiskLoad::Database),
        ),
        (
            "003-qcow2-io-native",
            "qcow2 with io=native",
            StorageIntent::new(Bytes::gib(40)).with_wants([Want::Snapshots]),
        ),
        (
            "004-direct-raw-qcow2",
            "a whole disk for the data, qcow2 for the system",
            StorageIntent::new(Bytes::gib(200)).with_load(DiskLoad::Database),
        ),
    ];
    let mut text = String::new();
    for (article, says, intent) in cases {
        let facts = facts_of(&articles.join(article).join("facts.json"));
        let advice = advice(&facts, &intent);
        let wants: Vec<&str> = intent.wants.iter().map(|want| want.word()).collect();
        writeln!(
            text,
            "{article}: {}, {}, wants: {}\n  article: {says}",
            intent.size.rounded(),
            intent.load,
            wants.join(", ")
        )
        .unwrap();
        for (candidate, reason) in advice.fitting.iter().zip(&advice.reasons).take(3) {
            let settings = candidate.plan.choices.iter();
            let settings =
                settings.filter(|it| ["cache", "io", "discard", "nocow"].contains(&it.option));
            let settings: Vec<String> = settings
                .map(|it| format!("{}={}", it.option, it.value))
                .collect();
            let (place, form, kind) = (&candidate.place, candidate.form, &candidate.kind);
            let settings = settings.join(" ");
            writeln!(text, "  {form} in {place} ({kind}), {settings}: {reason}").unwrap();
            for finding in &candidate.findings {
                writeln!(text, "    {}[{}]", finding.severity, finding.rule.name).unwrap();
            }
        }
        for alternative in &advice.alternatives {
            let best = alternative.best.as_ref();
            let best = best.map_or("nothing".to_owned(), |(place, form)| {
                format!("{form} in {place}")
            });
            writeln!(text, "  {}: {best}: {}", alternative.asked, alternative.why).unwrap();
        }
        for excluded in &advice.excluded {
            let forms: Vec<&str> = excluded.forms.iter().map(|form| form.word()).collect();
            let (place, forms) = (&excluded.place, forms.join("; "));
            writeln!(text, "  not {place} ({forms}): {}", excluded.why).unwrap();
        }
    }
    let golden = articles.join("advice.txt");
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, expected, "VMDISK_BLESS=yes writes the file");
}

#[test]
fn a_host_with_hundreds_of_places_has_the_same_answer_again() {
    let mut facts = facts_of(&files("facts", "lvm-thin-64k.json")[0]);
    let volume = facts.blockdevs.last().unwrap().clone();
    for nth in 0..500 {
        facts.mounts.push(Mount {
            id: format!("m{nth}-n"),
            point: format!("/srv/{nth}"),
            fs: Fact::Known(format!("f{nth}-n")),
            ..Mount::default()
        });
        facts.filesystems.push(Filesystem {
            id: format!("f{nth}-n"),
            kind: FsKind::Xfs,
            free_bytes: Fact::Known(nth << 30),
            ..Filesystem::default()
        });
        facts.dirs.push(Directory {
            path: format!("/srv/{nth}/img"),
            mount: Fact::Known(format!("m{nth}-n")),
            ..Directory::default()
        });
        if nth % 10 == 0 {
            let mut volume = volume.clone();
            volume.id = format!("b{nth}-n");
            volume.paths = vec![format!("/dev/vg0/v{nth}")];
            facts.blockdevs.push(volume);
        }
    }
    let intent = StorageIntent::new(Bytes::gib(10));
    let first = advice(&facts, &intent);
    let advice = advice(&facts, &intent);
    assert!(advice.fitting.len() > 50);
    let same = first.fitting.iter().zip(&advice.fitting);
    assert!(same.into_iter().all(|(one, other)| one.spec == other.spec));
}

#[test]
fn only_a_directory_that_can_hold_an_image_is_a_place() {
    let facts = Facts::parse(
        "schema_version: '1.0'
mounts:
- {id: m1, point: /, fs: f1, options: {nobarrier: false}}
- {id: m2, point: /proc, fs: f2}
filesystems:
- {id: f1, kind: xfs}
- {id: f2, kind: proc, total_bytes: 0, free_bytes: 0}
dirs: [{path: /srv/img, present: true, mount: m1}, {path: /proc, present: true, mount: m2}]
files: [{path: /srv/file, present: true, kind: regular, mount: m1}, {path: /srv/none, present: false}]
",
    );
    let facts = facts.unwrap().facts;
    for (place, why) in [
        ("/srv/img", Ok("xfs")),
        ("/srv/img/", Ok("xfs")),
        (
            "/srv/img/new",
            Ok("xfs; whether the directory exists is not known"),
        ),
        ("/srv/file", Err("it is not a directory")),
        ("/srv/none", Err("the directory does not exist")),
        ("/proc", Err("files on proc have no space")),
    ] {
        let mut intent = StorageIntent::new(Bytes::gib(1));
        intent.places = vec![place.to_owned()];
        let advice = advice(&facts, &intent);
        let of_place = match advice.fitting.first() {
            Some(best) => Ok(best.kind.as_str()),
            None => Err(advice.excluded[0].why.as_str()),
        };
        assert_eq!(of_place, why, "{place}");
    }
}

/// Facts about a guest name its emulator and its firmware, too.
#[test]
fn the_directory_of_an_emulator_is_no_place() {
    let text = "
schema_version: '1.0'
mounts: [{id: m1, point: /, fs: f1}]
filesystems: [{id: f1, kind: xfs, free_bytes: 800000000000}]
dirs: [{path: /usr/bin, mount: m1, present: true}, {path: /vm, mount: m1, present: true}]
files: [{path: /usr/share/OVMF/OVMF_CODE.fd, mount: m1, present: true, kind: regular}]
";
    let facts = Facts::parse(text).unwrap().facts;
    let found = advice(&facts, &StorageIntent::new(Bytes::gib(10)));
    let places: BTreeSet<&str> = found.fitting.iter().map(|it| it.place.as_str()).collect();
    assert!(places.contains("/vm"), "{places:?}");
    assert!(
        !places.iter().any(|it| it.starts_with("/usr")),
        "{places:?}"
    );
}

#[test]
fn a_mount_point_is_taken_after_a_directory_that_is_alike() {
    let facts = |free: u64| {
        let text = format!(
            "
schema_version: '1.0'
mounts: [{{id: m1, point: /, fs: f1}}, {{id: m2, point: /home, fs: f2}}]
filesystems:
- {{id: f1, kind: xfs, free_bytes: {free}}}
- {{id: f2, kind: xfs, free_bytes: 900000000000}}
dirs: [{{path: /home, mount: m2, present: true}}, {{path: /var/lib/libvirt/images, mount: m1, present: true}}]
"
        );
        Facts::parse(&text).unwrap().facts
    };
    let best = |free| {
        advice(&facts(free), &StorageIntent::new(Bytes::gib(10))).fitting[0]
            .place
            .clone()
    };
    assert_eq!(best(800_000_000_000), "/var/lib/libvirt/images");
    // Room for the disk counts before.
    assert_eq!(best(8_000_000_000), "/home");
}

#[test]
fn a_disk_for_windows_is_on_a_bus_of_its_installer() {
    let facts = facts_of(&files("advise", ".json")[0]);
    let mut intent = StorageIntent::new(Bytes::gib(10));
    intent.os = Some(vmdisk::plan::GuestOs::Windows);
    for candidate in advice(&facts, &intent).fitting {
        let disk = &candidate.plan.domain.disks[0];
        assert_eq!(
            disk.frontend.effective_bus(),
            vmdisk::model::TargetBus::Sata
        );
        let again = Spec::from_yaml(&candidate.spec.to_yaml()).unwrap();
        assert_eq!(again.guest.unwrap().os, intent.os);
    }
}

/// A member of a ZFS pool is neither mounted nor held, a group of Ceph has free space, and a zoned disk is empty.
#[test]
fn a_disk_that_may_be_of_something_else_is_no_place() {
    let disk = |rest: &str| {
        let known = "size: 99000000000, by_id: [/dev/disk/by-id/d], holders: [], partitions: [], mounted_at: []";
        format!(
            "schema_version: '1.0'\nblockdevs:\n- {{id: d, kind: disk, paths: [/dev/sdb, /dev/disk/by-id/d], {known}{rest}}}\n"
        )
    };
    let volume = |group: &str, volume: &str| {
        format!(
            "- {{id: {volume}, kind: lvm, paths: [/dev/{group}/{volume}], slaves: [a], \
             lvm: {{vg: {group}, lv: {volume}, vg_free: 99000000000}}}}\n"
        )
    };
    let zfs = "filesystems:\n- {id: f, kind: zfs, free_bytes: 1, zfs: {dataset: tank}}\n";
    let ceph = volume("g", "data") + &volume("g", "osd-block-1");
    let why = |text: &str| {
        let facts = Facts::parse(text).unwrap().facts;
        let advice = advice(&facts, &StorageIntent::new(Bytes::gib(60)));
        assert!(advice.fitting.len() + advice.excluded.len() > 0, "{text}");
        let places = advice.excluded.into_iter().filter(|it| it.place != "tank");
        match advice.fitting.is_empty() {
            true => places.map(|it| it.why).collect(),
            false => Vec::new(),
        }
    };
    assert!(why(&disk("")).is_empty());
    assert!(why(&disk(", queue: {zoned: none}")).is_empty());
    let zoned = "its zones take sequential writes only";
    assert_eq!(why(&disk(", queue: {zoned: host-managed}")), [zoned]);
    let of_zfs = "ZFS is in use, and the facts do not show its drives";
    assert_eq!(why(&(disk("") + zfs)), [of_zfs]);
    let zvol = disk("") + "- {id: z, kind: zvol, paths: [/dev/zd0]}\n";
    assert_eq!(why(&zvol), [of_zfs]);
    let of_ceph = "Ceph keeps its data in this group";
    let group = format!("schema_version: '1.0'\nblockdevs:\n{ceph}");
    assert_eq!(why(&group), [of_ceph]);
    assert!(why(&group.replace("osd-block-1", "other")).is_empty());
}
