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

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
#[cfg(feature = "plan")]
use vmdisk_facts::Facts;
use vmdisk_facts::Target;
use vmdisk_plan::shell_word;
#[cfg(feature = "plan")]
use vmdisk_plan::{Plan, Spec, script};
use vmdisk_source::{LineIndex, Span};

#[cfg(any(feature = "plan", feature = "trace"))]
use crate::report;
use crate::report::{DocumentReport, EntryFailure, Run, escaped_json};
use crate::write::{self, QemuOptions};
use crate::{
    Document, FixScope, Host, LintOptions, LintReport, Policy, ReadFailure, Source, complete,
    filled_in, fix_document, losses, read,
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

    fn unreadable(text: &str, failure: ReadFailure) -> Self {
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
        let mut options = host.map_or_else(LintOptions::default, Host::options);
        if let Some(target) = &self.target {
            let asked: Target = target.parse().map_err(CallError::new)?;
            options.target = asked.or(options.target);
        }
        if let Some(word) = &self.policy {
            let policy = word.parse::<Policy>();
            options.policy = policy.map_err(|error| CallError::new(format!("policy: {error}")))?;
        }
        Ok(options)
    }

    fn report(&self, document: Document, report: LintReport) -> String {
        let mut run = Run::default();
        run.add(&self.name, DocumentReport::new(document, report));
        run.to_json()
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
    let lint = options.for_host(host)?;
    let document = document(text)?;
    let document = lint.planned(&document).unwrap_or(document);
    let found = crate::lint(&document, &lint);
    Ok(options.report(document, found))
}

/// An object with the fixed `text`, and the `report` of what remains.
///
/// # Errors
/// As [`lint`].
pub fn fix(text: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let lint = options.for_host(host)?;
    let scope = match options.unsafe_fixes {
        true => FixScope::SafeAndUnsafe,
        false => FixScope::Safe,
    };
    let fixed = fix_document(document(text)?, &read, &lint, scope);
    let text = json(&fixed.document.own_text());
    let report = DocumentReport {
        mended: fixed.mended,
        failed_fixes: fixed.failed,
        ..DocumentReport::new(fixed.document, fixed.report)
    };
    let mut run = Run::default();
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
/// the `script` that creates its storage, and the `choices` of `vmdisk generate --explain=json`.
///
/// # Errors
/// If the spec is wrong or asks for something impossible.
#[cfg(feature = "plan")]
pub fn plan(spec: &str, host: Option<&Host>, options: &CallOptions) -> Result<String, CallError> {
    let target = options.for_host(host)?.target;
    let spec = Spec::from_yaml(spec).map_err(CallError::new)?;
    let nothing = Facts::default();
    let facts = host.map_or(&nothing, Host::facts);
    let plan: Plan = vmdisk_plan::plan(&spec, facts, &target).map_err(CallError::new)?;
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
