//! A misspelt word gives one finding, and its fix gives the text without the mistake.

use std::collections::BTreeSet;

use vmdisk::{Diagnostic, FixScope, LintOptions, fix, lint, read};

/// A guest without findings. Each attribute and element of its disk is misspelt in turn.
const XML: &str = "<domain type='kvm'>
  <name>web1</name>
  <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none' discard='unmap' detect_zeroes='off'/>
      <source file='/srv/web1.qcow2' startupPolicy='mandatory'/>
      <target dev='vda' bus='virtio'/>
      <serial>W1</serial>
    </disk>
  </devices>
</domain>
";

/// A command line without findings.
const ARGS: &str = "qemu-system-x86_64 -nodefaults -machine q35 \\
  -drive file=/srv/web1.qcow2,format=qcow2,if=virtio,cache=none,discard=unmap,readonly=off
";

/// Reports about a missing element, which remain beside the finding about its spelling: they are errors.
const MISSING: &str = "missing-value";

/// The word with its second and third letter swapped.
fn misspelt(word: &str) -> Option<String> {
    let mut letters: Vec<char> = word.chars().collect();
    if letters.len() < 4 || letters[1] == letters[2] {
        return None;
    }
    letters.swap(1, 2);
    Some(letters.into_iter().collect())
}

/// The names in a text: what `before` precedes and `after` follows.
fn names<'t>(text: &'t str, before: &[char], after: &[char]) -> BTreeSet<&'t str> {
    let parts = text.split(before).skip(1);
    let names = parts.filter_map(|part| part.split_once(after).map(|(name, _)| name));
    names
        .filter(|name| {
            name.chars()
                .all(|letter| letter.is_ascii_alphabetic() || letter == '_')
        })
        .collect()
}

fn findings(text: &str) -> Vec<Diagnostic> {
    let document = read(text).expect("it is read");
    lint(&document, &LintOptions::default()).diagnostics
}

/// Tries every misspelling of a name in a part of a text; returns what is wrong.
fn try_names(
    text: &str,
    names: &BTreeSet<&str>,
    rules: &[&str],
    wrap: fn(&str) -> Vec<String>,
) -> Vec<String> {
    assert_eq!(findings(text), [], "{text}");
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (name, bad) in names
        .iter()
        .filter_map(|name| Some((name, misspelt(name)?)))
    {
        let mut other = text.to_owned();
        for (good, bad) in wrap(name).iter().zip(wrap(&bad)) {
            if let Some(at) = other.rfind(good) {
                other.replace_range(at..at + good.len(), &bad);
            }
        }
        assert_ne!(other, text, "{name}");
        tried += 1;
        let found = findings(&other);
        let about: Vec<&str> = found.iter().map(|it| it.rule.name).collect();
        let rest: Vec<&&str> = about.iter().filter(|rule| **rule != MISSING).collect();
        if !matches!(rest[..], [rule] if rules.contains(rule)) {
            wrong.push(format!("{bad}: {about:?}"));
        }
        let fixed =
            fix(&other, &LintOptions::default(), FixScope::SafeAndUnsafe).expect("it is read");
        if *fixed.document.text != *text {
            wrong.push(format!("{bad} is fixed to\n{}", fixed.document.text));
        }
    }
    assert!(tried > 3, "{tried}");
    wrong
}

#[test]
fn a_misspelt_attribute_is_one_finding_and_its_fix_is_the_right_name() {
    let (_, disk) = XML.split_once("<disk").expect("it has a disk");
    let names = names(disk, &[' '], &['=']);
    let names = names.into_iter().filter(|name| *name != "file").collect();
    let rules = ["unknown-attribute"];
    let wrong = try_names(XML, &names, &rules, |name| vec![format!(" {name}='")]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_misspelt_element_is_one_finding_and_its_fix_is_the_right_name() {
    let (_, disk) = XML.split_once("<disk").expect("it has a disk");
    let names = names(disk, &['<'], &[' ', '>']);
    let rules = ["unknown-element"];
    let wrong = try_names(XML, &names, &rules, |name| {
        vec![format!("<{name}"), format!("</{name}>")]
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_misspelt_property_is_one_finding_and_its_fix_is_the_right_name() {
    let (_, drive) = ARGS.split_once("-drive").expect("it has a drive");
    let names = names(drive, &[','], &['=']);
    let wrong = try_names(ARGS, &names, &["property-refused"], |name| {
        vec![format!(",{name}=")]
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
