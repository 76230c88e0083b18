//! Each mistake is told with its exact place, and reading goes on.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use vmdisk_libvirt::read;
use vmdisk_model::*;
use vmdisk_rule::Problem;
use vmdisk_source::apply_edits;

/// A disk that is all right, but for what is put into it.
fn disk(attributes: &str, inside: &str) -> String {
    let head = format!("<disk type='file'{attributes}>");
    format!("{head}<source file='/a'/><target dev='vda'/>{inside}</disk>")
}

/// The only problem of a text.
#[track_caller]
fn only_problem(text: &str) -> Problem {
    let mut problems = read(text).unwrap().problems;
    assert_eq!(problems.len(), 1, "{text}: {problems:#?}");
    problems.remove(0)
}

/// Kind, place and help of the only problem, and the text once its fix is applied.
#[track_caller]
fn assert_problem(text: &str, kind: &str, at: &str, help: Option<&str>, fixed: Option<&str>) {
    let problem = only_problem(text);
    let found = problem.span.slice(text).unwrap();
    assert_eq!(
        (problem.rule.name, found, problem.help.as_deref()),
        (kind, at, help),
        "{text}\n{problem:#?}"
    );
    let after = apply_edits(text, &problem.fix).unwrap();
    match fixed {
        Some(fixed) => {
            assert!(after.contains(fixed), "{after}");
            assert_eq!(read(&after).unwrap().problems, [], "{after}");
        }
        None => assert_eq!(after, text),
    }
}

/// The help where nothing resembles a name.
const UNKNOWN: Option<&str> = Some("check the spelling in libvirt's documentation, or remove it");

#[test]
fn a_bad_word_is_an_error_with_its_place_and_reading_goes_on() {
    let text = disk(
        " device='disc'",
        "<driver cache='writebak' io='native'/><readonly/>",
    );
    let document = read(&text).unwrap();
    let found: Vec<_> = document
        .problems
        .iter()
        .map(|problem| (problem.rule.name, problem.span.slice(&text).unwrap()))
        .collect();
    assert_eq!(
        found,
        [("invalid-value", "disc"), ("invalid-value", "writebak")]
    );
    let disk = &document.domain.disks[0];
    assert_eq!(disk.backend.cache, None);
    assert_eq!(disk.backend.aio, Some(AioMode::Native));
    assert!(disk.backend.is_read_only);
    let written = document.write().unwrap();
    assert!(written.contains("cache='writebak'") && written.contains("device='disc'"));
}

#[test]
fn a_bad_value_names_what_was_expected_and_what_was_meant() {
    let problem = only_problem(&disk("", "<driver cache='writebak'/>"));
    assert_eq!(
        problem.message,
        "unknown value `writebak` for `cache`, expected one of `none`, `writethrough`, \
         `writeback`, `directsync`, `unsafe`, `default`"
    );
    assert_eq!(problem.at, FieldPath::Disk(0, DiskField::Cache));
    let did_you_mean = |word: &str| format!("did you mean `{word}`?");
    for (attribute, value, meant) in [
        ("cache", "writebak", Some("writeback")),
        ("cache", "None", Some("none")),
        ("cache", "off", Some("none")),
        ("cache", "fast", None),
        ("cache", "", None),
        ("type", "qcow22", Some("qcow2")),
        ("io", "io-uring", Some("io_uring")),
        ("discard", "umap", Some("unmap")),
        ("discard", "on", Some("unmap")),
        ("discard", "off", Some("ignore")),
        ("detect_zeroes", "true", Some("on")),
        ("copy_on_read", "yes", Some("on")),
        ("error_policy", "reprot", Some("report")),
        ("rerror_policy", "enospace", None),
        ("queues", "four", None),
        ("queues", "-1", None),
        ("queues", "4 ", None),
        ("queue_size", "4294967296", None),
        ("iothread", "0x1", None),
        ("ats", "maybe", None),
    ] {
        let text = disk("", &format!("<driver {attribute}='{value}'/>"));
        let help = meant.map(did_you_mean);
        let fixed = meant.map(|meant| format!("{attribute}='{meant}'"));
        assert_problem(
            &text,
            "invalid-value",
            value,
            help.as_deref(),
            fixed.as_deref(),
        );
    }
}

#[test]
fn white_space_is_accepted_before_a_number_and_refused_after_it() {
    let limit = |text: &str| disk("", &format!("<iotune><total_iops_sec{text}</iotune>"));
    for accepted in [
        "/>",
        "></total_iops_sec>",
        ">\n 100</total_iops_sec>",
        ">100<!-- IOPS --></total_iops_sec>",
    ] {
        assert_eq!(read(&limit(accepted)).unwrap().problems, [], "{accepted}");
    }
    for (refused, space) in [
        (">100 </total_iops_sec>", " "),
        (">\n100\n</total_iops_sec>", "\n"),
    ] {
        let help = Some("remove the white space");
        let fixed = Some("100</total_iops_sec>");
        assert_problem(&limit(refused), "invalid-value", space, help, fixed);
    }
    let blank = only_problem(&limit("> </total_iops_sec>"));
    assert!(blank.message.starts_with("`<total_iops_sec>` is empty"));

    let domain = |inside: &str| format!("<domain type='kvm'><name>a</name>{inside}</domain>");
    for inside in [
        "<iothreads/>",
        "<blkiotune><weight>500 </weight></blkiotune>",
    ] {
        assert_eq!(read(&domain(inside)).unwrap().problems, [], "{inside}");
    }
    for inside in [
        "<vcpu>2 </vcpu>",
        "<memory>2097152\n</memory>",
        "<iothreads>1 </iothreads>",
    ] {
        only_problem(&domain(inside));
    }
}

#[test]
fn a_common_word_for_a_format_is_not_taken_for_a_similar_name() {
    for (word, meant) in [("img", "raw"), ("qcow3", "qcow2")] {
        let help = format!("perhaps `{meant}`?");
        for inside in [
            format!("<driver type='{word}'/>"),
            format!(
                "<backingStore type='file'><format type='{word}'/><source file='/b'/></backingStore>"
            ),
        ] {
            let text = disk("", &inside);
            assert_problem(&text, "invalid-value", word, Some(&help), None);
        }
    }
    let text = disk(" device='cd'", "");
    let help = Some("did you mean `cdrom`?");
    assert_problem(&text, "invalid-value", "cd", help, Some("device='cdrom'"));
}

#[test]
fn an_unknown_attribute_is_kept_and_told_what_was_meant() {
    for (inside, name, help, fixed) in [
        (
            "<driver discrad='unmap'/>",
            "discrad",
            Some("did you mean `discard`?"),
            Some("<driver discard='unmap'/>"),
        ),
        (
            "<driver Cache='none'/>",
            "Cache",
            Some("did you mean `cache`?"),
            Some("<driver cache='none'/>"),
        ),
        (
            "<driver cache='none' Cache='none'/>",
            "Cache",
            Some("`cache` is written already"),
            None,
        ),
        ("<driver max_bufs='4'/>", "max_bufs", None, None),
        (
            "<blockio logical-block-size='512'/>",
            "logical-block-size",
            Some("did you mean `logical_block_size`?"),
            Some("<blockio logical_block_size='512'/>"),
        ),
        ("<readonly x='1'/>", "x", None, None),
        ("<serial x='1'>s</serial>", "x", None, None),
        (
            "<iotune><read_iops_sec x='1'>5</read_iops_sec></iotune>",
            "x",
            None,
            None,
        ),
        (
            "<geometry cyl='1'/>",
            "cyl",
            Some("did you mean `cyls`?"),
            Some("<geometry cyls='1'/>"),
        ),
    ] {
        let text = disk("", inside);
        assert_problem(&text, "unknown-attribute", name, help.or(UNKNOWN), fixed);
        assert!(read(&text).unwrap().write().unwrap().contains(name));
    }
}

#[test]
fn an_unknown_element_is_kept_and_told_what_was_meant() {
    for (inside, name, help, fixed) in [
        (
            "<read-only/>",
            "read-only",
            Some("did you mean `<readonly>`?"),
            Some("<readonly/>"),
        ),
        (
            "<io_tune ><read_iops_sec>5</read_iops_sec></io_tune >",
            "io_tune",
            Some("did you mean `<iotune>`?"),
            Some("<iotune ><read_iops_sec>5</read_iops_sec></iotune >"),
        ),
        ("<color>red</color>", "color", None, None),
        (
            "<iotune><total_sec>5</total_sec></iotune>",
            "total_sec",
            None,
            None,
        ),
        ("<driver><queue id='1'/></driver>", "queue", None, None),
    ] {
        let text = disk("", inside);
        assert_problem(&text, "unknown-element", name, help.or(UNKNOWN), fixed);
        let written = read(&text).unwrap().write().unwrap();
        assert!(written.contains(&format!("<{name}")), "{written}");
    }
}

#[test]
fn what_others_own_is_not_judged_but_a_near_miss_of_ours_is() {
    let text = "<domain x='1'><cpu mode='any'><foo/></cpu><os bar='1'><boot dev='hd'/></os>
        <devices z='1'><graphics color='blue'/><emulator x='1'>/q</emulator><diskette/>
        <controller type='pci' model='x'><foo/></controller></devices>
        <new_in_libvirt_99/></domain>";
    assert_eq!(read(text).unwrap().problems, []);
    for (inside, name, meant) in [
        ("<memorybacking/>", "memorybacking", "memoryBacking"),
        ("<iothread>4</iothread>", "iothread", "iothreads"),
        (
            "<devices><dsik><source file='/a'/><target dev='vda'/></dsik></devices>",
            "dsik",
            "disk",
        ),
        (
            "<devices><controler type='scsi'/></devices>",
            "controler",
            "controller",
        ),
    ] {
        let text = format!("<domain>{inside}</domain>");
        let help = format!("did you mean `<{meant}>`?");
        let fixed = format!("<{meant}");
        assert_problem(&text, "unknown-element", name, Some(&help), Some(&fixed));
    }
}

#[test]
fn what_is_written_twice_counts_once_and_stays() {
    let text = disk("", "<driver cache='none'/><driver cache='unsafe'/>");
    let document = read(&text).unwrap();
    let [problem] = &document.problems[..] else {
        panic!("{:?}", document.problems);
    };
    assert_eq!(problem.rule.name, "duplicate-value");
    assert_eq!(problem.span.start, text.rfind("driver").unwrap());
    assert_eq!(
        document.domain.disks[0].backend.cache,
        Some(CacheMode::None)
    );
    let again = read(&document.write().unwrap()).unwrap();
    assert_eq!(again.domain, document.domain);
    assert_eq!(again.problems.len(), 1);
    // Elements that libvirt lets repeat are no duplicates.
    let text = disk(
        "",
        "<throttlefilters><throttlefilter group='a'/><throttlefilter group='b'/></throttlefilters>",
    );
    assert_eq!(read(&text).unwrap().problems, []);
}

#[test]
fn a_disk_without_a_source_or_target_is_told_so_unless_its_drive_may_be_empty() {
    for (text, at, missing) in [
        (
            "<disk><target dev='vda'/></disk>",
            "<disk>",
            "`<source file=…>`",
        ),
        (
            "<disk><source/><target dev='vda'/></disk>",
            "<source/>",
            "`<source file=…>`",
        ),
        (
            "<disk><source file=''/><target dev='vda'/></disk>",
            "<source file=''/>",
            "`<source file=…>`",
        ),
        (
            "<disk type='block'><target dev='vda'/></disk>",
            "<disk type='block'>",
            "`<source dev=…>`",
        ),
        (
            "<disk type='vhostuser' device='cdrom'><target dev='vda'/></disk>",
            "<disk type='vhostuser' device='cdrom'>",
            "`<source path=…>`",
        ),
        (
            "<disk type='network'><source name='a'/><target dev='vda'/></disk>",
            "<source name='a'/>",
            "`<source protocol=…>`",
        ),
        (
            "<disk type='volume'><source pool='a'/><target dev='vda'/></disk>",
            "<source pool='a'/>",
            "`volume`",
        ),
        (
            "<disk type='nvme'><source type='pci' namespace='1'/><target dev='vda'/></disk>",
            "<source type='pci' namespace='1'/>",
            "`<address>`",
        ),
        (
            "<disk><source file='/a'><dataStore type='block'><format type='raw'/></dataStore></source><target dev='vda'/></disk>",
            "<dataStore type='block'>",
            "`<source dev=…>`",
        ),
        (
            "<disk><source file='/a'/></disk>",
            "<disk>",
            "`<target dev=…>`",
        ),
        (
            "<disk><source file='/a'/><target dev=''/></disk>",
            "<target dev=''/>",
            "`<target dev=…>`",
        ),
    ] {
        let problem = only_problem(text);
        assert_eq!(problem.rule.name, "missing-value");
        assert_eq!(problem.span.slice(text), Some(at));
        assert!(problem.message.contains(missing), "{}", problem.message);
    }
    for device in ["cdrom", "floppy"] {
        let text = format!(
            "<disk type='block' device='{device}'><driver type='raw'/><target dev='sda'/></disk>"
        );
        let document = read(&text).unwrap();
        assert_eq!(document.problems, []);
        assert_eq!(
            document.domain.disks[0].backend.source,
            BackendSource::Empty
        );
        let written = document.write().unwrap();
        assert!(
            written.contains("type='block'") && written.contains("type='raw'"),
            "{written}"
        );
    }
}

#[test]
fn a_source_for_another_type_of_disk_is_told_so() {
    let text = "<disk type='block'><source file='/dev/sda'/><target dev='vda'/></disk>";
    let problems = read(text).unwrap().problems;
    let [missing, misplaced] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!(missing.rule.name, "missing-value");
    assert_eq!(misplaced.rule.name, "unknown-attribute");
    assert_eq!(misplaced.span.slice(text), Some("file"));
    assert_eq!(
        misplaced.message,
        "attribute `file` does not belong to a source of type `block`"
    );
}

#[test]
fn a_chain_is_read_to_its_end_and_a_store_without_a_type_is_no_silent_end() {
    let chain = |inner: &str| {
        disk(
            "",
            &format!(
                "<backingStore type='file'><format type='raw'/><source file='/b'/>{inner}</backingStore>"
            ),
        )
    };
    let backing = |text: &str| {
        let document = read(text).unwrap();
        assert_eq!(document.problems, [], "{text}");
        let image = document.domain.disks[0].backend.image().unwrap().clone();
        image.chain().last().unwrap().backing.clone()
    };
    assert_eq!(backing(&chain("")), Backing::Unspecified);
    assert_eq!(backing(&chain("<backingStore/>")), Backing::Terminated);
    assert_eq!(
        backing(&disk("", "<backingStore index='3'/>")),
        Backing::Terminated
    );

    let text = disk(
        "",
        "<backingStore><format type='raw'/><source file='/b'/></backingStore>",
    );
    assert_problem(
        &text,
        "missing-value",
        "<backingStore>",
        Some("add `type='file'`, or make the element empty"),
        None,
    );
    let text = disk(
        "",
        "<backingStore type='block'><format type='raw'/></backingStore>",
    );
    let problem = only_problem(&text);
    assert_eq!(problem.at, FieldPath::Image(0, 1, ImageField::Image));
    assert!(problem.message.contains("`<source dev=…>`"));
}

#[test]
fn sizes_that_are_none_are_told_with_their_place() {
    for (inside, at) in [
        ("<memory unit='gigs'>1</memory>", "gigs"),
        ("<memory unit='EiB'>99</memory>", "<memory unit='EiB'>"),
        ("<memory>a lot</memory>", "a lot"),
        ("<memory/>", "<memory/>"),
        ("<vcpu>\n four\n</vcpu>", "four"),
        ("<iothreads>1000000</iothreads>", "<iothreads>"),
        (
            "<memoryBacking><hugepages><page size='1' unit='x'/></hugepages></memoryBacking>",
            "<page size='1' unit='x'/>",
        ),
    ] {
        let text = format!("<domain>{inside}</domain>");
        let problem = only_problem(&text);
        assert_eq!(problem.rule.name, "invalid-value", "{text}");
        assert_eq!(problem.span.slice(&text), Some(at), "{text}");
        let written = read(&text).unwrap().write().unwrap();
        let value = inside.split(['>', '<']).nth(2).unwrap();
        assert!(written.contains(value), "{written}");
    }
    let domain = read("<domain><memory unit='GiB'>\n 2 </memory><vcpu> 3 </vcpu></domain>")
        .unwrap()
        .domain;
    assert_eq!(
        (domain.memory, domain.vcpus),
        (Some(Bytes::gib(2)), Some(3))
    );
}

#[test]
fn a_default_name_space_is_told_to_hide_everything() {
    let text = "<domain xmlns='http://x'><devices><disk><source file='/a'/><target dev='vda'/></disk></devices></domain>";
    let document = read(text).unwrap();
    assert_eq!(document.domain.disks.len(), 1);
    assert_problem(
        text,
        "invalid-value",
        "xmlns='http://x'",
        Some("delete it"),
        Some("<domain><devices>"),
    );
}

#[test]
fn a_login_or_a_key_in_both_places_is_told_and_both_are_written_back() {
    let secret = "<secret type='ceph' usage='a'/>";
    for (element, name, inside) in [
        ("auth username='a'", "auth", secret),
        ("encryption format='luks'", "encryption", ""),
    ] {
        let text = format!(
            "<disk type='network'><source protocol='rbd' name='a/b'><{element}>{inside}</{name}></source>\
             <target dev='vda'/><{element}>{inside}</{name}></disk>"
        );
        let problem = only_problem(&text);
        assert_eq!(problem.rule.name, "duplicate-value", "{element}");
        let written = read(&text).unwrap().write().unwrap();
        assert_eq!(written.matches(element).count(), 2, "{written}");
        // Where it stood is where it stays.
        let old = format!(
            "<disk type='network'><source protocol='rbd' name='a/b'/><target dev='vda'/><{element}>{inside}</{name}></disk>"
        );
        let written = read(&old).unwrap().write().unwrap();
        assert!(written.contains("name='a/b'/>"), "{written}");
        assert_eq!(written.matches(element).count(), 1, "{written}");
    }
}

#[test]
fn a_pci_address_is_within_the_limits_of_pci() {
    for (part, limit) in [
        ("domain='0x10000' bus='0' slot='1' function='0'", "0xffff"),
        ("domain='0' bus='256' slot='1' function='0'", "0xff"),
        ("domain='0' bus='0' slot='0x20' function='0'", "0x1f"),
        ("domain='0' bus='0' slot='1' function='8'", "0x7"),
    ] {
        let text = disk("", &format!("<address type='pci' {part}/>"));
        let problem = only_problem(&text);
        assert_eq!(problem.rule.name, "invalid-value", "{text}");
        let end = format!("expected a number from 0 to {limit}");
        assert!(problem.message.ends_with(&end), "{}", problem.message);
        let document = read(&text).unwrap();
        let written = document.write().unwrap();
        let value = problem.span.slice(&text).unwrap();
        assert!(written.contains(&format!("'{value}'")), "{written}");
    }
}

#[test]
fn ports_have_the_range_that_libvirt_accepts_in_each_place() {
    let backup = |port: &str| {
        format!(
            "<domainbackup mode='pull'><server transport='tcp' name='localhost' port='{port}'/></domainbackup>"
        )
    };
    let pool = |port: &str| {
        format!(
            "<pool type='iscsi'><name>a</name><source><host name='h' port='{port}'/>\
             <device path='iqn.2026-11.example:a'/></source>\
             <target><path>/dev/disk/by-path</path></target></pool>"
        )
    };
    for text in [
        backup("65535"),
        pool("65536"),
        pool("-1"),
        pool("2147483647"),
    ] {
        assert_eq!(read(&text).unwrap().problems, [], "{text}");
    }
    for (text, port) in [
        (backup("65536"), "65536"),
        (backup("70000"), "70000"),
        (pool("2147483648"), "2147483648"),
        (pool("x"), "x"),
    ] {
        let problem = only_problem(&text);
        let at = problem.span.slice(&text);
        assert_eq!((problem.rule.name, at), ("invalid-value", Some(port)));
    }
}
