//! SARIF 2.1.0, complete: what code scanning needs to show, track, suppress and fix a finding.

mod model;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter;

use vmdisk::report::DocumentReport;
use vmdisk::rules::Group;
use vmdisk::{AllowedBy, Confidence, Diagnostic, FoundOn, ResolvedFix, Rule, Severity};
use vmdisk_source::{LineIndex, Span};

use crate::exit::Exit;
use crate::render::message::Message;
use crate::render::page_url;
use crate::report::input::{InputReport, confidence_note, unwritten_note};
use crate::report::run::RunReport;
use model::{
    Artifact, ArtifactChange, ArtifactLocation, AutomationDetails, BaseLocation, Configuration,
    Driver, Fix, Invocation, Location, LogicalLocation, Markdown, Notification, PhysicalLocation,
    Region, Replacement, ReportingDescriptor, ResultItem, ResultProperties, RuleProperties,
    RuleReference, Run, RunProperties, Suppression, Text, Tool,
};
use vmdisk::report::Classes;
use vmdisk::report::Fingerprints;
use vmdisk::report::escaped_json::{self, Each};

/// The directory that relative paths start from.
const BASE: &str = "%SRCROOT%";

/// Name of the fingerprint; its number counts changes of the input.
const FINGERPRINT: &str = "vmdiskField/v1";

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Writes the whole log.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(
    out: &mut dyn Write,
    run: RunReport<'_>,
    classes: Option<&Classes<'_>>,
) -> io::Result<()> {
    let uris: Vec<String> = run.inputs.iter().map(InputReport::uri).collect();
    let named = uris.iter().enumerate();
    let at: Vec<SarifInput<'_>> = named
        .map(|(index, uri)| SarifInput { index, uri })
        .collect();
    let inputs = || at.iter().zip(run.inputs);
    let rules = &Rules::of(run.inputs);
    let results = || {
        let mut fingerprints = Fingerprints::new(run.inputs.iter().flat_map(|it| &it.outcome));
        inputs().flat_map(move |(at, input)| {
            let Ok(report) = &input.outcome else {
                return Vec::new();
            };
            let findings = report.by_place();
            let fingerprints = fingerprints.of(&input.uri(), report, &findings);
            let found = findings.into_iter().zip(fingerprints);
            found
                .map(|(finding, fingerprint)| {
                    let hosts = classes.zip(finding.hosts.as_ref());
                    ResultItem {
                        rule_index: rules.index_of(finding.rule.name),
                        baseline_state: input
                            .has_baseline
                            .then_some(baseline_state(finding.allowed_by.as_ref())),
                        partial_fingerprints: BTreeMap::from([(FINGERPRINT, fingerprint)]),
                        ..result(at, report, finding, hosts)
                    }
                })
                .collect()
        })
    };
    let notifications = || {
        let unreadable = inputs().filter_map(|(at, input)| {
            let message = input.outcome.as_ref().err()?;
            Some(unreadable(at, message))
        });
        unreadable.chain(rules.not_checked())
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
                    rules: rules.list.iter().copied().map(descriptor).collect(),
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
                execution_successful: run.exit != Exit::CouldNot,
                exit_code: run.exit.code(),
                tool_execution_notifications: Each::new(notifications),
            }],
            artifacts: at
                .iter()
                .map(|at| Artifact {
                    location: at.artifact(),
                })
                .collect(),
            results: Each::new(results),
            properties: classes.map(run_properties),
        }],
    };
    escaped_json::pretty(out, &log)
}

/// The rules of a run.
struct Rules<'a> {
    /// Those that a result or a notification refers to, by name.
    list: Vec<&'static Rule>,
    /// The number of places that a rule could not look at, by rule and reason.
    missed: BTreeMap<(&'static str, &'a str), usize>,
}

impl<'a> Rules<'a> {
    fn of(inputs: &'a [InputReport]) -> Self {
        let mut missed = BTreeMap::new();
        for one in inputs.iter().flat_map(InputReport::not_checked) {
            *missed.entry((one.rule.name, one.why)).or_default() += one.places;
        }
        let findings = inputs
            .iter()
            .flat_map(|input| input.findings().iter().chain(input.allowed()));
        let missing = inputs.iter().flat_map(InputReport::not_checked);
        let rules = findings
            .map(|finding| finding.rule)
            .chain(missing.map(|one| one.rule));
        // `collect` keeps a list of all of them first.
        let mut named: BTreeMap<&str, &'static Rule> = BTreeMap::new();
        for rule in rules {
            named.insert(rule.name, rule);
        }
        Rules {
            list: named.into_values().collect(),
            missed,
        }
    }

    fn index_of(&self, name: &str) -> usize {
        let at = self.list.binary_search_by_key(&name, |rule| rule.name);
        at.unwrap_or_default()
    }

    /// One notification for each rule and reason: a rule without results may not have looked.
    fn not_checked(&self) -> impl Iterator<Item = Notification<'a>> {
        self.missed.iter().map(|((rule, why), number)| {
            let places = if *number == 1 { "place" } else { "places" };
            Notification {
                level: "note",
                message: text(format!(
                    "{rule} was not checked at {number} {places}: {why}"
                )),
                locations: Vec::new(),
                associated_rule: Some(RuleReference {
                    id: rule,
                    index: self.index_of(rule),
                }),
            }
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
    /// Its number among the artifacts.
    index: usize,
    uri: &'a str,
}

impl<'a> SarifInput<'a> {
    fn artifact(&self) -> ArtifactLocation<'a> {
        let uri = self.uri;
        ArtifactLocation {
            uri,
            uri_base_id: (!uri.starts_with("file://")).then_some(BASE),
            index: self.index,
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

/// A result, without what other findings and inputs decide.
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
        .. // The hosts come with the classes they are in.
    } = finding;
    let message: Vec<String> = iter::once(title)
        .chain(label)
        .chain(notes)
        .cloned()
        .chain(unwritten_note(place, label.as_deref()))
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
        rule_index: 0,
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
        baseline_state: None,
        partial_fingerprints: BTreeMap::new(),
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
            fix: fix.as_ref().map(|fix| fix.applicability.as_str()),
            domain: report.domain.as_deref(),
            disk: disk.as_ref().and_then(|disk| disk.target.as_deref()),
            hosts: found_on.map(|(classes, found)| classes.names_of(found)),
        },
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
    let (kind, justification, location) = match by {
        AllowedBy::InFile { reason, span } => {
            let region = region_of_span(&report.text, &report.lines, *span);
            (
                "inSource",
                reason.as_deref(),
                Some(at.location(Some(region))),
            )
        }
        AllowedBy::Ignored => ("external", Some("ignored on the command line"), None),
        AllowedBy::Baseline => ("external", Some("known in the baseline"), None),
    };
    Suppression {
        kind,
        status: "accepted",
        justification,
        location,
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
