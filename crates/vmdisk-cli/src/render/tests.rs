//! Golden output of every format over one made-up report, so that new rules do not change it.

use std::path::Path;

use vmdisk::report::{DocumentReport, Unchecked, UncheckedPlaces};
use vmdisk::rules::find;
use vmdisk::source::{Edit, LineIndex, Span};
use vmdisk::{
    AllowedBy, Applicability, Confidence, Diagnostic, FixScope, Fixed, LintOptions, RelatedPlace,
    Severity, TextPlace,
};

use crate::args::LintFormat;
use crate::exit::Exit;
use crate::render::View;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::render::renderer::{Content, Renderer};
use crate::render::summary::Missed;
use crate::report::caveats::Caveats;
use crate::report::input::InputReport;
use crate::report::run::RunReport;
use crate::report::tally::Tally;

const TEXT: &str = "\
<domain type='kvm'>
  <name>web1</name>
  <iothreads>1</iothreads>
  <devices>
    <!-- vmdisk: allow(cache-unsafe) rebuilt each night -->
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe'/>
      <source file='/srv/scratch.img'/>
      <target dev='vdb' bus='virtio'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe'/>
      <source file='/srv/\u{202e}gpj.1bew\u{1b}[31m.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
";

fn span_of(part: &str) -> Span {
    let start = TEXT.rfind(part).unwrap();
    Span::new(start, start + part.len())
}

/// The findings of a text, with fixes that have no effect. They are the values of the sample, because only the library
/// can create them.
fn fixed(text: &str) -> Fixed {
    let read_again = |_: &str| vmdisk::read(text);
    let document = vmdisk::read(text).unwrap();
    vmdisk::fix_document(
        document,
        &read_again,
        &LintOptions::default(),
        FixScope::Safe,
    )
}

/// A disk with the mistake that the report is about.
const UNSAFE: &str = "<disk type='file'><driver name='qemu' type='raw' cache='unsafe'/><source file='/a'/>\
    <target dev='vda'/></disk>";

fn found(text: &str, rule: &str) -> Diagnostic {
    let report = vmdisk::lint(&vmdisk::read(text).unwrap(), &LintOptions::default());
    let of_rule = |finding: &Diagnostic| finding.rule.name == rule;
    report.diagnostics.into_iter().find(of_rule).unwrap()
}

fn place(span: Span, is_exact: bool, breadcrumb: &str) -> TextPlace {
    let lines = LineIndex::new(TEXT);
    let mut place = found(UNSAFE, "cache-unsafe").place;
    place.span = span;
    place.start = lines.position(TEXT, span.start);
    place.end = lines.position(TEXT, span.end);
    place.is_exact = is_exact;
    breadcrumb.clone_into(&mut place.breadcrumb);
    place
}

fn related(span: Span, breadcrumb: &str, label: &str) -> RelatedPlace {
    let disk =
        "<disk type='file'><driver type='raw'/><source file='/a'/><target dev='vda'/></disk>";
    let twice = format!("<devices>{disk}{disk}</devices>");
    let mut related = found(&twice, "duplicate-target").related.remove(0);
    related.place = place(span, true, breadcrumb);
    label.clone_into(&mut related.label);
    related
}

fn finding(severity: Severity, title: &str, place: TextPlace) -> Diagnostic {
    let mut finding = found(UNSAFE, "cache-unsafe");
    finding.severity = severity;
    finding.confidence = Confidence::Certain;
    finding.disk.as_mut().unwrap().index = 1;
    title.clone_into(&mut finding.title);
    finding.place = place;
    finding.label = None;
    finding.related.clear();
    finding.notes.clear();
    finding.help = None;
    finding
}

/// The fix of the finding becomes these edits.
fn set_fix(finding: &mut Diagnostic, edits: Vec<Edit>, applicability: Applicability) {
    let fix = finding.fix.as_mut().unwrap();
    fix.edits = edits;
    fix.applicability = applicability;
}

#[allow(clippy::too_many_lines, reason = "a report with one of each kind")]
fn sample() -> Vec<InputReport> {
    let cache = place(span_of("unsafe"), true, "disk vda › driver/@cache");
    let span = cache.span;
    let title = "`vda` throws away the guest's flushes";
    let mut error = finding(Severity::Error, title, cache);
    error.label = Some("QEMU drops every flush in this mode".to_owned());
    error.related = vec![
        related(
            span_of("vda"),
            "disk vda › target/@dev",
            "this is the\ndisk",
        ),
        related(
            span_of("/srv/\u{202e}gpj.1bew\u{1b}[31m.qcow2"),
            "disk vda › source path",
            "what it keeps",
        ),
    ];
    error.notes = vec!["/srv is on xfs, 100% full: see a,b::c".to_owned()];
    error.help = Some("write cache='writeback'".to_owned());
    let edits = vec![Edit::replace(span, "writeback")];
    set_fix(&mut error, edits, Applicability::Safe);

    let driver = "<driver name='qemu' type='qcow2' cache='unsafe'/>";
    let unwritten = place(span_of(driver), false, "disk vda › driver/@iothread");
    let mut warning = finding(Severity::Warning, "`vda` shares an event loop", unwritten);
    warning.confidence = Confidence::Assumed;
    warning.help = Some("give the disk an event loop of its own".to_owned());
    let end = span_of("/>\n      <source file='/srv/\u{202e}").start;
    let edits = vec![
        Edit::replace(span_of("1</iothreads>"), "2</iothreads>"),
        Edit::insert(end, " iothread='2'"),
    ];
    set_fix(&mut warning, edits, Applicability::Unsafe);

    let unwritten = place(span_of(driver), false, "disk vda › driver/@discard");
    let mut advice = finding(Severity::Advice, "`vda` never gives back space", unwritten);
    advice.notes = vec!["left out unless asked for".to_owned()];
    advice.help = Some("write discard='unmap'".to_owned());
    advice.fix = None;

    let first_cache = TEXT.find("unsafe'").unwrap();
    let cache = Span::new(first_cache, first_cache + 6);
    let mut allowed = finding(
        Severity::Error,
        "`vdb` throws away the guest's flushes",
        place(cache, true, "disk vdb › driver/@cache"),
    );
    let disk = allowed.disk.as_mut().unwrap();
    disk.index = 0;
    disk.target = Some("vdb".to_owned());
    allowed.fix = None;
    allowed.allowed_by = Some(AllowedBy::InFile {
        reason: Some("rebuilt each night".to_owned()),
        span: span_of("<!-- vmdisk: allow(cache-unsafe) rebuilt each night -->"),
    });

    let unchecked = find("cache-unsafe").unwrap();
    let missed = |disk, target, field, what| Unchecked {
        rule: unchecked,
        disk: Some((disk, Some(target))),
        field,
        what,
        why: vmdisk::rules::Missing::NO_FACTS,
        hosts: &[],
        places: 1,
        further_disks: &[],
    };
    let no_facts = vmdisk::rules::Missing::NO_FACTS;
    let mut report = DocumentReport::default();
    report.domain = Some("web1".to_owned());
    report.disks = 2;
    report.text = TEXT.into();
    report.lines = LineIndex::new(TEXT).into();
    report.findings = vec![error, warning, advice];
    report.allowed = vec![allowed];
    report.not_checked = UncheckedPlaces::from_iter([
        missed(
            0,
            "vdb",
            "disk vdb › driver/@io",
            "file system of /srv/scratch.img",
        ),
        missed(
            1,
            "vda",
            "disk vda › driver/@io",
            "file system of /srv/web1.qcow2",
        ),
    ]);
    report.unchecked_rules.rules = vec![unchecked];
    report.unchecked_rules.reasons = vec![no_facts.into()];
    report.failed_fixes = fixed(UNSAFE).failed;
    let broken = "<domain>\n  <devices>\n</domain>\n";
    let end = broken.rfind("</domain>").unwrap();
    let open = broken.find("<devices>").unwrap();
    let message = Message::error("expected `</devices>`, found `</domain>`")
        .at(MessagePlace::new(
            "d/broken.xml".to_owned(),
            Some(MessageText {
                text: SharedText::new(broken),
                span: Span::new(end, end + 9),
                label: None,
                related: vec![(Span::new(open, open + 9), "opened here".to_owned())],
            }),
        ))
        .help("close it".to_owned());
    vec![
        InputReport {
            fail_on: Severity::Error,
            ..InputReport::new(Path::new("d/a b\u{1b}[2J,c.xml"), Ok(report))
        },
        InputReport::failed(Path::new("d/broken.xml"), message),
    ]
}

fn tally_of(inputs: &[InputReport]) -> Tally {
    let mut tally = Tally::default();
    inputs.iter().for_each(|input| tally.add(input));
    tally
}

/// The report of the sample in one format.
fn written(format: LintFormat, view: View<'_>) -> String {
    let inputs = sample();
    let tally = tally_of(&inputs);
    let caveats = Caveats {
        not_checked: None,
        unchecked_fails: false,
        old_facts: &[],
        old_facts_fail: true,
    };
    let run = RunReport {
        inputs: &inputs,
        tally: &tally,
        caveats: &caveats,
        host: None,
        facts: "without facts of a host",
        said: &vmdisk::report::SaidOnce::default(),
        exit: Exit::CouldNot,
    };
    let renderer = Renderer {
        content: Content::Findings(format),
        view,
    };
    let mut out = Vec::new();
    renderer.write(run, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn assert_harmless(text: &str) {
    let hazard = text.chars().find(|character| {
        *character != '\n' && crate::sanitize::line(&character.to_string()) != character.to_string()
    });
    assert_eq!(hazard, None, "{text}");
}

#[test]
fn for_people() {
    let view = View {
        show_allowed: true,
        ..View::everything()
    };
    let text = written(LintFormat::Full, view);
    assert_harmless(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_command_without_fixes_does_not_suggest_them() {
    let view = View {
        suggests_fix: false,
        ..View::everything()
    };
    let text = written(LintFormat::Full, view);
    assert!(text.contains("help: write cache='writeback'"), "{text}");
    assert!(!text.contains("--fix"), "{text}");
    let Tally { summary, .. } = tally_of(&sample());
    assert!(summary.text(true).contains("--fix"));
    assert!(!summary.text(false).contains("--fix"));
}

#[test]
fn for_people_with_everything() {
    let view = View {
        verbose: true,
        ..View::everything()
    };
    insta::assert_snapshot!(written(LintFormat::Full, view));
}

#[test]
fn for_people_in_colour() {
    let view = View {
        quiet: true,
        colored: true,
        ..View::everything()
    };
    let text = written(LintFormat::Full, view);
    assert!(
        text.contains("\u{1b}[1m\u{1b}[91merror[cache-unsafe]"),
        "{text:?}"
    );
    assert!(
        !text.contains("\u{1b}[2J") && !text.contains("\u{1b}[31m"),
        "{text:?}"
    );
}

#[test]
fn concisely() {
    let view = View {
        show_allowed: true,
        ..View::everything()
    };
    let text = written(LintFormat::Concise, view);
    assert_harmless(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn for_github() {
    let text = written(LintFormat::Github, View::everything());
    assert_harmless(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn for_programs() {
    insta::assert_snapshot!(written(LintFormat::Json, View::everything()));
}

#[test]
fn for_code_scanning() {
    let log = written(LintFormat::Sarif, View::everything());
    // The page of the rule is the rule's business.
    let mut log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let rule = &mut log["runs"][0]["tool"]["driver"]["rules"][0];
    for key in ["help", "fullDescription"] {
        assert!(rule[key]["text"].as_str().unwrap().len() > 20);
        rule[key] = "(the page)".into();
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&log).unwrap());
}

#[test]
fn in_the_end() {
    let all = sample();
    let mut text = tally_of(&all).summary.text(true);
    text.push_str(&Missed::of(&all).text(None, &[]));
    for checked in &all {
        if let Err(message) = &checked.outcome {
            text.push_str(&message.render(false));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn any_place_in_any_text_is_rendered_without_a_panic() {
    let pieces = [
        "<disk>",
        "\n",
        "\r\n",
        "\t",
        "é",
        "\u{1f4be}",
        "\u{202e}",
        "\u{9b}",
        " ",
        "",
        "x",
        "\u{0}",
        "\r",
    ];
    // A small generator: the same texts on every run.
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..3_000 {
        let text: String = (0..next(40)).map(|_| pieces[next(pieces.len())]).collect();
        let boundaries: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        let mut span = || {
            let (a, b) = (
                boundaries[next(boundaries.len())],
                boundaries[next(boundaries.len())],
            );
            Span::new(a.min(b), a.max(b))
        };
        let (main, other, edited) = (span(), span(), span());
        let lines = LineIndex::new(&text);
        let edits = [Edit::replace(edited, "new\nlines\n")];
        let rendered = crate::render::block::Block {
            heading: crate::render::block::Heading::Warning,
            id: Some("x"),
            url: None,
            title: "title",
            path: Some("a.xml"),
            quoted: Some(crate::render::block::Quoted {
                text: &text,
                lines: &lines,
                secrets: &vmdisk_source::secrets::Secrets::default(),
                span: main,
                label: Some("label"),
                snippet: true,
            }),
            related: vec![(other, "related")],
            notes: vec!["a\nb".to_owned()],
            help: Some("help".to_owned()),
            patch: &edits,
        }
        .render(false);
        assert!(rendered.contains("title"), "{text:?}");
        assert_harmless(&rendered);
    }
}
