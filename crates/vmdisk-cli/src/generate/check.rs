//! The result is linted before it is written.

use std::borrow::Cow;
use std::collections::BTreeSet;

use vmdisk::model::Domain;
use vmdisk::plan::{Plan, facts_after};
use vmdisk::rules::{Consumer, Context, check_model};
use vmdisk::write::{self, QemuOptions};
use vmdisk::{Diagnostic, Facts, Host, LintInput, LintOptions, Severity, Target, lint};

use super::spec::{GenerateInput, GenerateText};
use super::write::{Written, refuse_secrets_of_libvirt, refused, unwritable};
use crate::args::{GenerateForm, PlanArgs, QemuFormat};
use crate::render::message::{Message, MessagePlace, MessageText};
use crate::stop::Stop;

/// Facts and target of a check.
pub(super) struct Check<'a> {
    pub(super) args: &'a PlanArgs,
    pub(super) to: GenerateForm,
    pub(super) qemu_format: QemuFormat,
    pub(super) facts: Option<&'a Facts>,
    pub(super) target: &'a Target,
}

impl Check<'_> {
    /// Lints a plan in the requested form, in which it may be `written`. Errors refuse; warnings are returned, in the words
    /// of the spec.
    pub(super) fn plan(
        &self,
        plan: &Plan,
        asked: &GenerateInput<'_>,
        written: Option<&Written>,
    ) -> Result<Vec<Message>, Stop> {
        let domain = &plan.domain;
        let xml = || write::planned_xml(plan).map_err(unwritable);
        if written.is_some() && self.is_clean(domain) {
            return Ok(Vec::new());
        }
        let text = match (self.to, written) {
            (GenerateForm::LibvirtXml, Some(written)) => Cow::from(&written.text),
            (GenerateForm::LibvirtXml | GenerateForm::DiskXml, _) => xml()?.into(),
            (GenerateForm::Script | GenerateForm::Steps, _) => {
                // Whoever runs the guest on this storage need not be libvirt, and need not be without it.
                let target = Target {
                    libvirt: None,
                    ..self.target.clone()
                };
                let check = Check {
                    target: &target,
                    ..*self
                };
                let xml = xml()?;
                let (found, spec) = check.found(&xml, plan, asked, self.target)?;
                let without_libvirt = check.judge(found, spec.as_ref());
                if without_libvirt.is_ok() || self.target.libvirt.is_none() {
                    return without_libvirt;
                }
                let (found, spec) = self.found(&xml, plan, asked, self.target)?;
                return self.judge(found, spec.as_ref()).or(without_libvirt);
            }
            _ => {
                refuse_secrets_of_libvirt(domain)?;
                let options = QemuOptions {
                    target: self.target.clone(),
                };
                let (domain, further) = match self.to {
                    GenerateForm::Qemu => write::planned_for_qemu(plan).map_err(refused)?,
                    _ => (domain.clone(), Vec::new()),
                };
                let mut line = write::qemu_command_line(&domain, &options).map_err(refused)?;
                line.further = further;
                // Those are command lines of another program.
                line.daemons.clear();
                line.to_shell().into()
            }
        };
        let (found, spec) = self.found(&text, plan, asked, self.target)?;
        self.judge(found, spec.as_ref())
    }

    /// True if no rule finds anything in a guest that is planned without facts and versions. The text written for it has no
    /// other findings, so it is not read again.
    fn is_clean(&self, domain: &Domain) -> bool {
        let is_for_libvirt = matches!(self.to, GenerateForm::LibvirtXml | GenerateForm::DiskXml);
        if self.facts.is_some()
            || *self.target != Target::default()
            || !is_for_libvirt && refuse_secrets_of_libvirt(domain).is_err()
        {
            return false;
        }
        let context = Context {
            policy: self.args.host.policy.unwrap_or_default(),
            consumer: match is_for_libvirt {
                true => Consumer::Libvirt,
                false => Consumer::Qemu,
            },
            names_missing: false,
            ..Context::new(domain, self.target)
        };
        let mut findings = check_model(&context).findings.into_iter();
        findings.all(|found| found.severity < Severity::Warning)
    }

    /// The findings of a written text, which was planned for `target`, in the words of the spec.
    fn found(
        &self,
        text: &str,
        plan: &Plan,
        asked: &GenerateInput<'_>,
        target: &Target,
    ) -> Result<(Vec<Diagnostic>, Option<GenerateText>), Stop> {
        let found = self.findings(text, plan)?;
        if found.is_empty() {
            return Ok((found, None));
        }
        let nothing = Facts::default();
        let spec = asked.text(self.facts.unwrap_or(&nothing), target);
        let found = match &spec {
            Some(spec) => self.findings_in(text, plan, Some(spec))?,
            None => found,
        };
        Ok((found, spec))
    }

    /// The findings of a text at warning or above, on the host as the plan leaves it.
    pub(super) fn findings(&self, text: &str, plan: &Plan) -> Result<Vec<Diagnostic>, Stop> {
        self.findings_in(text, plan, None)
    }

    /// The findings of a text in its own words, or in those of its spec.
    fn findings_in(
        &self,
        text: &str,
        plan: &Plan,
        spec: Option<&GenerateText>,
    ) -> Result<Vec<Diagnostic>, Stop> {
        let document = vmdisk::read(text).map_err(|failure| {
            Stop::new(format!(
                "the result cannot be read again: {}",
                failure.message
            ))
            .help("this is a bug of vmdisk; please report it")
        })?;
        let after = self.facts.map(|facts| facts_after(facts, plan));
        let options = LintOptions::default()
            .host(after.map(Host::new))
            .target(self.target.clone())
            .policy(self.args.host.policy.unwrap_or_default())
            .ignored(
                self.args
                    .ignore
                    .iter()
                    .cloned()
                    .collect::<BTreeSet<String>>(),
            );
        let input = match spec {
            Some(spec) => LintInput::Generated {
                written: &document,
                spec: &spec.document,
            },
            None => LintInput::Document(&document),
        };
        let mut found = lint(input, &options).diagnostics;
        found.retain(|diagnostic| diagnostic.severity >= Severity::Warning);
        Ok(found)
    }

    /// What a text of a guest has more than the text before it: existing findings are not caused by this command.
    pub(super) fn added(
        &self,
        before: &str,
        after: &str,
        plan: &Plan,
    ) -> Result<Vec<Message>, Stop> {
        let key = |found: &Diagnostic| {
            let target = found.disk.as_ref().and_then(|disk| disk.target.clone());
            (found.rule.name, target)
        };
        let known: BTreeSet<_> = self.findings(before, plan)?.iter().map(key).collect();
        let mut found = self.findings(after, plan)?;
        found.retain(|found| !known.contains(&key(found)));
        self.judge(found, None)
    }

    /// Splits findings into what refuses and what is only said.
    pub(super) fn judge(
        &self,
        found: Vec<Diagnostic>,
        spec: Option<&GenerateText>,
    ) -> Result<Vec<Message>, Stop> {
        let message = |found| message(found, spec);
        let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) = found
            .into_iter()
            .partition(|diagnostic| diagnostic.severity >= Severity::Error);
        if errors.is_empty() {
            return Ok(warnings.into_iter().map(message).collect());
        }
        let mut messages: Vec<Message> = errors.into_iter().map(message).collect();
        if let Some(last) = messages.last_mut() {
            last.notes
                .push("nothing was written; use --ignore RULE to write it anyway".to_owned());
        }
        Err(Stop(messages))
    }
}

fn message(diagnostic: Diagnostic, spec: Option<&GenerateText>) -> Message {
    let Diagnostic {
        rule,
        severity,
        title,
        place,
        label,
        notes,
        help,
        ..
    } = diagnostic;
    let title = format!("{title} [{}]", rule.name);
    let message = match severity {
        Severity::Error => Message::error(title),
        Severity::Warning | Severity::Advice | Severity::Pedantic => Message::warning(title),
    };
    let message = message.notes(notes).help(help);
    let Some((path, spec)) = spec.and_then(|spec| Some((spec.path.clone()?, spec))) else {
        return message;
    };
    message.at(MessagePlace::new(
        path,
        Some(MessageText {
            text: spec.shared.clone(),
            span: place.span,
            label,
            related: Vec::new(),
        }),
    ))
}
