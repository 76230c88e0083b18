//! The I/O path of each disk, with the findings at the steps that they concern.

pub use vmdisk_trace::{
    CrashLoss, IoPath, Layer, Property, RULE_LAYERS, RequestEffect, RequestKind, RequestOutcome,
    Statement, StatementBasis, Survival, TraceStep,
};

use vmdisk_facts::{HostIndex, Target};

use crate::diagnostic::mask;
use crate::placeholders::QuotedPlaceholders;
use crate::rules::Context;
use crate::text_report::context_of;
use crate::{Diagnostic, DiskIdentity, Document, Host, LintOptions, lint};

/// The I/O paths of a guest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GuestTrace {
    /// The path of each disk.
    pub disks: Vec<DiskTrace>,
    /// Findings that concern no single disk.
    pub others: Vec<Diagnostic>,
}

/// The I/O path of a disk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiskTrace {
    /// The disk.
    pub disk: DiskIdentity,
    /// Its path.
    pub path: IoPath,
    /// Findings that concern it, each with the number of its step.
    pub findings: Vec<(usize, Diagnostic)>,
}

/// Derives the I/O path of each disk of `document`, and attaches the findings to its steps.
///
/// ```
/// use vmdisk::trace::{RequestKind, RequestOutcome, trace};
/// use vmdisk::{LintOptions, read};
///
/// let text = "<disk type='block' device='disk'>
///   <driver name='qemu' type='raw' cache='unsafe'/>
///   <source dev='/dev/vg0/web1'/>
///   <target dev='vda' bus='virtio'/>
/// </disk>";
/// let traced = trace(&read(text)?, &LintOptions::default());
/// let disk = &traced.disks[0];
/// let dropped = disk.path.steps.iter().position(|step| step.effect(RequestKind::Flush).outcome == RequestOutcome::Dropped);
/// assert!(disk.findings.iter().any(|(step, it)| it.rule.name == "cache-unsafe" && Some(*step) == dropped));
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
pub fn trace(document: &Document, options: &LintOptions) -> GuestTrace {
    let findings = lint(document, options).diagnostics;
    let planned = options.planned(document);
    let document = planned.as_ref().unwrap_or(document);
    trace_on(document, &context_of(document, options), findings.iter())
}

/// The I/O paths of a guest on hosts with the same facts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostTrace {
    /// The numbers of the hosts in the fleet, ascending; empty without a fleet.
    pub hosts: Vec<usize>,
    /// The paths.
    pub guest: GuestTrace,
}

/// As [`trace`] with findings that are already there, for each kind of host of the fleet; a finding is attached on the
/// hosts that it concerns.
pub fn trace_linted(
    document: &Document,
    options: &LintOptions,
    findings: &[Diagnostic],
) -> Vec<HostTrace> {
    let Some(fleet) = &options.fleet else {
        let guest = trace_on(document, &context_of(document, options), findings.iter());
        let hosts = Vec::new();
        return vec![HostTrace { hosts, guest }];
    };
    let of_kind = |(host, target, hosts): (&HostIndex<'_>, &Target, &[usize])| {
        let planned = document.planned_for(host.facts(), target);
        let document = planned.as_ref().unwrap_or(document);
        let context = Context {
            host: Some(document.host_after().map_or(host, Host::index)),
            target,
            ..context_of(document, options)
        };
        let concerns = |finding: &&Diagnostic| {
            let found = finding.hosts.as_ref();
            found.is_none_or(|found| hosts.iter().any(|host| found.affected.contains(host)))
        };
        HostTrace {
            hosts: hosts.to_vec(),
            guest: trace_on(document, &context, findings.iter().filter(concerns)),
        }
    };
    fleet.known_hosts().map(of_kind).collect()
}

fn trace_on<'d>(
    document: &Document,
    context: &Context<'_>,
    findings: impl Iterator<Item = &'d Diagnostic>,
) -> GuestTrace {
    let domain = document.domain();
    let quoted = document.quoted_placeholders();
    let mut disks: Vec<DiskTrace> = document.with_speller(|speller| {
        let paths = (0..domain.disks.len()).map(|index| {
            Some(DiskTrace {
                disk: document.disk_identity(index),
                path: readable(
                    vmdisk_trace::trace(context, index, speller)?,
                    quoted.as_ref(),
                ),
                findings: Vec::new(),
            })
        });
        paths.flatten().collect()
    });
    let mut others = Vec::new();
    for diagnostic in findings {
        let mut is_attached = false;
        let before = |nth: usize| disks.partition_point(|traced| traced.disk.index < nth);
        let near = match diagnostic.at.disk() {
            Some(nth) => before(nth)..before(nth + 1),
            None => 0..disks.len(),
        };
        for traced in &mut disks[near] {
            let (index, rule) = (traced.disk.index, diagnostic.rule.name);
            let step = vmdisk_trace::step_of(domain, index, &traced.path, rule, diagnostic.at);
            if let Some(step) = step {
                traced.findings.push((step, diagnostic.clone()));
                is_attached = true;
            }
        }
        if !is_attached {
            others.push(diagnostic.clone());
        }
    }
    GuestTrace { disks, others }
}

/// A path whose texts show no secrets of the sources that they name, and placeholders as they are written.
fn readable(mut path: IoPath, quoted: Option<&QuotedPlaceholders<'_>>) -> IoPath {
    let readable = |text: &mut String| {
        mask(text);
        if let Some(quoted) = quoted {
            quoted.restore(text);
        }
    };
    for step in &mut path.steps {
        readable(&mut step.name);
        for property in &mut step.properties {
            readable(&mut property.value);
            texts_of(&mut property.basis).for_each(readable);
        }
    }
    let effects = path.steps.iter_mut().flat_map(|step| &mut step.effects);
    let statements = effects.map(|effect| &mut effect.statement);
    for Statement { text, basis } in statements.chain(&mut path.loss.statements) {
        std::iter::once(text)
            .chain(texts_of(basis))
            .for_each(readable);
    }
    path
}

/// The texts of a basis that quote a source.
fn texts_of(basis: &mut StatementBasis) -> impl Iterator<Item = &mut String> {
    let texts: Vec<&mut String> = match basis {
        StatementBasis::Configuration { setting: text } | StatementBasis::Fact { fact: text } => {
            vec![text]
        }
        StatementBasis::Missing { what, why, command } => {
            [what, why].into_iter().chain(command).collect()
        }
        StatementBasis::Source { .. } | StatementBasis::Step { .. } => Vec::new(),
    };
    texts.into_iter()
}
