//! The linter's findings on configurations, computed here because the runner does not depend on the rules.

use std::collections::BTreeSet;
use std::path::Path;

use vmdisk::model::{BackendSource, Protocol};
use vmdisk::rules::Evidence;
use vmdisk::{Host, LintOptions, Policy, Severity, Target, lint, read, write};
use vmdisk_bench_runner::{
    Configuration, EngineKind, FindingSeverity, LeftOut, LinterFinding, Plan, Storage,
};

/// Adds the linter's findings to each configuration of a plan, and removes configurations that QEMU or
/// libvirt would refuse. Inadvisable configurations are measured, because the plan asks about them.
pub(super) fn check(plan: &mut Plan, host: &Host, target: &Target, directory: &Path) {
    let mut refused: Vec<(String, String)> = Vec::new();
    let without_qemu: BTreeSet<usize> = plan
        .cells
        .iter()
        .filter(|cell| cell.engine == EngineKind::HostFio)
        .map(|cell| cell.configuration)
        .collect();
    for (index, configuration) in plan.configurations.iter_mut().enumerate() {
        if without_qemu.contains(&index) {
            continue;
        }
        let (findings, refusal) = findings_of(configuration, host, target, directory);
        configuration.findings = findings;
        if let Some(refusal) = refusal {
            refused.push((configuration.name.clone(), refusal));
        }
    }
    plan.leave_out(|cell| {
        let name = &cell.configuration.name;
        let refusal = refused.iter().find(|(refused, _)| refused == name)?;
        Some(refusal.1.clone())
    });
}

fn findings_of(
    configuration: &Configuration,
    host: &Host,
    target: &Target,
    directory: &Path,
) -> (Vec<LinterFinding>, Option<String>) {
    let mut guest = configuration.guest.clone();
    if let Storage::File { directory: own, .. } = &configuration.storage {
        let file = own.as_deref().unwrap_or(directory).join("disk");
        for disk in &mut guest.disks {
            if let BackendSource::Image(image) = &mut disk.backend.source {
                image.protocol = Protocol::File {
                    path: file.display().to_string(),
                };
            }
        }
    }
    let Ok(text) = write::libvirt_xml(&guest) else {
        return (Vec::new(), None);
    };
    let Ok(document) = read(&text) else {
        return (Vec::new(), None);
    };
    let options = LintOptions::default()
        .host(host.clone())
        .target(target.clone())
        .policy(Policy::Lab);
    let report = lint(&document, &options);
    let mut findings: Vec<LinterFinding> = Vec::new();
    let mut refusal = None;
    for diagnostic in report.diagnostics {
        let is_refused = diagnostic
            .rule
            .evidence
            .iter()
            .any(|evidence| matches!(evidence, Evidence::Refused { .. }));
        if is_refused && diagnostic.severity == Severity::Error && refusal.is_none() {
            refusal = Some(format!("{} ({})", diagnostic.title, diagnostic.rule.name));
        }
        findings.push(LinterFinding {
            rule: diagnostic.rule.name.to_owned(),
            severity: match diagnostic.severity {
                Severity::Error => FindingSeverity::Error,
                Severity::Warning => FindingSeverity::Warning,
                Severity::Advice | Severity::Pedantic => FindingSeverity::Advice,
            },
            title: diagnostic.title,
        });
    }
    (findings, refusal)
}

/// Formats omissions for a terminal.
pub(super) fn left_out(left_out: &[LeftOut]) -> String {
    left_out
        .iter()
        .map(|left_out| format!("  {}: {}\n", left_out.what, left_out.why))
        .collect()
}
