//! The examples of the pages as command lines: a rule reports the same for XML and for its command line.

use std::collections::BTreeMap;

use vmdisk::rules::{Consumer, Context, Example, RULES, Rule, Text, check};
use vmdisk_facts::HostIndex;
use vmdisk_model::Scope;
use vmdisk_qemu::Options;

use super::{Document, add_other_guests, count, facts_named, policy_of, target_of};

const OF_THE_TEXT: &str = "about the text, which is another one";

/// Rules whose examples are reported in XML and not in the command line that vmdisk writes for it, and why.
const NOT_ON_COMMAND_LINES: [(&str, &str); 24] = [
    ("allowance-unknown-rule", OF_THE_TEXT),
    ("allowance-unused", OF_THE_TEXT),
    ("allowance-without-reason", OF_THE_TEXT),
    ("block-size-refused", "both sizes are written where one is"),
    (
        "bus-emulated",
        "the operating system of the guest is no part of its disks",
    ),
    (
        "detect-zeroes-unmap-no-discard",
        "`on` is written, which is what libvirt makes of it",
    ),
    ("duplicate-target", "command lines have no target names"),
    ("duplicate-value", OF_THE_TEXT),
    (
        "emulator-missing",
        "libvirt looks for the program, which a command line begins with",
    ),
    ("format-missing", "the format is written that libvirt takes"),
    ("invalid-value", OF_THE_TEXT),
    (
        "iothread-pinned-on-vcpu",
        "libvirt sets the CPUs of threads, and QEMU has no option for them",
    ),
    (
        "iothread-undefined",
        "libvirt sets the CPUs of threads, and QEMU hears nothing of them",
    ),
    (
        "known-bad-build",
        "some of the bugs are in libvirt, which has no part in a command line",
    ),
    (
        "lun-without-reservations",
        "the capability of `rawio` is given to the program, and is no option",
    ),
    ("missing-value", OF_THE_TEXT),
    (
        "nbd-without-reconnect",
        "libvirt has no part in a command line",
    ),
    (
        "odirect-unsupported",
        "each node of a command line has its own `cache.direct`, so images that only headers name are not checked",
    ),
    (
        "seabios-4096-sectors",
        "the firmware of a command line is read as files on flash",
    ),
    ("target-bus-mismatch", "command lines have no target names"),
    ("undeclared-prefix", OF_THE_TEXT),
    ("unknown-attribute", OF_THE_TEXT),
    ("unknown-element", OF_THE_TEXT),
    (
        "unsupported-by-target",
        "libvirt has no part in a command line",
    ),
];

/// How often a rule speaks of the command line that stands for an example; `None` where there is none.
fn reported_of_command_line(rule: &Rule, example: &Example) -> Option<usize> {
    let facts: Vec<_> = example
        .values_of("facts-")
        .into_iter()
        .map(facts_named)
        .collect();
    let ([] | [_]) = facts.as_slice() else {
        return None;
    };
    let target = target_of(example);
    let document = Document::read(rule, example, &example.text);
    let options = Options {
        target: target.clone(),
    };
    let line = vmdisk_qemu::write(document.domain(), &options).ok()?;
    let text = match document.domain().scope {
        Scope::WholeGuest => line.to_shell(),
        Scope::DisksOnly => format!("qemu-system-x86_64 {}", line.to_shell()),
    };
    let read = vmdisk_qemu::read(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let host = facts.first().map(HostIndex::new);
    let context = Context {
        domain: &read.domain,
        target: &target,
        host: host.as_ref(),
        policy: policy_of(example),
        versioned_syntax: &[],
        names_missing: true,
        open_fields: Some(&read.open_fields),
        consumer: Consumer::Qemu,
    };
    let mut outcome = check(Text::CommandLine(&read), &context);
    add_other_guests(example, &context, &mut outcome);
    Some(count(rule, &outcome))
}

#[test]
fn what_is_said_of_a_guest_is_said_of_its_command_line() {
    let mut differ: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (mut alike, mut without) = (0, 0);
    for rule in RULES.iter().filter(|rule| !rule.libvirt_only) {
        for example in rule.examples() {
            let is_reported = example.says("reported");
            if example.says("args") || !(is_reported || example.says("not-reported")) {
                continue;
            }
            match reported_of_command_line(rule, &example) {
                None => without += 1,
                Some(times) if (times > 0) == is_reported => alike += 1,
                Some(times) => differ.entry(rule.name).or_default().push(format!(
                    "reported {times} times of the command line, {:?}\n{}",
                    example.words, example.text
                )),
            }
        }
    }
    println!("{alike} examples are judged alike, {without} have no command line");
    let named: BTreeMap<&str, &str> = NOT_ON_COMMAND_LINES.into_iter().collect();
    let unnamed: Vec<_> = differ
        .iter()
        .filter(|(rule, _)| !named.contains_key(*rule))
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:#?}");
    let stale: Vec<_> = named
        .keys()
        .filter(|rule| !differ.contains_key(*rule))
        .collect();
    assert!(stale.is_empty(), "no longer so: {stale:?}");
}
