//! What becomes of a discard and of a small request at the layers of a host.

use vmdisk_facts::stack::{DiscardLoss, FlushEffect, FlushLoss, UnknownFlush};
use vmdisk_facts::{Fact, Facts, HostIndex, Reason};

const HOST: &str = r#"
schema_version: "1.0"
mounts:
  - {id: m1, point: /, fstype: xfs, fs: f1}
  - {id: m2, point: /fat, fstype: vfat, fs: f2}
  - {id: m3, point: /over, fstype: overlay, fs: f3}
  - {id: m4, point: /net, fstype: nfs4, fs: f4}
  - {id: m5, point: /btrfs, fstype: btrfs, fs: f5}
  - {id: m6, point: /new, fstype: ntfs3, fs: f6}
filesystems:
  - {id: f1, kind: xfs, devices: [hdd]}
  - {id: f2, kind: vfat, devices: [ssd]}
  - {id: f3, kind: overlay, overlay: {upper: /fat/upper}}
  - {id: f4, kind: nfs4}
  - {id: f5, kind: btrfs, devices: [hdd]}
  - {id: f6, kind: ntfs3, devices: [ssd]}
blockdevs:
  - {id: hdd, kind: disk, paths: [/dev/sda], queue: {logical: 4096, discard_max: 0}}
  - {id: ssd, kind: disk, paths: [/dev/sdb], queue: {logical: 512, discard_max: 4096}}
  - {id: lv, kind: lvm, paths: [/dev/vg/lv], slaves: [luks], queue: {logical: 512, discard_max: 0}}
  - {id: luks, kind: crypt-luks2, paths: [/dev/dm-1], slaves: [ssd], queue: {discard_max: 0}, crypt: {allow_discards: false}}
  - {id: thin, kind: lvm-thin, paths: [/dev/vg/thin], slaves: [pool], queue: {discard_max: 65536}, lvm: {discards: ignore}}
  - {id: used, kind: lvm-thin, paths: [/dev/vg/used], slaves: [pool], queue: {discard_max: 65536}, lvm: {discards: passdown}}
  - {id: pool, kind: lvm-thin-pool, slaves: [hdd], queue: {discard_max: 0}}
  - {id: unseen, kind: disk, paths: [/dev/sdc]}
  - {id: loop, kind: loop, paths: [/dev/loop0], queue: {logical: 512, discard_max: 4096}, loop: {backing_file: /fat/a.img}}
"#;

#[test]
fn a_discard_is_dropped_at_the_layer_that_accepts_none() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    let dropped = |path: &str| {
        let path = path.to_owned().leak();
        let lost = index.lost_discard(path, path.starts_with("/dev/"));
        lost.map(|lost| lost.map(|(layer, loss)| (layer.name(), loss)))
    };
    let at = |name: &str, loss| Ok(Some((name.to_owned(), loss)));
    let fat = || at("vfat on /fat", DiscardLoss::NoHoles);
    assert_eq!(dropped("/dev/sda"), at("/dev/sda", DiscardLoss::Device));
    assert_eq!(dropped("/dev/vg/lv"), at("/dev/dm-1", DiscardLoss::Crypt));
    assert_eq!(
        dropped("/dev/vg/thin"),
        at("/dev/vg/thin", DiscardLoss::Pool)
    );
    assert_eq!(dropped("/fat/a.img"), fat());
    assert_eq!(dropped("/over/a.img"), fat());
    assert_eq!(dropped("/dev/loop0"), fat());
    for frees in ["/dev/sdb", "/dev/vg/used", "/a.img", "/net/a.img"] {
        assert_eq!(dropped(frees), Ok(None), "{frees}");
    }
    assert_eq!(dropped("/dev/sdc"), Err(Fact::NotCollected));
    let not_known = "whether ntfs3 on /new punches holes is not known";
    let not_known = Fact::unknown(Reason::Undecided, not_known);
    assert_eq!(dropped("/new/a.img"), Err(not_known));
}

#[test]
fn the_sectors_of_a_device_reach_files_where_requests_are_passed_on() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    for (path, sector) in [
        ("/dev/sda", Fact::Known(4096)),
        ("/a.img", Fact::Known(4096)),
        ("/fat/a.img", Fact::Absent),
        ("/over/a.img", Fact::Absent),
        ("/btrfs/a.img", Fact::Absent),
        ("/dev/sdc", Fact::NotCollected),
    ] {
        assert_eq!(index.sector_under(path), sector, "{path}");
    }
    let over_xfs = HOST.replace("upper: /fat/upper", "upper: /upper");
    let read = Facts::parse(&over_xfs).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.sector_under("/over/a.img"), Fact::Known(4096));
    // Where the upper directory is unknown, nothing of its file system is known.
    let unknown = HOST.replace("upper: /fat/upper", "lower: [/fat]");
    let read = Facts::parse(&unknown).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.sector_under("/over/a.img"), Fact::NotCollected);
    let lost = index.lost_discard("/over/a.img", false);
    assert_eq!(lost.unwrap_err(), Fact::NotCollected);
    let lost = index.lost_flushes("/over/a.img", false).unwrap();
    let effects: Vec<&FlushEffect> = lost.iter().map(|lost| &lost.effect).collect();
    let missing = UnknownFlush::Missing(None, Fact::NotCollected);
    assert_eq!(effects, [&FlushEffect::Unknown(missing)]);
}

/// One host with an image on an overlay over `upper`, with the options of its mount.
fn overlay(overlay: &str, options: &str) -> Facts {
    let text = HOST
        .replace("overlay: {upper: /fat/upper}", overlay)
        .replace("fstype: overlay,", &format!("fstype: overlay, {options}"));
    Facts::parse(&text).expect("the facts are read").facts
}

#[test]
fn what_is_written_to_an_overlay_is_where_its_upper_directory_is() {
    let drives = |of: &str| {
        let facts = overlay(of, "");
        let leaves = HostIndex::new(&facts).leaves_of("/over/a.img");
        leaves.map(|leaves| leaves.iter().map(|it| it.id.clone()).collect())
    };
    let drive = |id: &str| Fact::Known(vec![id.to_owned()]);
    assert_eq!(drives("overlay: {upper: /fat/upper}"), drive("ssd"));
    assert_eq!(drives("overlay: {upper: /up}, devices: null"), drive("hdd"));
    // Of a lower directory, nothing is written.
    let lower = "lower: [/fat]";
    let both = format!("overlay: {{upper: /up, {lower}}}");
    assert_eq!(drives(&both), drive("hdd"));
    let read_only: Fact<Vec<String>> = drives(&format!("overlay: {{upper: null, {lower}}}"));
    assert_eq!(read_only, Fact::Absent);
    // An unknown upper directory, and one on the overlay itself.
    for unknown in [lower, "upper: /over/up"] {
        let unknown = format!("overlay: {{{unknown}}}");
        assert_eq!(drives(&unknown), Fact::NotCollected, "{unknown}");
    }
}

#[test]
fn the_layers_of_an_overlay_are_those_of_its_upper_directory() {
    let layers = |of: &str| {
        let facts = overlay(of, "");
        let index = HostIndex::new(&facts);
        let top = index.file_layer("/over/a.img").known().unwrap();
        let below = index.layers_under(&top);
        below.map(|below| below.iter().map(|layer| layer.name()).collect())
    };
    let one = |name: &str| Fact::<Vec<String>>::Known(vec![name.to_owned()]);
    assert_eq!(layers("overlay: {upper: /fat/upper}"), one("vfat on /fat"));
    let both = "overlay: {upper: /up, lower: [/fat]}";
    assert_eq!(layers(both), one("xfs on /"));
    assert_eq!(layers("overlay: {upper: null}"), Fact::Absent);
    for unknown in ["lower: [/fat]", "upper: /over/up"] {
        let unknown = format!("overlay: {{{unknown}}}");
        assert_eq!(layers(&unknown), Fact::NotCollected, "{unknown}");
    }
}

/// Removes what is below a path from the facts: the data is not called kept, and the discards not freed.
#[test]
fn what_the_facts_do_not_describe_below_a_layer_is_unknown() {
    let rest = "  - {id: m1, point: /, fstype: xfs, fs: f1}\n";
    let ssd = "  - {id: ssd,";
    let at_xfs = HOST.replace("/fat/", "/");
    for (path, host, removed, passes_discards) in [
        ("/a.img", HOST, "devices: [hdd]", false),
        ("/btrfs/a.img", HOST, "devices: [hdd]", false),
        ("/over/a.img", &at_xfs, rest, true),
        ("/dev/loop0", &at_xfs, rest, true),
        ("/dev/loop0", HOST, "backing_file: /fat/a.img", true),
        ("/dev/vg/used", HOST, "  - {id: pool,", false),
        ("/dev/dm-1", HOST, ssd, false),
    ] {
        let is_device = path.starts_with("/dev/");
        let lost = |text: &str| {
            let read = Facts::parse(text).expect("the facts are read");
            let index = HostIndex::new(&read.facts);
            let lost = index.lost_flushes(path, is_device).unwrap();
            let lost = lost.into_iter().map(|lost| lost.effect);
            let missing = UnknownFlush::Missing(None, Fact::NotCollected);
            let unknown = lost.filter(|it| *it == FlushEffect::Unknown(missing.clone()));
            let discard = index.lost_discard(path, is_device).map(|_| ());
            (unknown.count(), discard)
        };
        assert_eq!(lost(host), (0, Ok(())), "{path}");
        let gone = match removed.starts_with("  -") {
            true => host.replace(removed, "  # "),
            false => host.replace(removed, ""),
        };
        let discard = match passes_discards {
            true => Err(Fact::NotCollected),
            false => Ok(()),
        };
        assert_eq!(lost(&gone), (1, discard), "{path} without {removed}");
    }
}

#[test]
fn a_volatile_overlay_drops_flushes_and_another_passes_them_on() {
    let lost = |of: &str, options: &str| {
        let facts = overlay(of, options);
        let index = HostIndex::new(&facts);
        let lost = index.lost_flushes("/over/a.img", false).unwrap();
        let lost = lost.into_iter().map(|it| (it.layer.name(), it.effect));
        lost.collect::<Vec<_>>()
    };
    let over = || "overlay on /over".to_owned();
    let missing = UnknownFlush::Missing(None, Fact::NotCollected);
    let volatile = FlushEffect::Dropped(FlushLoss::VolatileOverlay);
    for of in ["upper: /up", "upper: null", "lower: [/fat]"] {
        let of = format!("overlay: {{{of}}}");
        let drops = lost(&of, "options: {fsync: volatile},");
        assert_eq!(drops, [(over(), volatile.clone())], "{of}");
    }
    let unknown = lost("overlay: {lower: [/fat]}", "options: {rw: null},");
    assert_eq!(unknown, [(over(), FlushEffect::Unknown(missing))]);
    for of in ["overlay: {upper: /up}", "overlay: {upper: null}"] {
        let own = lost(of, "options: {rw: null},");
        assert!(own.iter().all(|(name, _)| *name != over()), "{own:?}");
    }
}

#[test]
fn an_overlay_on_an_overlay_ends_at_the_first_other_file_system() {
    let drives = |upper: &str, of: &str| {
        let text = HOST
            .replace(
                "kind: nfs4}",
                &format!("kind: overlay, overlay: {{upper: {of}}}}}"),
            )
            .replace("upper: /fat/upper", &format!("upper: {upper}"));
        let facts = Facts::parse(&text).expect("the facts are read").facts;
        let leaves = HostIndex::new(&facts).leaves_of("/net/a.img");
        leaves.map(|leaves| leaves.iter().map(|it| it.id.clone()).collect::<Vec<_>>())
    };
    let ssd = Fact::Known(vec!["ssd".to_owned()]);
    assert_eq!(drives("/fat/up", "/over/up"), ssd);
    // Each on the other.
    assert_eq!(drives("/net/up", "/over/up"), Fact::NotCollected);
}
