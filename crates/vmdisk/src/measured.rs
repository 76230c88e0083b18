//! Findings about speed, beside what was measured on the host.

use vmdisk_facts::HostIndex;
use vmdisk_model::{Domain, DomainType, Image};

use crate::rules::{Finding, Group};

/// Notes what was measured on the host about the claims of findings about speed, and takes back the fixes that it
/// refutes. Emulation shows nothing about a guest with hardware virtualization.
pub(crate) fn cite(domain: &Domain, host: Option<&HostIndex<'_>>, findings: &mut [Finding]) {
    let Some(host) = host.filter(|host| !host.facts().measured.is_empty()) else {
        return;
    };
    let is_emulated = domain.domain_type == Some(DomainType::Qemu);
    let about_speed = findings
        .iter_mut()
        .filter(|it| it.rule.group == Group::Performance);
    for finding in about_speed {
        let disk = finding.at.disk().and_then(|disk| domain.disks.get(disk));
        let Some(image) = disk.and_then(|disk| disk.backend.image()) else {
            continue;
        };
        let Some(path) = Image::host_path(image) else {
            continue;
        };
        let format = image.format.map(vmdisk_model::Format::as_str);
        let mut effects = host.effects_on(path, finding.rule.name);
        effects.retain(|(storage, _)| storage.is_like(format, None, None));
        for (storage, effect) in &effects {
            let note = format!(
                "measured on this host: the change is {effect}, on {}",
                storage.conditions()
            );
            finding.details_mut().notes.push(note.into());
        }
        effects.retain(|(storage, _)| is_emulated || !storage.accelerator.as_str().is(&"tcg"));
        if !effects.is_empty() && effects.iter().all(|(_, effect)| effect.refutes()) {
            finding.fix = None;
            finding.details_mut().help = Some(
                "keep it: what was measured on this host shows no gain of more than 10 %".into(),
            );
        }
    }
}
