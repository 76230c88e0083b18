//! The result is linted before it is written.

use vmdisk::plan::{Plan, facts_after};
use vmdisk::write::{self, QemuOptions};
use vmdisk::{Diagnostic, Facts, HostIndex, LintOptions, Severity, Target, lint};

use super::write::refused;
use crate::args::{GenerateArgs, GenerateForm};
use crate::render::message::Message;
use crate::stop::Stop;

/// Facts and target of a check.
pub(super) struct Check<'a> {
    pub(super) args: &'a GenerateArgs,
    pub(super) facts: Option<&'a Facts>,
    pub(super) target: &'a Target,
}

impl Check<'_> {
    /// Lints a plan in the requested form. Errors refuse; warnings are returned.
    pub(super) fn plan(&self, plan: &Plan) -> Result<Vec<Message>, Stop> {
        let domain = &plan.domain;
        let xml = || write::libvirt_xml(domain).map_err(|error| Stop::new(error.to_string()));
        let text = match self.args.to {
            GenerateForm::LibvirtXml | GenerateForm::DiskXml => xml()?,
            GenerateForm::Script => {
                // Whoever runs the guest on this storage need not be libvirt.
                let target = Target {
                    libvirt: None,
                    ..self.target.clone()
                };
                let check = Check {
                    target: &target,
                    ..*self
                };
                let found = check.findings(&xml()?, plan)?;
                return check.judge(found);
            }
            _ => {
                let options = QemuOptions {
                    target: self.target.clone(),
                    ..QemuOptions::default()
                };
                let mut line = write::qemu_command_line(domain, &options).map_err(refused)?;
                // Those are command lines of another program.
                line.daemons.clear();
                line.to_shell()
            }
        };
        let found = self.findings(&text, plan)?;
        self.judge(found)
    }

    /// The findings of a text at warning or above, on the host as the plan leaves it.
    pub(super) fn findings(&self, text: &str, plan: &Plan) -> Result<Vec<Diagnostic>, Stop> {
        let document = vmdisk::read(text).map_err(|failure| {
            Stop::new(format!(
                "the result cannot be read again: {}",
                failure.message
            ))
            .help("this is a bug of vmdisk; please report it")
        })?;
        let after = self.facts.map(|facts| facts_after(facts, plan));
        let index = after.as_ref().map(HostIndex::new);
        let options = LintOptions {
            host: index.as_ref(),
            target: self.target.clone(),
            policy: self.args.host.policy.unwrap_or_default(),
            ignored: self.args.ignore.iter().cloned().collect(),
            ..LintOptions::default()
        };
        let mut found = lint(&document, &options).diagnostics;
        found.retain(|diagnostic| diagnostic.severity >= Severity::Warning);
        Ok(found)
    }

    /// Splits findings into what refuses and what is only said.
    pub(super) fn judge(&self, found: Vec<Diagnostic>) -> Result<Vec<Message>, Stop> {
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

fn message(diagnostic: Diagnostic) -> Message {
    let Diagnostic {
        rule,
        severity,
        title,
        notes,
        help,
        ..
    } = diagnostic;
    let title = format!("{title} [{}]", rule.name);
    let message = match severity {
        Severity::Error => Message::error(title),
        Severity::Warning | Severity::Advice | Severity::Pedantic => Message::warning(title),
    };
    Message {
        notes,
        help,
        ..message
    }
}
