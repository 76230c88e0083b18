//! Templates beside what they render to: nothing is reported of a template that is not true of its result, and what needs no
//! placeholder is reported of both.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmdisk::rules::Missing;
use vmdisk::{FixScope, LintOptions, LintReport, lint, read};

/// A part of the text of a fixture.
enum Part<'t> {
    Text(&'t str),
    /// A placeholder with its values.
    Value(&'t str, Vec<&'t str>),
    Loop(&'t str),
    If(&'t str),
    Else,
    End,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (nth, part) in text.split(['«', '»']).enumerate() {
        let words: Vec<&str> = part.split(' ').collect();
        parts.push(match (nth % 2, &words[..]) {
            (0, _) => Part::Text(part),
            (_, ["for", name]) => Part::Loop(name),
            (_, ["if", name]) => Part::If(name),
            (_, ["else"]) => Part::Else,
            (_, ["end"]) => Part::End,
            _ => {
                let (name, values) = part.split_once('=').expect("a placeholder has values");
                Part::Value(name, values.split('|').collect())
            }
        });
    }
    parts
}

/// How an engine writes a value, a loop, a condition, its alternative and an end; `$` is the name. An engine without
/// statements has the first alternative.
type Engine = (&'static str, &'static str, Option<[&'static str; 4]>);

const ENGINES: [Engine; 11] = [
    (
        "jinja",
        "{{ $ }}",
        Some([
            "{% for $ in $s %}",
            "{% if $ is defined %}",
            "{% else %}",
            "{% end %}",
        ]),
    ),
    (
        "jinja with quotes",
        "{{ vm['$'] | default(\"x\") }}",
        Some([
            "{%- for a in $ -%}",
            "{%- if a < 3 -%}",
            "{%- else -%}",
            "{%- end -%}",
        ]),
    ),
    (
        "go",
        "{{ .Values.$ | quote }}",
        Some([
            "{{- range .$ }}",
            "{{- if and .$ (lt 1 2) }}",
            "{{- else }}",
            "{{- end }}",
        ]),
    ),
    (
        "erb",
        "<%= @$ %>",
        Some([
            "<% @$.each do |d| %>",
            "<%- if @$ && @a < 3 -%>",
            "<%- else -%>",
            "<% end %>",
        ]),
    ),
    (
        "terraform",
        "${var.$}",
        Some([
            "%{ for a in $ ~}",
            "%{ if $ != \"\" ~}",
            "%{ else ~}",
            "%{ end ~}",
        ]),
    ),
    (
        "mustache",
        "{{$}}",
        Some(["{{#$}}", "{{#$}}", "{{else}}", "{{/$}}"]),
    ),
    ("envsubst", "$$", None),
    ("python", "%($)s", None),
    ("format", "{$}", None),
    ("configure", "@$@", None),
    ("batch", "%$%", None),
];

/// The template of an engine, and the text with the `nth` value of each placeholder.
fn written(text: &str, (_, value, statements): &Engine, nth: usize) -> (String, String) {
    let (mut template, mut rendered) = (String::new(), String::new());
    // True in an alternative that the rendered text does not have.
    let mut open: Vec<bool> = Vec::new();
    let statement = |which: usize, name: &str| {
        let statement = statements.map(|all| all[which]).unwrap_or_default();
        let end = if which == 3 && statement == "{% end %}" {
            "{% endif %}"
        } else {
            statement
        };
        end.replace('$', name)
    };
    let mut names: Vec<&str> = Vec::new();
    for part in parts(text) {
        let is_left_out = open.contains(&true);
        match part {
            Part::Text(text) => {
                if statements.is_some() || !is_left_out {
                    template.push_str(text);
                }
                let lines: String = text.chars().filter(|c| *c == '\n').collect();
                rendered.push_str(if is_left_out { &lines } else { text });
                if statements.is_none() && is_left_out {
                    template.push_str(&lines);
                }
            }
            Part::Value(name, values) => {
                if statements.is_some() || !is_left_out {
                    let name = if *value == "@$@" || *value == "%$%" {
                        name.to_uppercase()
                    } else {
                        name.to_owned()
                    };
                    template.push_str(
                        &value
                            .replacen('$', "\0", usize::from(value.starts_with('$')))
                            .replace('$', &name)
                            .replace('\0', "$"),
                    );
                }
                if !is_left_out {
                    rendered.push_str(values[nth % values.len()]);
                }
            }
            Part::Loop(name) | Part::If(name) => {
                let which = usize::from(matches!(part, Part::If(_)));
                template.push_str(&statement(which, name));
                open.push(false);
                names.push(name);
            }
            Part::Else => {
                template.push_str(&statement(2, ""));
                *open.last_mut().expect("an alternative is in a condition") = true;
            }
            Part::End => {
                template.push_str(&statement(3, names.pop().unwrap_or_default()));
                open.pop();
            }
        }
    }
    (template, rendered)
}

fn lint_text(text: &str, what: &str) -> LintReport {
    let document = read(text).unwrap_or_else(|failure| panic!("{what}: {failure:?}\n{text}"));
    lint(&document, &LintOptions::default())
}

/// Rules with the lines of their findings.
fn found(report: &LintReport) -> BTreeSet<(&'static str, usize)> {
    let found = report.diagnostics.iter();
    found
        .map(|it| (it.rule.name, it.place.start.line))
        .collect()
}

fn fixtures() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/templates");
    let entries = std::fs::read_dir(directory).expect("the fixtures are in the repository");
    let path = |entry: Result<std::fs::DirEntry, _>| entry.expect("it can be read").path();
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            std::fs::read_to_string(&path).expect("it is text"),
        )
    };
    // The others are templates already.
    let is_plain = |path: &PathBuf| path.extension().is_some_and(|found| found == "xml");
    let paths = entries.map(path).filter(is_plain);
    let mut all: Vec<_> = paths.map(read).collect();
    all.sort();
    all
}

#[test]
fn a_template_has_the_findings_of_all_texts_that_it_renders_to() {
    let all = fixtures();
    assert_eq!(all.len(), 8);
    let (mut reported, mut templates) = (0, 0);
    for (number, (name, text)) in all.iter().enumerate() {
        for (nth, engine) in ENGINES.iter().enumerate() {
            // Five engines write all guests, and each other engine some of them.
            if nth >= 5 && (nth + number) % 3 > 0 {
                continue;
            }
            templates += 1;
            let what = format!("{name} for {}", engine.0);
            let (template, _) = written(text, engine, 0);
            let report = lint_text(&template, &what);
            assert!(report.placeholders > 4, "{what}");
            let raw = found(&report);
            let mut always: Option<BTreeSet<_>> = None;
            for nth in 0..4 {
                let (_, rendered) = written(text, engine, nth);
                let of_rendered = lint_text(&rendered, &what);
                let known = found(&of_rendered);
                let extra: Vec<_> = raw.difference(&known).collect();
                assert_eq!(
                    extra,
                    [] as [&(&str, usize); 0],
                    "{what}, value {nth}:\n{template}\n{rendered}"
                );
                always = Some(match always {
                    Some(always) => always.intersection(&known).copied().collect(),
                    None => known,
                });
            }
            // A value decides over a finding on its line even where the few values here all have it.
            let lines: Vec<&str> = template.lines().collect();
            let (_, plain) = written(text, engine, 0);
            let plain: Vec<&str> = plain.lines().collect();
            let has_value = |line: usize| lines.get(line - 1) != plain.get(line - 1);
            let missed: Vec<_> = always
                .unwrap_or_default()
                .into_iter()
                .filter(|it| !raw.contains(it) && !has_value(it.1))
                .collect();
            let missed: Vec<_> = missed
                .iter()
                .filter(|(rule, _)| {
                    !report
                        .not_checked
                        .iter()
                        .any(|it| it.rule.name == *rule && it.missing.why == Missing::PLACEHOLDER)
                })
                .collect();
            assert_eq!(missed, [] as [&(&str, usize); 0], "{what}:\n{template}");
            reported += raw.len();
        }
    }
    assert!(
        templates >= 40 && reported > 80,
        "{reported} of {templates}"
    );
}

#[test]
fn a_fix_leaves_all_placeholders_and_statements_as_they_are() {
    let mut mended = 0;
    for (name, text) in &fixtures() {
        let (template, _) = written(text, &ENGINES[1], 0);
        let options = LintOptions::default();
        let fixed = vmdisk::fix(&template, &options, FixScope::SafeAndUnsafe)
            .unwrap_or_else(|failure| panic!("{name}: {failure}"));
        mended += fixed.mended.len();
        let tokens = |text: &str| {
            let marks = text.match_indices(['{', '<']).map(|(at, _)| &text[at..]);
            let marks =
                marks.filter(|it| ["{{", "{%", "<%"].iter().any(|mark| it.starts_with(mark)));
            let end = |it: &str| {
                ["%>", "}}", "%}"]
                    .iter()
                    .filter_map(|mark| it.find(mark))
                    .min()
            };
            let tokens: Vec<String> = marks
                .map(|it| it[..end(it).unwrap_or(0)].to_owned())
                .collect();
            tokens
        };
        assert_eq!(tokens(&fixed.document.text), tokens(&template), "{name}");
    }
    assert!(mended >= 5, "{mended}");
}

#[test]
fn what_was_not_checked_of_a_disk_names_no_value_of_another_disk() {
    let disk = |nth: usize| {
        format!(
            "<disk type='file'><driver name='qemu' type='raw' cache='{{{{ cache{nth} }}}}'/>\
             <source file='{{{{ file{nth} }}}}'/><target dev='sd{}' bus='{{{{ bus{nth} }}}}'/></disk>\n",
            char::from(b'a' + nth as u8)
        )
    };
    let disks: String = (0..4).map(disk).collect();
    let text = format!(
        "<domain type='kvm'><name>a</name><memory>1048576</memory><os><type arch='x86_64'>hvm</type></os>\
         <devices>{disks}</devices></domain>"
    );
    let report = lint_text(&text, "four disks");
    let mut named = 0;
    for missed in &report.not_checked {
        let Some(disk) = missed.at.disk() else {
            continue;
        };
        for nth in (0..4).filter(|nth| missed.missing.what.contains(&format!("{nth} }}}}"))) {
            assert_eq!(nth, disk, "{}: {}", missed.rule.name, missed.missing.what);
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn a_template_that_cannot_be_read_is_named() {
    let engines = [
        ("{{ x }}{% y %}", "a Jinja template"),
        ("{{ .X }}{{ if .Y }}", "a Go template"),
        ("<% x %>", "an ERB template"),
        ("%{ if x ~}", "a Terraform template"),
        ("{{#x}}", "a Mustache template"),
        ("${X}", "a template with `${NAME}`"),
        ("@X@", "a template with `@NAME@`"),
        ("%(x)s", "a format string"),
        ("<?php x ?>", "a PHP template"),
    ];
    for (token, name) in engines {
        let failure = read(&format!("<domain>{token}<a></b></domain>")).expect_err(token);
        let help = failure.help.unwrap_or_default();
        assert!(help.contains(name), "{token}: {help}");
    }
}

#[test]
fn text_that_nothing_fills_in_is_no_template() {
    let plain = [
        "<source protocol='rbd' name='pool/image@snap'/>",
        "<source file='/srv/a%20b%2fc'/>",
        "<target dev='vnet%d'/>",
        "<source file='json:{&quot;driver&quot;:&quot;raw&quot;,&quot;a&quot;:{&quot;b&quot;:1}}'/>",
        "<description>{ a b } 100 % of $5</description>",
        "<uuid>{d0b1c2d3-0000-4000-8000-000000000001}</uuid>",
        "<description>a # b</description>",
    ];
    for text in plain {
        let text = format!("<domain type='kvm'><!-- {{{{ x }}}} $Y -->{text}</domain>");
        let document = read(&text).expect("it is well-formed");
        let template = document.template();
        assert!(
            template.is_none_or(|it| it.placeholders.is_empty()),
            "{text}"
        );
    }
}

#[test]
fn words_in_place_of_values_are_placeholders_only_where_they_cannot_be_values() {
    let disk = |format: &str, path: &str, target: &str| {
        format!(
            "<disk type='file'><driver name='qemu' type='{format}' cache='none'/><source file='{path}'/>\
             <target dev='{target}' bus='virtio'/></disk>"
        )
    };
    for (format, path, target) in [
        ("__FORMAT__", "/srv/a", "vda"),
        ("raw", "__IMAGE__", "vda"),
        ("raw", "DISK0", "vda"),
        ("raw", "DISK_PATH", "TBD"),
        ("FORMAT", "/srv/__NAME__.img", "#DEV#"),
        ("&lt;format&gt;", "&lt;path to image&gt;", "vda"),
        ("[% format %]", "||image||", "`dev`"),
        ("raw", "path-here", "your-dev"),
        ("raw", "/srv/a", "vd__NTH__"),
        ("raw", "/srv/a", "vd#NTH#"),
    ] {
        let report = lint_text(&disk(format, path, target), target);
        let found = found(&report);
        assert!(
            found.is_empty() && report.placeholders > 0,
            "{format} {path} {target}: {found:?}"
        );
    }
    for (format, path, target, rule) in [
        ("RAW", "/srv/a", "vda", "invalid-value"),
        ("raw", "images/a.img", "vda", "relative-path"),
        ("raw", "here", "vda", "relative-path"),
        ("raw", "sphere", "your", "target-name-refused"),
        ("raw", "/srv/a", "disk1", "target-name-refused"),
        ("qcow3", "/srv/__NAME__", "vda", "invalid-value"),
    ] {
        let report = lint_text(&disk(format, path, target), target);
        let has_rule = found(&report).iter().any(|(name, _)| *name == rule);
        assert!(
            has_rule && report.placeholders == 0,
            "{format} {path} {target}"
        );
    }
    let twice = "<domain type='kvm'><iothreadids><iothread id='2'/><iothread id='2'/></iothreadids></domain>";
    assert_eq!(lint_text(twice, "vda").placeholders, 0, "a tag is no value");
    for (product, is_one) in [("WD10EZEX-00BN5A00", false), ("__THE_PRODUCT_NAME__", true)] {
        let disk = disk("raw", "/srv/a", "sda")
            .replace("bus='virtio'/>", "bus='scsi'/><product>0</product>")
            .replace(">0<", &format!(">{product}<"));
        let report = lint_text(&disk, "sda");
        assert_eq!(report.placeholders > 0, is_one, "{product}");
    }
}
