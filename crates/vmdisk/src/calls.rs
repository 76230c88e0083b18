//! The library with text and JSON in and out, as other languages call it.
//!
//! Each function returns JSON in a shape that is published in `docs/schema/`, or an object of such shapes and texts.
//!
//! ```
//! use vmdisk::calls::{CallOptions, lint};
//!
//! let text = "<disk><driver cache='unsafe'/><target dev='vda'/></disk>";
//! let report = lint(text, None, &CallOptions::default())?;
//! assert!(report.contains("\"rule\": \"cache-unsafe\""));
//!
//! let error = lint("<disk", None, &CallOptions::default()).unwrap_err();
//! assert!(error.to_json().starts_with("{\"error\":{\"message\":\""));
//! let options = CallOptions::parse("{\"target\": \"qemu=11.1\", \"policy\": \"lab\"}")?;
//! assert_eq!(options.target.as_deref(), Some("qemu=11.1"));
//! # Ok::<(), vmdisk::calls::CallError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
#[cfg(feature = "settings")]
use std::path::Path;

#[cfg(feature = "plan")]
use crate::report::changes::{ListedChange, ListedDifference};
use serde::{Deserialize, Serialize};
#[cfg(feature = "plan")]
use vmdisk_facts::Facts;
use vmdisk_facts::Target;
use vmdisk_plan::shell_word;
#[cfg(feature = "plan")]
use vmdisk_plan::{Plan, PresentState, Spec, plan_changes, script};
use vmdisk_source::{LineIndex, Span};

use crate::lint::lint_each;
#[cfg(any(feature = "plan", feature = "trace"))]
use crate::report;
use crate::report::{DocumentReport, EntryFailure, ReportedHost, Run, SaidOnce, escaped_json};
use crate::rules::{self, Rule, UnknownRule};
#[cfg(feature = "settings")]
use crate::settings::ConfigText;
use crate::write::{self, QemuOptions};
use crate::{
    Document, FixScope, Fleet, Host, LintOptions, LintReport, Policy, ReadFailure, RuleLevel,
    Selection, Severity, Source, complete, filled_in, fix_document, losses, read,
};

/// Options of a call. Their JSON is an object with the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CallOptions {
    /// The name of the text in reports; empty if none is given.
    pub name: String,
    /// The versions to check for, as `qemu=9.2,libvirt=10.0`; without, those of the host.
    pub target: Option<String>,
    /// Who shares the host; without, guests of different owners.
    pub policy: Option<String>,
    /// True to apply fixes with a trade-off too.
    pub unsafe_fixes: bool,
    /// The text of a `vmdisk.toml`, in whose directory the name of the text begins. What these options say takes
    /// precedence. Its facts, hosts and baseline are the caller's: a call reads no files.
    #[cfg(feature = "settings")]
    pub config: Option<String>,
    /// Levels by the names of rules and groups: `off`, `on` or a severity.
    pub rules: BTreeMap<String, String>,
    /// The only rules and groups to report; without, all.
    pub select: Vec<String>,
    /// Rules and groups to report as well.
    pub extend_select: Vec<String>,
    /// Rules and groups whose findings do not count.
    pub ignore: Vec<String>,
    /// The least severity to report.
    pub min_severity: Option<String>,
    /// The facts of the hosts that the guests may run on, by their names; in place of one host.
    pub fleet: BTreeMap<String, String>,
    /// For [`plan`], the libvirt XML of the guest that is there: the result has its changes.
    pub existing: Option<String>,
    /// True for a report without the places that rules could not look at, which are most of it. Its summary counts the rules.
    pub brief: bool,
}

/// One of the inputs of [`lint_all`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallInput {
    name: String,
    text: String,
}

/// What all inputs of a call share.
struct Shared<'a> {
    options: &'a CallOptions,
    host: Option<&'a Host>,
    #[cfg(feature = "settings")]
    settings: ConfigText,
    levels: Vec<(String, RuleLevel)>,
    ignored: BTreeSet<String>,
    hosts: Vec<(&'a str, Host)>,
    /// The fleets for the targets of the inputs.
    fleets: Vec<(Target, Fleet)>,
}

/// What a `vmdisk.toml` says of an input.
#[derive(Default)]
struct Configured<'a> {
    target: Option<&'a Target>,
    policy: Option<Policy>,
    levels: Vec<&'a (String, RuleLevel)>,
    least: Option<Severity>,
    /// House rules.
    rules: Vec<&'static Rule>,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct CallError {
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place in the text, with the text.
    pub place: Option<(Span, String)>,
}

impl CallError {
    /// An error without a place.
    pub fn new(message: impl ToString) -> Self {
        CallError {
            message: message.to_string(),
            help: None,
            place: None,
        }
    }

    /// The error about a text that cannot be read.
    pub fn unreadable(text: &str, failure: ReadFailure) -> Self {
        let place = failure.place_in(text).map(|span| (span, text.to_owned()));
        CallError {
            message: failure.message,
            help: failure.help,
            place,
        }
    }

    /// The error as an object with the member `error`, which has the shape of an unreadable input in a report.
    pub fn to_json(&self) -> String {
        let lines = self.place.as_ref().map(|(_, text)| LineIndex::new(text));
        let at = self.place.as_ref().zip(lines.as_ref());
        let at = at.map(|((span, text), lines)| (text.as_str(), lines, *span));
        let failure = EntryFailure::new(&self.message, self.help.as_deref(), at);
        json(&BTreeMap::from([("error", failure)]))
    }
}

impl CallOptions {
    /// Options from their JSON; the default ones from an empty text.
    ///
    /// # Errors
    /// If it is not JSON, or has an unknown name.
    pub fn parse(json: &str) -> Result<Self, CallError> {
        match json {
            "" => Ok(CallOptions::default()),
            json => serde_json::from_str(json)
                .map_err(|error| CallError::new(format!("options: {error}"))),
        }
    }

    fn for_host(&self, host: Option<&Host>) -> Result<LintOptions, CallError> {
        self.shared(host)?.options(&self.name)
    }

    fn shared<'a>(&'a self, host: Option<&'a Host>) -> Result<Shared<'a>, CallError> {
        let mut levels = Vec::new();
        for (name, word) in &self.rules {
            rules::named(name).map_err(unknown_rule("rules"))?;
            let level = RuleLevel::from_word(word).ok_or_else(|| {
                let words = RuleLevel::words().join(", ");
                CallError::new(format!("rules: `{name}` cannot be `{word}`, only {words}"))
            })?;
            levels.push((name.clone(), level));
        }
        RuleLevel::sort(&mut levels);
        let mut hosts = Vec::new();
        for (name, facts) in &self.fleet {
            let host = Host::parse(facts);
            let refused = |error| CallError::new(format!("fleet: {name}: {error}"));
            hosts.push((name.as_str(), host.map_err(refused)?));
        }
        if host.is_some() && !hosts.is_empty() {
            return Err(CallError::new("expected a host or a fleet, found both"));
        }
        Ok(Shared {
            options: self,
            host,
            #[cfg(feature = "settings")]
            settings: self.settings()?,
            levels,
            ignored: rules::all_named(&self.ignore).map_err(unknown_rule("ignore"))?,
            hosts,
            fleets: Vec::new(),
        })
    }

    fn report(&self, document: Document, found: LintReport) -> DocumentReport {
        match self.brief {
            true => DocumentReport::without_places(document, found),
            false => DocumentReport::new(document, found),
        }
    }

    #[cfg(feature = "settings")]
    fn settings(&self) -> Result<ConfigText, CallError> {
        let Some(text) = &self.config else {
            return Ok(ConfigText::default());
        };
        ConfigText::parse(text).map_err(|mistakes| {
            let further = match mistakes.len() {
                0 | 1 => String::new(),
                all => format!(", and {} further mistakes", all - 1),
            };
            let first = mistakes.into_iter().next();
            let title = first.as_ref().map_or("", |mistake| &mistake.title);
            CallError {
                message: format!("config: {title}{further}"),
                place: first.as_ref().map(|it| (it.span, text.clone())),
                help: first.and_then(|mistake| mistake.help),
            }
        })
    }
}

/// The error about a name that no rule has, in a member of the options.
fn unknown_rule(member: &str) -> impl Fn(UnknownRule) -> CallError {
    move |error| CallError::new(format!("{member}: `{}`: {error}", error.name))
}

impl Shared<'_> {
    #[cfg(feature = "settings")]
    fn configured(&self, name: &str) -> Configured<'_> {
        let sections = self.settings.sections(Path::new(name));
        let mut found = Configured {
            least: self.settings.min_severity,
            rules: self.settings.rules.clone(),
            ..Configured::default()
        };
        for section in sections {
            found.target = section.target.as_ref().or(found.target);
            found.policy = section.policy.or(found.policy);
            found.levels.extend(&section.rules);
        }
        found
    }

    #[cfg(not(feature = "settings"))]
    fn configured(&self, _: &str) -> Configured<'_> {
        Configured::default()
    }

    /// The options for the input with a name.
    fn options(&mut self, name: &str) -> Result<LintOptions, CallError> {
        let configured = self.configured(name);
        let mut options = self.host.map_or_else(LintOptions::default, Host::options);
        let asked = self.options.target.as_ref().map(|target| target.parse());
        let asked: Option<Target> = asked.transpose().map_err(CallError::new)?;
        let asked = asked.or_else(|| configured.target.cloned());
        if let Some(word) = &self.options.policy {
            let policy = word.parse::<Policy>();
            options.policy = policy.map_err(|error| CallError::new(format!("policy: {error}")))?;
        } else {
            options.policy = configured.policy.unwrap_or_default();
        }
        let mut least = configured.least;
        if let Some(word) = &self.options.min_severity {
            let severity = word.parse::<Severity>();
            let refused = |error| CallError::new(format!("min_severity: {error}"));
            least = Some(severity.map_err(refused)?);
        }
        let levels = configured.levels.into_iter().chain(&self.levels);
        let CallOptions {
            select,
            extend_select,
            ..
        } = self.options;
        let selection = Selection::of(levels, select, extend_select);
        let selection = selection.map_err(unknown_rule("select"))?;
        options.selection = selection.least(least);
        options.ignored.clone_from(&self.ignored);
        options.rules = configured.rules;
        let asked = asked.unwrap_or_default();
        if !self.hosts.is_empty() {
            options.fleet = Some(self.fleet(&asked));
        }
        options.target = asked.or(options.target);
        Ok(options)
    }

    fn fleet(&mut self, asked: &Target) -> Fleet {
        if let Some((_, fleet)) = self.fleets.iter().find(|(target, _)| target == asked) {
            return fleet.clone();
        }
        let hosts = self.hosts.iter().map(|(name, host)| (*name, host.clone()));
        let fleet = Fleet::new(hosts, asked);
        self.fleets.push((asked.clone(), fleet.clone()));
        fleet
    }

    /// An empty run with the hosts.
    fn run(&self) -> Run {
        let host = |(name, host): &(&str, Host)| ReportedHost {
            name: (*name).to_owned(),
            path: (*name).to_owned(),
            declared_class: host.facts().host.class.clone().known(),
        };
        let mut run = Run::default();
        run.set_hosts(self.hosts.iter().map(host).collect());
        run
    }
}

fn document(text: &str) -> Result<Document, CallError> {
    read(text).map_err(|failure| CallError::unreadable(text, failure))
}

/// As [`document`], for a call that is about the guest that the text is.
fn guest(text: &str) -> Result<Document, CallError> {
    let document = document(text)?;
    match document.source {
        Source::Spec(_) => Err(CallError::new("expected a guest, found a spec")),
        Source::LibvirtXml(_) | Source::QemuCommandLine(_) => Ok(document),
    }
}

/// An object with these members, whose values are JSON.
fn object(members: &[(&str, String)]) -> String {
    let mut out = String::from("{");
    for (nth, (name, value)) in members.iter().enumerate() {
        let comma = if nth == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}\"{name}\": {}", value.trim_end());
    }
    out + "}\n"
}

fn json(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    escaped_json::line(&mut out, value).expect("writing to a Vec cannot fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The command line with these arguments, as a text: places in a report count in it.
pub fn command_line(arguments: &[String]) -> String {
    let words: Vec<String> = arguments
        .iter()
        .map(|argument| shell_word(argument))
        .collect();
    words.join(" ")
}

/// The report of `vmdisk lint --format json`.
///
/// # Errors
/// If the text cannot be read, or an option is wrong.
pub fn lint(text: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let mut shared = options.shared(host)?;
    let lint = shared.options(&options.name)?;
    let document = document(text)?;
    let document = lint.planned(&document).unwrap_or(document);
    let found = crate::lint(&document, &lint);
    let mut run = shared.run();
    run.add(&options.name, options.report(document, found));
    Ok(run.to_json())
}

/// The report about all guests of one host, which are compared: that of `vmdisk lint --format json` with all files of a
/// directory. `inputs` is the JSON of a list of objects with the members `name` and `text`. A text that cannot be read is a
/// failed input of the report. Inputs that the configuration excludes are left out.
///
/// ```
/// use vmdisk::calls::{CallOptions, lint_all};
///
/// let inputs = r#"[{"name": "web1.xml", "text": "<disk/>"}, {"name": "web2.xml", "text": "<disk"}]"#;
/// let report = lint_all(inputs, None, &CallOptions::default())?;
/// assert!(report.contains("\"failed_inputs\": 1"));
/// # Ok::<(), vmdisk::calls::CallError>(())
/// ```
///
/// # Errors
/// If `inputs` is something else, or an option is wrong.
pub fn lint_all(
    inputs: &str,
    host: Option<&Host>,
    options: &CallOptions,
) -> Result<String, CallError> {
    let inputs: Vec<CallInput> =
        serde_json::from_str(inputs).map_err(|error| CallError::new(format!("inputs: {error}")))?;
    let mut shared = options.shared(host)?;
    let mut prepared = Vec::with_capacity(inputs.len());
    for input in inputs {
        #[cfg(feature = "settings")]
        if shared.settings.exclude.has(Path::new(&input.name)) {
            continue;
        }
        let options = shared.options(&input.name)?.of_all_guests();
        let document = read(&input.text);
        let document = document.map(|it| options.planned(&it).unwrap_or(it));
        prepared.push((input, options, document));
    }
    let documents: Vec<_> = prepared
        .iter()
        .filter_map(|(_, options, document)| Some((document.as_ref().ok()?, options)))
        .collect();
    let mut reports = lint_each(&documents).into_iter();
    let mut run = shared.run();
    let mut said = SaidOnce::default();
    let mut checked = Vec::with_capacity(prepared.len());
    let mut targets: Vec<Target> = Vec::new();
    for (CallInput { name, text }, options, document) in prepared {
        let document = match document {
            Ok(document) => document,
            Err(failure) => {
                checked.push((name, Err((text, failure))));
                continue;
            }
        };
        let known = targets.iter().position(|target| *target == options.target);
        let group = known.unwrap_or(targets.len());
        if known.is_none() {
            targets.push(options.target);
        }
        let report = reports.next().unwrap_or_default();
        let mut report = shared.options.report(document, report);
        said.drop_from(&mut report, &name, group);
        checked.push((name, Ok(report)));
    }
    let reports = checked.iter_mut();
    said.name_guests(reports.filter_map(|(name, it)| Some((&**name, it.as_mut().ok()?))));
    for (name, report) in checked {
        match report {
            Ok(report) => run.add(name, report),
            Err((text, failure)) => run.add_unreadable(name, text, failure),
        }
    }
    Ok(run.to_json())
}

/// The numbers of a report, for callers that read no JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ReportCounts {
    /// Findings of severity `error`.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `advice`.
    pub advice: usize,
    /// Findings of severity `pedantic`.
    pub pedantic: usize,
    /// Rules that could not look at something.
    pub rules_not_checked: usize,
    /// Inputs that could not be read.
    pub failed_inputs: usize,
}

/// The numbers of a report, which [`lint`] or [`lint_all`] returned, or of the one in the result of [`fix`]; `None` for
/// another text.
pub fn counts(report: &str) -> Option<ReportCounts> {
    #[derive(Deserialize)]
    struct Result {
        summary: Option<ReportCounts>,
        report: Option<Box<Result>>,
    }
    let Result { summary, report } = serde_json::from_str(report).ok()?;
    summary.or_else(|| report?.summary)
}

/// An object with the fixed `text`, and the `report` of what remains.
///
/// # Errors
/// As [`lint`].
pub fn fix(text: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let mut shared = options.shared(host)?;
    let lint = shared.options(&options.name)?;
    let scope = match options.unsafe_fixes {
        true => FixScope::SafeAndUnsafe,
        false => FixScope::Safe,
    };
    let fixed = fix_document(document(text)?, &read, &lint, scope);
    let text = json(&fixed.document.own_text());
    let report = DocumentReport {
        mended: fixed.mended,
        failed_fixes: fixed.failed,
        ..options.report(fixed.document, fixed.report)
    };
    let mut run = shared.run();
    run.add(&options.name, report);
    Ok(object(&[("text", text), ("report", run.to_json())]))
}

/// An object with the `text` in which the options are set that its disks leave open, and the `decisions` of
/// `vmdisk decide --format json`.
///
/// # Errors
/// As [`lint`], and if the text is a spec.
#[cfg(feature = "plan")]
pub fn decide(text: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let lint = options.for_host(host)?;
    let decisions = crate::decide(&guest(text)?, |_| true, &read, &lint);
    let text = json(&decisions.document.own_text());
    let json = report::decide::to_json(&options.name, &decisions);
    Ok(object(&[("text", text), ("decisions", json)]))
}

/// The I/O paths of `vmdisk trace --format json`.
///
/// # Errors
/// As [`lint`].
#[cfg(feature = "trace")]
pub fn trace(text: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let lint = options.for_host(host)?;
    let document = document(text)?;
    let traced = crate::trace::trace(&document, &lint);
    let guest = document.domain().name.as_deref();
    Ok(report::trace::to_json(&options.name, guest, &traced))
}

/// An object with the guest of a spec as libvirt's `xml` and as `argv` of QEMU (null where one of them cannot express it),
/// the `script` that creates its storage, and the `choices` of `vmdisk generate --explain=json`. With the guest that is there
/// ([`CallOptions::existing`]), it has the `changes` that make that guest, which is off, as planned, and what stays
/// `unchanged`, as in `vmdisk apply --format json`; without, both are empty. A call does not know the sizes of storage: it lists
/// no growth, and refuses moves.
///
/// # Errors
/// If the spec is wrong or asks for something impossible, and if the guest that is there cannot be read.
#[cfg(feature = "plan")]
pub fn plan(spec: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let target = options.for_host(host)?.target;
    let spec = Spec::from_yaml(spec).map_err(CallError::new)?;
    let nothing = Facts::default();
    let facts = host.map_or(&nothing, Host::facts);
    let plan: Plan = vmdisk_plan::plan(&spec, facts, &target).map_err(CallError::new)?;
    let existing = options.existing.as_deref().map(guest).transpose()?;
    let have = PresentState {
        guest: existing.as_ref().map(Document::domain),
        ..PresentState::default()
    };
    let changes = plan_changes(&have, &spec, &plan, facts, &target).map_err(CallError::new)?;
    let listed = changes.changes.iter().enumerate();
    let listed: Vec<_> = listed.map(|(nth, it)| ListedChange::of(nth, it)).collect();
    let unchanged: Vec<_> = changes.unchanged.iter().map(ListedDifference::of).collect();
    let xml = write::planned_xml(&plan).ok();
    let qemu = QemuOptions { target };
    let line = write::planned_for_qemu(&plan).and_then(|(domain, further)| {
        let line = write::qemu_command_line(&domain, &qemu)?;
        Ok(write::CommandLine { further, ..line })
    });
    let line = line.ok();
    Ok(object(&[
        ("xml", json(&xml)),
        ("argv", json(&line.map(|line| line.argv()))),
        ("script", json(&script(&plan))),
        ("choices", report::explain::to_json(&plan)),
        ("changes", json(&listed)),
        ("unchanged", json(&unchanged)),
    ]))
}

/// An object with the guest of libvirt's XML as the `text` of a QEMU command line, or the reverse, and the `losses` as
/// texts.
///
/// # Errors
/// As [`decide`]; if the guest would see other data without something that cannot be carried over; and if the other
/// syntax cannot express the guest.
pub fn convert(text: &str, options: &CallOptions) -> Result<String, CallError> {
    let target = options.for_host(None)?.target;
    let mut document = guest(text)?;
    let mut lost = filled_in(&document);
    lost.extend(crate::disks_passed_through(&document));
    lost.extend(losses(&document));
    if let Some(loss) = lost.iter().find(|loss| loss.changes_guest) {
        return Err(CallError {
            message: format!("{} cannot be carried over", loss.what),
            help: loss.help(&document),
            place: Some((loss.place.span, document.text.to_string())),
        });
    }
    let mut losses: Vec<String> = lost.into_iter().map(|loss| loss.what).collect();
    let text = match &document.source {
        Source::LibvirtXml(_) => {
            losses.extend(crate::not_about_disks_in_arguments(&document));
            let mut domain = document.domain().clone();
            write::set_for_qemu(&mut domain);
            let qemu = QemuOptions { target };
            let line = write::qemu_command_line(&domain, &qemu).map_err(CallError::new)?;
            losses.extend(line.left_out.iter().map(ToString::to_string));
            line.to_shell()
        }
        Source::QemuCommandLine(_) | Source::Spec(_) => {
            losses.extend(crate::not_about_disks_in_xml(&document));
            losses.extend(complete(&mut document).unfit);
            document.number_boot_order();
            write::document_xml(&document).map_err(CallError::new)?
        }
    };
    Ok(object(&[("text", json(&text)), ("losses", json(&losses))]))
}
