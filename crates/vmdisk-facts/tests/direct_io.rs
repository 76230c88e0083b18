//! The verdict on O_DIRECT follows the strongest evidence, and stays open where nothing decides.

use vmdisk_facts::{Buffered, DirectIoBasis, DirectIoEffect, Fact, Facts, HostIndex, Reason};

/// A host with one image `/i/a.img` in a directory `/i` of one filesystem.
fn host(kernel: &str, filesystem: &str, options: &str, directory: &str, file: &str) -> Facts {
    let text = format!(
        "schema_version: '1.0'\n\
         kernel: {{version: [{kernel}], vendor: debian}}\n\
         mounts: [{{id: m1, point: /i, fs: f1, options: {{{options}}}}}]\n\
         filesystems: [{{id: f1, {filesystem}}}]\n\
         dirs: [{{path: /i, mount: m1, {directory}}}]\n\
         files: [{{path: /i/a.img, {file}}}]\n"
    );
    let read = Facts::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read.warnings, [], "{text}");
    read.facts
}

fn verdict(facts: &Facts) -> Option<(DirectIoEffect, DirectIoBasis)> {
    HostIndex::new(facts)
        .direct_io("/i/a.img")
        .known()
        .map(|direct| (direct.verdict, direct.confidence))
}

fn reason(facts: &Facts) -> Option<Reason> {
    match HostIndex::new(facts).direct_io("/i/a.img") {
        Fact::Unknown(unknown) => Some(unknown.reason().clone()),
        Fact::NotCollected => Some(Reason::NotCollected),
        Fact::Known(_) | Fact::Absent => None,
    }
}

const PLAIN: &str = "nodatasum: null, nodatacow: null";
const SINGLE: &str = "kind: btrfs, btrfs: {data_profile: [single]}";
const RAID1: &str = "kind: btrfs, btrfs: {data_profile: [raid1]}";
const BALANCING: &str = "kind: btrfs, btrfs: {data_profile: [single, raid1]}";
const TABLE: DirectIoBasis = DirectIoBasis::FromVersionTable;
use DirectIoEffect::{
    AcceptedButBuffered, Direct, DirectUnstableChecksums, DirectUnstableMirrors, Unsupported,
};

#[test]
fn data_journaling_follows_the_filesystem_before_its_mount() {
    for (filesystem, options, effect) in [
        (
            "kind: ext4, ext4: {data_mode: journal}",
            "",
            AcceptedButBuffered(Buffered::Ext4DataJournal),
        ),
        (
            "kind: ext4, ext4: {data_mode: ordered}",
            "data: journal",
            Direct,
        ),
        (
            "kind: ext4, ext4: {data_mode: null}",
            "data: journal",
            Direct,
        ),
        (
            "kind: ext4, ext4: null",
            "data: journal",
            AcceptedButBuffered(Buffered::Ext4DataJournal),
        ),
        ("kind: ext4, ext4: null", "data: null", Direct),
        (
            "kind: zfs, zfs: {version: [2, 2, 9], direct: standard}",
            "",
            AcceptedButBuffered(Buffered::ZfsIgnored),
        ),
        (
            "kind: zfs, zfs: {version: [2, 3, 0], direct: standard}",
            "",
            Direct,
        ),
    ] {
        let facts = host(
            "6, 12, 1",
            filesystem,
            options,
            "",
            "present: true, kind: regular",
        );
        let found = verdict(&facts).map(|(effect, _)| effect);
        assert_eq!(found, Some(effect), "{filesystem}, {options}");
    }
}

#[test]
fn overlays_are_followed_four_deep() {
    let host = |overlays: usize| {
        let lines = |line: &dyn Fn(usize) -> String| (0..overlays).map(line).collect::<String>();
        let text = format!(
            "schema_version: '1.0'\nkernel: {{version: [6, 12, 1]}}\n\
             mounts:\n- {{id: m, point: /, fs: f}}\n{}\
             filesystems:\n- {{id: f, kind: xfs}}\n{}\
             dirs:\n- {{path: /o{overlays}, mount: m}}\n{}",
            lines(&|nth| format!("- {{id: m{nth}, point: /o{nth}, fs: f{nth}}}\n")),
            lines(&|nth| format!(
                "- {{id: f{nth}, kind: overlay, overlay: {{upper: /o{}}}}}\n",
                nth + 1
            )),
            lines(&|nth| format!("- {{path: /o{nth}, mount: m{nth}}}\n")),
        );
        let facts = Facts::parse(&text).unwrap().facts;
        HostIndex::new(&facts).direct_io("/o0/a.img").is_known()
    };
    assert!(host(1) && host(4));
    assert!(!host(5));
}

#[test]
fn btrfs_follows_the_kernel_the_flag_and_the_profile() {
    let cases = [
        ("6, 1, 192", SINGLE, "false", DirectUnstableChecksums),
        ("6, 1, 192", SINGLE, "true", Direct),
        ("6, 1, 192", RAID1, "true", DirectUnstableMirrors),
        (
            "6, 12, 77",
            SINGLE,
            "false",
            AcceptedButBuffered(Buffered::BtrfsChecksums),
        ),
        ("6, 12, 77", SINGLE, "true", Direct),
        (
            "6, 12, 77",
            RAID1,
            "true",
            AcceptedButBuffered(Buffered::BtrfsRedundant),
        ),
        (
            "6, 12, 77",
            BALANCING,
            "true",
            AcceptedButBuffered(Buffered::BtrfsRedundant),
        ),
        ("6, 16, 0", RAID1, "true", DirectUnstableMirrors),
        ("7, 3, 0", SINGLE, "false", Direct),
        ("2, 6, 34", SINGLE, "true", Unsupported),
    ];
    for (kernel, filesystem, nocow, expected) in cases {
        let facts = host(
            kernel,
            filesystem,
            PLAIN,
            &format!("nocow: {nocow}"),
            &format!("present: true, nocow: {nocow}"),
        );
        assert_eq!(
            verdict(&facts),
            Some((expected, TABLE)),
            "{kernel} {filesystem} nocow={nocow}"
        );
        // A file that is still to be created is what its directory makes it.
        let facts = host(
            kernel,
            filesystem,
            PLAIN,
            &format!("nocow: {nocow}"),
            "present: false",
        );
        assert_eq!(
            verdict(&facts),
            Some((expected, TABLE)),
            "new: {kernel} {filesystem} nocow={nocow}"
        );
    }
}

#[test]
fn properties_that_btrfs_hides_are_unknown() {
    let permission = "present: true, nocow: {unknown: permission, detail: x}";
    assert_eq!(
        reason(&host(
            "6, 12, 77",
            SINGLE,
            PLAIN,
            "nocow: false",
            permission
        )),
        Some(Reason::Permission)
    );
    assert_eq!(
        reason(&host(
            "6, 12, 77",
            SINGLE,
            PLAIN,
            "nocow: false",
            "present: true"
        )),
        Some(Reason::NotCollected)
    );
    // Nobody has booted these.
    assert_eq!(
        reason(&host(
            "7, 3, 0",
            RAID1,
            PLAIN,
            "nocow: true",
            "present: false"
        )),
        Some(Reason::Undecided)
    );
    assert_eq!(
        reason(&host(
            "6, 18, 1",
            RAID1,
            PLAIN,
            "nocow: true",
            "present: false"
        )),
        Some(Reason::Undecided)
    );
    // An option says what new files get, not what an old one has.
    let nodatasum = "nodatasum: true, nodatacow: null";
    assert_eq!(
        reason(&host(
            "6, 1, 1",
            SINGLE,
            nodatasum,
            "nocow: false",
            "present: true, nocow: false"
        )),
        Some(Reason::Undecided)
    );
    assert_eq!(
        verdict(&host(
            "6, 1, 1",
            SINGLE,
            nodatasum,
            "nocow: false",
            "present: false"
        )),
        Some((Direct, TABLE))
    );
    let no_profile = "kind: btrfs";
    assert_eq!(
        reason(&host(
            "6, 1, 1",
            no_profile,
            PLAIN,
            "nocow: true",
            "present: false"
        )),
        Some(Reason::NotCollected)
    );
}

#[test]
fn a_vendor_kernel_is_not_judged_by_its_number() {
    let mut facts = host("6, 8, 0", SINGLE, PLAIN, "nocow: false", "present: false");
    assert_eq!(verdict(&facts), Some((DirectUnstableChecksums, TABLE)));
    facts.kernel.vendor = Fact::Known("ubuntu".to_owned());
    assert_eq!(reason(&facts), Some(Reason::Undecided));
}

#[test]
fn a_trial_takes_precedence_over_the_table() {
    let ok = "nocow: true, dio: {open: ok, dioalign: unset, nowait_overwrite: ok}";
    assert_eq!(
        verdict(&host("6, 18, 44", SINGLE, PLAIN, ok, "present: false")),
        Some((Direct, DirectIoBasis::Probed))
    );
    assert_eq!(
        verdict(&host("6, 1, 192", RAID1, PLAIN, ok, "present: false")),
        Some((DirectUnstableMirrors, DirectIoBasis::Probed))
    );
    let refused = "dio: {open: EINVAL}";
    assert_eq!(
        verdict(&host(
            "6, 18, 44",
            "kind: xfs",
            "",
            refused,
            "present: false"
        )),
        Some((Unsupported, DirectIoBasis::Probed))
    );
}

#[test]
fn a_trial_in_the_directory_does_not_apply_to_a_file_with_another_flag() {
    let directory = "nocow: true, dio: {open: ok, dioalign: unset, nowait_overwrite: ok}";
    let facts = host(
        "6, 18, 44",
        SINGLE,
        PLAIN,
        directory,
        "present: true, nocow: false, dio: {dioalign: unset}",
    );
    assert_eq!(
        verdict(&facts),
        Some((AcceptedButBuffered(Buffered::BtrfsChecksums), TABLE))
    );
}

#[test]
fn statx_has_three_answers() {
    let set = |mem: u32, off: u32| {
        format!("present: true, dio: {{dioalign: set, mem: {mem}, off: {off}}}")
    };
    let observed = DirectIoBasis::Observed;
    let facts = host("6, 18, 44", "kind: xfs", "", "nocow: null", &set(512, 4096));
    assert_eq!(verdict(&facts), Some((Direct, observed)));
    let alignment = HostIndex::new(&facts)
        .direct_io("/i/a.img")
        .known()
        .unwrap()
        .alignment
        .unwrap();
    assert_eq!((alignment.memory, alignment.offset), (512, 4096));
    let journal = host(
        "6, 18, 44",
        "kind: ext4",
        "data: journal",
        "nocow: null",
        &set(0, 0),
    );
    assert_eq!(
        verdict(&journal),
        Some((AcceptedButBuffered(Buffered::Ext4DataJournal), observed))
    );
    let other = host("6, 18, 44", "kind: f2fs", "", "nocow: null", &set(0, 0));
    assert_eq!(
        verdict(&other),
        Some((AcceptedButBuffered(Buffered::SaysNo), observed))
    );
    // Unset means unknown, so that the filesystem decides.
    let unset = host(
        "6, 18, 44",
        "kind: tmpfs",
        "",
        "nocow: null",
        "present: true, dio: {dioalign: unset}",
    );
    assert_eq!(
        verdict(&unset),
        Some((AcceptedButBuffered(Buffered::Tmpfs), TABLE))
    );
}

#[test]
fn without_statx_the_filesystem_and_its_options_decide() {
    let at = |kernel: &str, filesystem: &str, options: &str| {
        host(kernel, filesystem, options, "nocow: null", "present: true")
    };
    assert_eq!(
        verdict(&at("5, 10, 0", "kind: xfs", "")),
        Some((Direct, TABLE))
    );
    assert_eq!(
        verdict(&at("5, 10, 0", "kind: ext4", "data: null")),
        Some((Direct, TABLE))
    );
    assert_eq!(
        verdict(&at("5, 10, 0", "kind: ext4", "data: journal")),
        Some((
            AcceptedButBuffered(Buffered::Ext4DataJournal),
            DirectIoBasis::Observed
        ))
    );
    assert_eq!(
        reason(&at("5, 10, 0", "kind: ext4", "")),
        Some(Reason::NotCollected)
    );
    assert_eq!(
        verdict(&at("6, 5, 0", "kind: tmpfs", "")),
        Some((Unsupported, TABLE))
    );
    assert_eq!(
        verdict(&at("6, 6, 0", "kind: tmpfs", "")),
        Some((AcceptedButBuffered(Buffered::Tmpfs), TABLE))
    );
    assert_eq!(
        verdict(&at("6, 6, 0", "kind: squashfs", "")),
        Some((Unsupported, TABLE))
    );
    for undecided in ["fuse.sshfs", "cifs", "overlay", "nilfs2", "erofs"] {
        let facts = at("6, 6, 0", &format!("kind: {undecided}"), "");
        assert_eq!(reason(&facts), Some(Reason::Undecided), "{undecided}");
    }
}

#[test]
fn zfs_depends_on_its_version_and_property() {
    let at = |zfs: &str| {
        host(
            "6, 12, 0",
            &format!("kind: zfs, zfs: {{{zfs}}}"),
            "",
            "nocow: null",
            "present: true",
        )
    };
    assert_eq!(
        verdict(&at("version: [0, 7, 13], direct: null")),
        Some((Unsupported, TABLE))
    );
    assert_eq!(
        verdict(&at("version: [0, 8, 0], direct: null")),
        Some((AcceptedButBuffered(Buffered::ZfsIgnored), TABLE))
    );
    assert_eq!(
        verdict(&at("version: [2, 2, 7], direct: null")),
        Some((AcceptedButBuffered(Buffered::ZfsIgnored), TABLE))
    );
    assert_eq!(
        verdict(&at("version: [2, 3, 2], direct: standard")),
        Some((Direct, TABLE))
    );
    assert_eq!(
        verdict(&at("version: [2, 3, 2], direct: disabled")),
        Some((
            AcceptedButBuffered(Buffered::ZfsDisabled),
            DirectIoBasis::Observed
        ))
    );
    assert_eq!(reason(&at("version: [2, 3, 2]")), Some(Reason::Undecided));
}

#[test]
fn an_overlay_behaves_like_its_upper_directory() {
    let text = r#"
schema_version: "1.0"
kernel: {version: [6, 18, 44]}
mounts:
  - {id: m1, point: /merged, fs: f1}
  - {id: m2, point: /up, fs: f2}
filesystems:
  - {id: f1, kind: overlay, overlay: {upper: /up/dir}}
  - {id: f2, kind: tmpfs}
"#;
    let read = Facts::parse(text).unwrap();
    let direct = HostIndex::new(&read.facts)
        .direct_io("/merged/x.img")
        .known()
        .unwrap();
    assert_eq!(direct.verdict, AcceptedButBuffered(Buffered::Tmpfs));
    assert!(
        direct.because.contains("upper directory"),
        "{}",
        direct.because
    );
    // An upper directory on the overlay itself is a mistake in the facts, and ends all the same.
    let text = text.replace("/up/dir", "/merged/again");
    let read = Facts::parse(&text).unwrap();
    assert!(
        HostIndex::new(&read.facts)
            .direct_io("/merged/x.img")
            .is_unknown()
    );
}

#[test]
fn a_block_device_does_direct_io() {
    let read = Facts::parse(
        "schema_version: '1.0'\nblockdevs: [{id: b1, kind: disk, paths: [/dev/sda]}]\n",
    )
    .unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.direct_io("/dev/sda").known().unwrap().verdict, Direct);
    assert!(index.direct_io("/dev/sdb").is_not_collected());
}

#[test]
fn a_declaration_fills_gaps_and_never_overrides_observations() {
    let declared = |verdict: &str| format!("present: true, dio: {{verdict: {verdict}}}");
    let fuse = host(
        "6, 12, 0",
        "kind: fuse.sshfs",
        "",
        "nocow: null",
        &declared("direct"),
    );
    assert_eq!(verdict(&fuse), Some((Direct, DirectIoBasis::Declared)));
    // A person may know better than the table …
    let xfs = host(
        "6, 12, 0",
        "kind: xfs",
        "",
        "nocow: null",
        &declared("unsupported"),
    );
    assert_eq!(verdict(&xfs), Some((Unsupported, DirectIoBasis::Declared)));
    // … but not better than the kernel itself.
    let seen = "present: true, dio: {dioalign: set, mem: 512, off: 512, verdict: unsupported}";
    assert_eq!(
        reason(&host("6, 12, 0", "kind: xfs", "", "nocow: null", seen)),
        Some(Reason::Conflict)
    );
    // An inconclusive probe decides nothing.
    let open = host(
        "6, 12, 77",
        SINGLE,
        PLAIN,
        "nocow: false",
        "present: true, nocow: false, dio: {verdict: direct-cow-or-buffered}",
    );
    assert_eq!(
        verdict(&open),
        Some((AcceptedButBuffered(Buffered::BtrfsChecksums), TABLE))
    );
}

#[test]
fn every_verdict_has_a_reason() {
    for (kernel, filesystem) in [
        ("6, 1, 192", SINGLE),
        ("6, 12, 77", RAID1),
        ("6, 6, 0", "kind: tmpfs"),
        ("6, 6, 0", "kind: xfs"),
    ] {
        let facts = host(kernel, filesystem, PLAIN, "nocow: true", "present: false");
        let because = HostIndex::new(&facts)
            .direct_io("/i/a.img")
            .known()
            .unwrap()
            .because;
        assert!(!because.is_empty() && !because.ends_with('.'), "{because}");
    }
}

#[test]
fn what_is_missing_is_named_unless_the_reason_has_a_detail() {
    let detail = |profile: &str, nocow: &str| {
        let btrfs = format!("kind: btrfs, btrfs: {{data_profile: {profile}}}");
        let file = format!("present: true, nocow: {nocow}");
        let facts = host("6, 12, 77", &btrfs, PLAIN, "nocow: true", &file);
        match HostIndex::new(&facts).direct_io("/i/a.img") {
            Fact::Unknown(unknown) => unknown.detail().to_owned(),
            Fact::Known(_) | Fact::Absent | Fact::NotCollected => "known".to_owned(),
        }
    };
    let (bare, detailed) = ("{unknown: permission}", "{unknown: permission, detail: x}");
    assert_eq!(detail(bare, "true"), "the btrfs data profile");
    assert_eq!(detail(detailed, "true"), "x");
    assert_eq!(detail("[single]", bare), "the NOCOW flag");
    assert_eq!(detail("[single]", detailed), "x");
    assert_eq!(detail("[single]", "true"), "known");
}

#[test]
fn the_data_mode_of_ext4_itself_takes_precedence_over_the_option() {
    let journal = AcceptedButBuffered(Buffered::Ext4DataJournal);
    for (mode, option, expected) in [
        ("journal", "data: null", journal),
        ("ordered", "data: journal", Direct),
        ("ordered", "data: null", Direct),
    ] {
        let filesystem = format!("kind: ext4, ext4: {{data_mode: {mode}}}");
        let facts = host("6, 1, 0", &filesystem, option, "", "present: true");
        let found = verdict(&facts).map(|(effect, _)| effect);
        assert_eq!(found, Some(expected), "{mode}, {option}");
    }
}
