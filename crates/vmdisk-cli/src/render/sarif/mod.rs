//! SARIF 2.1.0, complete: what code scanning needs to show, track, suppress and fix a finding.

mod model;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::iter;

use vmdisk::rules::Group;
use vmdisk::{
    AllowedBy, Applicability, Confidence, Diagnostic, FoundOn, ResolvedFix, Rule, Severity,
};
use vmdisk_source::{LineIndex, Span};

use crate::exit::Exit;
use crate::render::fingerprint::{self, Fingerprints};
use crate::render::harmless::{self, Mark, Spliced};
use crate::render::message::Message;
use crate::render::page_url;
use crate::render::spool::Spool;
use crate::report::classes::{ClassNames, Classes};
use crate::report::input::{DocumentReport, InputReport, confidence_note, unwritten_note};
use crate::stop::Stop;
use model::{
    Artifact, ArtifactChange, ArtifactLocation, AutomationDetails, BaseLocation, Configuration,
    Driver, Fix, HostClasses, Invocation, Location, LogicalLocation, Markdown, Notification,
    PhysicalLocation, Region, Replacement, ReportingDescriptor, ResultItem, ResultProperties,
    RuleProperties, RuleReference, Run, RunProperties, Suppression, Text, Tool,
};

/// The directory that relative paths start from.
const BASE: &str = "%SRCROOT%";

/// Name of the fingerprint; its number counts changes of the input.
const FINGERPRINT: &str = "vmdiskField/v1";

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Number of lists with items of inputs: artifacts, results, and notifications about inputs.
pub(crate) const LISTS: usize = 3;

/// The parts of a log that a run adds per input, besides the items of lists.
#[derive(Debug, Default)]
pub(crate) struct Log {
    inputs: usize,
    fingerprints: Fingerprints,
    /// Names of rules that a result or a notification refers to.
    rules: BTreeSet<&'static str>,
    /// The number of places that a rule could not look at, by rule and reason.
    missed: BTreeMap<(&'static str, Cow<'static, str>), usize>,
}

/// The items of an input in each list of the log; results are records.
pub(crate) fn items(checked: &InputReport, classes: Option<&Classes<'_>>) -> [Vec<u8>; LISTS] {
    let mut lists = [const { Vec::new() }; LISTS];
    let [artifacts, results, notifications] = &mut lists;
    let uri = checked.uri();
    let at = SarifInput { uri: &uri };
    let location = at.artifact();
    harmless::item(artifacts, 4, &Artifact { location });
    match &checked.outcome {
        Ok(report) => {
            let mut findings: Vec<&Diagnostic> =
                report.findings.iter().chain(&report.allowed).collect();
            findings.sort_by_key(|finding| (finding.place.span, finding.rule.name));
            let mut text = Vec::new();
            for finding in findings {
                let hosts = classes.zip(finding.hosts.as_ref());
                text.clear();
                harmless::item(&mut text, 4, &result(&at, report, finding, hosts));
                fingerprint::record(results, checked, report, finding, &text);
            }
        }
        Err(message) => harmless::item(notifications, 6, &unreadable(&at, message)),
    }
    lists
}

impl Log {
    /// Adds an input and its items.
    pub(crate) fn add(
        &mut self,
        checked: &InputReport,
        items: &[Vec<u8>],
        lists: &mut [Spool],
    ) -> Result<(), Stop> {
        let number = self.inputs;
        self.inputs += 1;
        if let Ok(report) = &checked.outcome {
            let findings = report.findings.iter().chain(&report.allowed);
            self.rules.extend(findings.map(|finding| finding.rule.name));
            for unchecked in &report.not_checked {
                self.rules.insert(unchecked.rule);
                let missed = (unchecked.rule, unchecked.why.clone());
                *self.missed.entry(missed).or_default() += 1;
            }
        }
        for list in [0, 2] {
            let mut text = Vec::with_capacity(items[list].len() + 16);
            // The only marks of these lists are numbers of inputs, and memory takes every byte.
            let _ = Mark::fill(&items[list], &mut text, |_, out| write!(out, "{number}"));
            lists[list].push(&text)?;
        }
        self.fingerprints
            .add(checked, number, &items[1], &mut lists[1])
    }

    /// Writes the whole log, whose lists have the items of all inputs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        lists: &mut [Spool],
        exit: Exit,
        classes: Option<&Classes<'_>>,
    ) -> io::Result<()> {
        let rules = self.rules.iter().copied();
        let rules: Vec<&'static Rule> = rules.filter_map(vmdisk::rules::find).collect();
        let index_of = |name: &str| {
            rules
                .iter()
                .position(|rule| rule.name == name)
                .unwrap_or_default()
        };
        let log = model::Log {
            schema: "https://json.schemastore.org/sarif-2.1.0.json",
            version: "2.1.0",
            runs: [Run {
                tool: Tool {
                    driver: Driver {
                        name: "vmdisk",
                        semantic_version: env!("CARGO_PKG_VERSION"),
                        information_uri: REPOSITORY,
                        rules: rules.iter().copied().map(descriptor).collect(),
                    },
                },
                automation_details: AutomationDetails { id: "vmdisk/lint/" },
                column_kind: "unicodeCodePoints",
                original_uri_base_ids: BTreeMap::from([(
                    BASE,
                    BaseLocation {
                        description: text("the directory that vmdisk was started in"),
                    },
                )]),
                invocations: [Invocation {
                    execution_successful: exit != Exit::CouldNot,
                    exit_code: exit.code(),
                    tool_execution_notifications: Spliced(2),
                }],
                artifacts: Spliced(0),
                results: Spliced(1),
                properties: classes.map(run_properties),
            }],
        };
        harmless::pretty_with(out, &log, &mut |list, out| match list {
            1 => self.fingerprints.write_items(&mut lists[1], out, index_of),
            2 => {
                let has_failures = lists[2].copy_items(out)?;
                let mut items = Vec::new();
                self.not_checked(index_of)
                    .for_each(|notification| harmless::item(&mut items, 6, &notification));
                let first = usize::from(!has_failures && !items.is_empty());
                out.write_all(&items[first..])?;
                Ok(has_failures || !items.is_empty())
            }
            other => lists[other].copy_items(out),
        })
    }

    /// One notification for each rule and reason: a rule without results may not have looked.
    fn not_checked(
        &self,
        index_of: impl Fn(&str) -> usize,
    ) -> impl Iterator<Item = Notification<'_>> {
        self.missed
            .iter()
            .map(move |((rule, why), number)| Notification {
                level: "note",
                message: text(format!(
                    "{rule} was not checked at {number} {}: {why}",
                    if *number == 1 { "place" } else { "places" }
                )),
                locations: Vec::new(),
                associated_rule: Some(RuleReference {
                    id: rule,
                    index: index_of(rule),
                }),
            })
    }
}

/// The hosts that the inputs may run on.
fn run_properties<'a>(classes: &'a Classes<'_>) -> RunProperties<'a> {
    RunProperties {
        host_classes: classes.named().collect(),
    }
}

/// An input.
#[derive(Clone, Copy)]
struct SarifInput<'a> {
    uri: &'a str,
}

impl<'a> SarifInput<'a> {
    fn artifact(&self) -> ArtifactLocation<'a> {
        let uri = self.uri;
        ArtifactLocation {
            uri,
            uri_base_id: (!uri.starts_with("file://")).then_some(BASE),
            index: Mark::Input,
        }
    }

    fn location(&self, region: Option<Region>) -> Location<'a> {
        Location {
            id: None,
            physical_location: PhysicalLocation {
                artifact_location: self.artifact(),
                region,
            },
            logical_locations: Vec::new(),
            message: None,
        }
    }
}

fn text<'a>(text: impl Into<std::borrow::Cow<'a, str>>) -> Text<'a> {
    Text { text: text.into() }
}

fn region(place: &vmdisk::TextPlace) -> Region {
    Region {
        start_line: place.start.line,
        start_column: place.start.column,
        end_line: place.end.line,
        end_column: place.end.column,
    }
}

fn region_of_span(source: &str, lines: &LineIndex, span: Span) -> Region {
    let (start, end) = (
        lines.position(source, span.start),
        lines.position(source, span.end),
    );
    Region {
        start_line: start.line,
        start_column: start.column,
        end_line: end.line,
        end_column: end.column,
    }
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
        // `none` is for results that are no problem, which code scanning does not show.
        Severity::Pedantic => "note",
    }
}

fn descriptor(rule: &'static Rule) -> ReportingDescriptor {
    let page = rule.explain();
    ReportingDescriptor {
        id: rule.name,
        name: pascal_case(rule.name),
        short_description: text(rule.summary()),
        full_description: text(what_it_reports(&page).unwrap_or_else(|| rule.summary().to_owned())),
        help_uri: page_url(rule.name),
        help: Markdown {
            text: page.clone(),
            markdown: page,
        },
        default_configuration: Configuration {
            level: level(rule.severity),
        },
        properties: RuleProperties {
            precision: "high",
            problem_severity: match rule.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Advice | Severity::Pedantic => "recommendation",
            },
            // A score makes an alert a security alert, so only rules about who sees data carry one.
            security_severity: match (rule.group, rule.severity) {
                (Group::Security, Severity::Error) => Some("7.5"),
                (Group::Security, Severity::Warning) => Some("5.0"),
                (Group::Security, Severity::Advice | Severity::Pedantic) => Some("3.0"),
                _ => None,
            },
            tags: vec!["virtualization", "disk", rule.group.as_str()],
        },
    }
}

/// `cache-unsafe` as `CacheUnsafe`, the way SARIF's names look.
fn pascal_case(name: &str) -> String {
    name.split('-')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or(String::new(), |first| {
                first.to_uppercase().chain(letters).collect()
            })
        })
        .collect()
}

/// The first section of a rule's page, without line breaks.
fn what_it_reports(page: &str) -> Option<String> {
    let (_, section) = page.split_once("## What it reports\n")?;
    let paragraph = section.split("\n## ").next()?;
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn result<'a>(
    at: &SarifInput<'a>,
    report: &'a DocumentReport,
    finding: &'a Diagnostic,
    found_on: Option<(&'a Classes<'_>, &FoundOn)>,
) -> ResultItem<'a> {
    let Diagnostic {
        rule,
        severity,
        confidence,
        disk,
        at: _, // The disk and the place name it.
        title,
        place,
        label,
        related,
        notes,
        help,
        fix,
        allowed_by,
        hosts: _, // They come with the classes they are in.
    } = finding;
    let message: Vec<String> = iter::once(title)
        .chain(label)
        .chain(notes)
        .cloned()
        .chain(unwritten_note(place))
        .chain(found_on.and_then(|(classes, found)| classes.note(found)))
        .chain(confidence_note(*confidence).map(str::to_owned))
        .chain(help.iter().map(|help| format!("help: {help}")))
        .collect();
    let mut location = at.location(Some(region(place)));
    location.logical_locations.push(LogicalLocation {
        fully_qualified_name: &place.breadcrumb,
        kind: "element",
    });
    ResultItem {
        rule_id: rule.name,
        rule_index: Mark::Rule,
        level: level(*severity),
        message: text(message.join("\n")),
        locations: [location],
        related_locations: related
            .iter()
            .enumerate()
            .map(|(id, related)| Location {
                id: Some(id + 1),
                message: Some(text(related.label.as_str())),
                ..at.location(Some(region(&related.place)))
            })
            .collect(),
        baseline_state: report
            .has_baseline
            .then_some(baseline_state(allowed_by.as_ref())),
        partial_fingerprints: BTreeMap::from([(FINGERPRINT, Mark::Fingerprint)]),
        fixes: fix
            .iter()
            .map(|fix| fix_of(at, report, fix, help.as_deref()))
            .collect(),
        suppressions: allowed_by
            .iter()
            .map(|by| suppression(at, report, by))
            .collect(),
        properties: ResultProperties {
            confidence: match confidence {
                Confidence::Certain => "certain",
                Confidence::Assumed => "assumed",
            },
            severity: severity.as_str(),
            fix: fix.as_ref().map(|fix| match fix.applicability {
                Applicability::Safe => "safe",
                Applicability::Unsafe => "unsafe",
            }),
            domain: report.domain.as_deref(),
            disk: disk.as_ref().and_then(|disk| disk.target.as_deref()),
            hosts: found_on.map(|(classes, found)| host_classes(classes, found)),
        },
    }
}

fn host_classes<'a>(classes: &'a Classes<'_>, found: &FoundOn) -> HostClasses<'a> {
    let ClassNames {
        affected,
        not_affected,
        not_checked,
    } = classes.names_of(found);
    HostClasses {
        affected,
        not_affected,
        not_checked,
    }
}

/// The state of a finding since the baseline was written.
const fn baseline_state(allowed_by: Option<&AllowedBy>) -> &'static str {
    match allowed_by {
        Some(AllowedBy::Baseline) => "unchanged",
        Some(AllowedBy::InFile { .. } | AllowedBy::Ignored) | None => "new",
    }
}

fn fix_of<'a>(
    at: &SarifInput<'a>,
    report: &'a DocumentReport,
    fix: &'a ResolvedFix,
    help: Option<&'a str>,
) -> Fix<'a> {
    Fix {
        description: help.map(text),
        artifact_changes: [ArtifactChange {
            artifact_location: at.artifact(),
            replacements: fix
                .edits
                .iter()
                .map(|edit| Replacement {
                    deleted_region: region_of_span(&report.text, &report.lines, edit.span),
                    inserted_content: text(edit.text.as_str()),
                })
                .collect(),
        }],
    }
}

fn suppression<'a>(
    at: &SarifInput<'a>,
    report: &DocumentReport,
    by: &'a AllowedBy,
) -> Suppression<'a> {
    match by {
        AllowedBy::InFile { reason, span } => Suppression {
            kind: "inSource",
            status: "accepted",
            justification: reason.as_deref(),
            location: Some(at.location(Some(region_of_span(&report.text, &report.lines, *span)))),
        },
        AllowedBy::Ignored => Suppression {
            kind: "external",
            status: "accepted",
            justification: Some("ignored on the command line"),
            location: None,
        },
        AllowedBy::Baseline => Suppression {
            kind: "external",
            status: "accepted",
            justification: Some("known in the baseline"),
            location: None,
        },
    }
}

fn unreadable<'a>(at: &SarifInput<'a>, message: &'a Message) -> Notification<'a> {
    let quoted = message
        .place
        .as_ref()
        .and_then(|place| place.quoted.as_ref());
    let region =
        quoted.map(|quoted| region_of_span(quoted.text.text(), quoted.text.lines(), quoted.span));
    let mut said = message.title.clone();
    for more in message.notes.iter().chain(&message.help) {
        said.push('\n');
        said.push_str(more);
    }
    Notification {
        level: "error",
        message: text(said),
        locations: vec![at.location(region)],
        associated_rule: None,
    }
}
