//! Advice about new disks, on every recorded host.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use vmdisk::advise::{DiskLoad, StorageAdvice, StorageCandidate, StorageIntent, Want, advise};
use vmdisk::facts::{Directory, Fact, Filesystem, FsKind, Mount};
use vmdisk::model::Bytes;
use vmdisk::plan::{Spec, facts_after, plan};
use vmdisk::trace::Survival;
use vmdisk::{Facts, Host, LintOptions, Severity, Target, lint, read, write};

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
    let names = ["facts", "facts-lab"];
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
            intents.push(intent);
        }
    }
    intents
}

#[test]
fn no_other_place_or_form_avoids_a_finding_of_the_recommended_one() {
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
            let found = rules(best);
            for other in &advice.fitting {
                let of_other = rules(other);
                let is_better = of_other.is_subset(&found) && of_other != found;
                assert!(!is_better, "{name}: {} {}", other.place, other.form);
            }
            if !intent.is_scratch {
                assert_ne!(best.loss.flushed, Survival::Lost, "{name}");
            }
            is_ready(&name, best, &facts);
        }
    }
    println!("{recommended} recommended, {refused} refused");
    assert!(recommended > 300 && refused > 50, "{recommended} {refused}");
}

/// The spec of a candidate plans to the same disk, lints to the same findings, and converts to the options of QEMU.
fn is_ready(name: &str, candidate: &StorageCandidate, facts: &Facts) {
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
        ..write::QemuOptions::default()
    };
    let line = write::qemu_command_line(&planned.domain, &options);
    line.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let after = facts_after(facts, &planned);
    let index = Host::new(after.clone());
    let options = LintOptions::default().host(index.clone()).target(target);
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
