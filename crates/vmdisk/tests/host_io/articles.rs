//! The five articles the project began from.

use vmdisk_facts::Facts;

use super::support::{CACHE, DIRECT, FORMAT, THIN, facts_in, fixtures, missed, on, said};

fn article(name: &str) -> (String, Facts) {
    let folder = fixtures().join("articles").join(name);
    let xml = std::fs::read_to_string(folder.join("domain.xml"))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    (xml, facts_in(&folder.join("facts.json")))
}

fn rules() -> Vec<&'static str> {
    let more = ["io-uring-disabled", "source-missing"];
    [&DIRECT[..], &CACHE, &FORMAT, &THIN, &more].concat()
}

fn expect(name: &str, xml: &str, facts: &Facts, expected: &[&str]) {
    let outcome = on(facts, xml);
    assert_eq!(said(&outcome, &rules()), expected, "{name}");
    let missed = missed(&outcome, &rules());
    assert!(missed.is_empty(), "{name}: {missed:?}");
}

#[test]
fn each_article_is_told_what_its_author_could_not_know() {
    let corrupts = ["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"];
    // Two copies of the data speak for copy-on-write, so that it is a matter of choice.
    let corrupts_with_two_copies = ["btrfs-cow-image advice", "btrfs-dio-csum-corruption error"];
    let leaks = ["discard-missing-thin warning", "thin-zeroing-off error"];
    let implicit = "cache-implicit pedantic";
    let grows = "discard-missing-thin advice";
    for (name, expected) in [
        ("000-btrfs-cache-modes", &corrupts[..]),
        ("001-lvm-thin-iothread-hugepages", &leaks),
        ("002-md-btrfs-schedulers", &corrupts_with_two_copies),
        ("003-qcow2-io-native", &[grows]),
        (
            "004-direct-raw-qcow2",
            &[implicit, implicit, implicit, implicit, grows],
        ),
    ] {
        let (xml, facts) = article(name);
        expect(name, &xml, &facts, expected);
    }
}

#[test]
fn each_mode_of_the_first_article_has_its_own_answer() {
    let (xml, facts) = article("000-btrfs-cache-modes");
    let copied = "btrfs-cow-image warning";
    for (mode, expected) in [
        ("writethrough", &[copied, "cache-writethrough warning"][..]),
        ("none", &[copied, "btrfs-dio-csum-corruption error"]),
        ("writeback", &[copied]),
        ("unsafe", &[copied, "cache-unsafe error"]),
    ] {
        let xml = xml.replace("cache='none'", &format!("cache='{mode}'"));
        expect(mode, &xml, &facts, expected);
    }
}
