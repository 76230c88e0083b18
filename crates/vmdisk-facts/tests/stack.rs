//! What becomes of a discard and of a small request at the layers of a host.

use vmdisk_facts::stack::{DiscardLoss, FlushEffect, UnknownFlush};
use vmdisk_facts::{Fact, Facts, HostIndex};

const HOST: &str = r#"
schema_version: "1.0"
mounts:
  - {id: m1, point: /, fstype: xfs, fs: f1}
  - {id: m2, point: /fat, fstype: vfat, fs: f2}
  - {id: m3, point: /over, fstype: overlay, fs: f3}
  - {id: m4, point: /net, fstype: nfs4, fs: f4}
  - {id: m5, point: /btrfs, fstype: btrfs, fs: f5}
filesystems:
  - {id: f1, kind: xfs, devices: [hdd]}
  - {id: f2, kind: vfat, devices: [ssd]}
  - {id: f3, kind: overlay, overlay: {upper: /fat/upper}}
  - {id: f4, kind: nfs4}
  - {id: f5, kind: btrfs, devices: [hdd]}
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
