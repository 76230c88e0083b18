//! Allowances that are written allow every finding, and change nothing else.

use std::collections::BTreeMap;

use vmdisk::{LintOptions, allow, lint, read};
use vmdisk_tests::fix_cases::{FixCase, Syntax, fix_cases};

const REASON: &str = "it is meant (ticket #1): it's fine";

/// The parts of `after` that are not in `before`, if everything else is there in the same order.
fn inserted(before: &str, after: &str) -> Option<String> {
    let mut rest = before.lines().peekable();
    let mut new = Vec::new();
    for line in after.lines() {
        match rest.peek() {
            Some(next) if *next == line => {
                rest.next();
            }
            // A comment at the end of a line.
            Some(next)
                if line
                    .strip_prefix(*next)
                    .is_some_and(|end| end.starts_with(" # ")) =>
            {
                new.push(line[next.len()..].to_owned());
                rest.next();
            }
            _ => new.push(line.to_owned()),
        }
    }
    rest.next().is_none().then(|| new.join("\n"))
}

/// Allows the findings of a case; the numbers of findings and of findings that are left.
fn check(case: &FixCase, options: &LintOptions) -> (usize, usize) {
    let document = read(&case.text).expect("cases are read");
    let before = lint(&document, options);
    let result = allow(document, &read, options, REASON);
    let after = result.document.text;
    let report = lint(&read(&after).expect("comments leave it readable"), options);
    assert_eq!(
        report.diagnostics, result.report.diagnostics,
        "{}",
        case.origin
    );
    let is_about_allowances = |name: &str| {
        matches!(
            name,
            "allowance-unused" | "allowance-without-reason" | "allowance-unknown-rule"
        )
    };
    let count = |report: &vmdisk::LintReport| {
        let found = report.diagnostics.iter();
        found
            .filter(|found| !is_about_allowances(found.rule.name))
            .count()
    };
    // Nothing is unused, and the number of all findings is the same.
    assert_eq!(
        before.diagnostics.len() - count(&before),
        report.diagnostics.len() - count(&report),
        "{}\n{after}",
        case.origin
    );
    if result.added == 0 {
        assert_eq!(*after, case.text, "{}", case.origin);
    } else {
        let new = inserted(&without_blank_breaks(&case.text, &after), &after);
        let new = new.unwrap_or_else(|| panic!("{}\n{}\n{after}", case.origin, case.text));
        assert_eq!(new.matches("vmdisk: allow(").count(), result.added, "{new}");
    }
    // A second run changes nothing.
    let again = allow(read(&after).expect("it was read"), &read, options, REASON);
    assert_eq!(
        (again.document.text, again.added),
        (after, 0),
        "{}",
        case.origin
    );
    (count(&before), count(&report))
}

/// The text with line ends where a comment came between two elements of one line.
fn without_blank_breaks(before: &str, after: &str) -> String {
    let mut out = String::new();
    let mut rest = before;
    let mut is_inside = false;
    for line in after.split_inclusive('\n') {
        if line.trim_start().starts_with("<!-- vmdisk: allow(") && line.contains(REASON) {
            is_inside = true;
            continue;
        }
        let text = line.trim_end_matches(['\n', '\r']);
        if rest.starts_with(line) {
            out.push_str(line);
            rest = &rest[line.len()..];
        } else if rest.starts_with(text) && (is_inside || !text.is_empty()) {
            out.push_str(text);
            out.push('\n');
            rest = &rest[text.len()..];
        }
    }
    out.push_str(rest);
    out
}

#[test]
fn every_finding_of_every_example_can_be_allowed_in_its_file() {
    let mut findings: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for case in fix_cases() {
        let name = match case.syntax {
            Syntax::Xml => "XML",
            Syntax::Spec => "specs",
            Syntax::MonitorScript => "QMP scripts",
            _ => "command lines",
        };
        let (before, left) = case.with_options(|options| check(&case, options));
        // JSON has no comments.
        let expected = if name == "QMP scripts" { before } else { 0 };
        assert_eq!(left, expected, "{}\n{}", case.origin, case.text);
        let sums = findings.entry(name).or_default();
        *sums = (sums.0 + before, sums.1 + left);
    }
    println!("findings and those that are left, by syntax: {findings:?}");
    assert!(
        findings["XML"].0 > 200 && findings["specs"].0 > 50,
        "{findings:?}"
    );
}

#[test]
fn a_comment_is_written_where_it_covers_one_element_of_a_crowded_line() {
    let disk = |target: &str, cache: &str| {
        format!(
            "<disk type='file'><driver name='qemu' type='raw'{cache} discard='unmap'/><source file='/{target}'/><target dev='{target}' bus='virtio'/></disk>"
        )
    };
    for end in ["\n", "\r\n"] {
        let text = format!(
            "<devices>{}{}{end}</devices>{end}",
            disk("vda", " cache='none'"),
            disk("vdb", " cache='unsafe'")
        );
        let options = LintOptions::default();
        let result = allow(read(&text).unwrap(), &read, &options, "scratch");
        assert!(
            result.report.diagnostics.is_empty(),
            "{}",
            result.document.text
        );
        let comment = format!("{end}<!-- vmdisk: allow(cache-unsafe) scratch -->{end}");
        assert_eq!(result.document.text.replace(&comment, ""), text);
        assert_eq!(result.added, 1);
    }
}
