//! `tcg-instead-of-kvm`

use vmdisk_facts::host::KvmObstacle;
use vmdisk_facts::{Fact, HostIndex};
use vmdisk_model::{Change, Domain, DomainField, DomainType, FieldPath};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Missing, Report, Severity};

declare_rule! {
    /// The guest is emulated on a host where KVM works, or asks for KVM on a host that has none.
    ///
    /// ## What it does
    /// Reports `<domain type='qemu'>` where the facts say that a virtual machine was seen to run with KVM and the
    /// guest's architecture is the host's (a warning), and `<domain type='kvm'>` where there is no `/dev/kvm` (an
    /// error), or where a guest was tried that did not run with it (a warning). A `/dev/kvm` that exists and can be
    /// opened proves nothing, and counts for neither; `vmdisk facts --group kvm` tries.
    ///
    /// ## Why it matters
    /// With `type='qemu'` QEMU translates each instruction of the guest (TCG), which is slower by a factor of ten
    /// and more, for disks too: every request is made by guest code. TCG is also no security boundary: QEMU's
    /// documentation excludes it. With `type='kvm'` and no `/dev/kvm` the guest does not start.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    /// ```xml,fixed,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    /// ```xml,reported,facts-no-kvm
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    ///
    /// Here a guest was tried:
    /// ```xml,reported,facts-kvm-does-not-run
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    /// KVM cannot run another architecture:
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='aarch64' machine='virt'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    /// Without facts, nobody knows whether the host has KVM:
    /// ```xml,not-checked
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    /// </domain>
    /// ```
    pub(super) static RULE = {
        name: "tcg-instead-of-kvm",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a /dev/kvm that opens and makes virtual machines: a guest of 500 bytes took 3.8 s with it and 0.2 s emulated, \
                          and with the host's processor (-cpu host) QEMU 7.2 ended with `failed to set MSR 0x10a to 0x69`",
                how: "vmdisk facts --group kvm on the machine this project is tested on, where KVM is kvm_pvm",
            },
            Evidence::NotMeasuredHere("the factor of ten is common knowledge; this project's machines have no working KVM to compare with"),
            Evidence::Source("QEMU docs/system/security: only guests under a hardware hypervisor are a security boundary, TCG is not"),
            Evidence::Source("QEMU accel/kvm/kvm-all.c, kvm_init: Could not access KVM kernel module"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let at = FieldPath::Domain(DomainField::DomainType);
    let domain = context.domain;
    let what = || "whether KVM works on the host".to_owned();
    match &domain.domain_type {
        Some(DomainType::Qemu) => {
            let answer = context
                .host(what)
                .and_then(|host| should_use_kvm(domain, host));
            if report.require(at, answer) == Some(true) {
                report_emulated(report, at);
            }
        }
        Some(DomainType::Kvm) => {
            let answer = context.host(what).and_then(state);
            match report.require(at, answer) {
                Some(State::Missing(obstacle)) => report_no_kvm(report, at, obstacle),
                Some(State::DoesNotRun(trial)) => report_broken(report, at, &trial),
                Some(State::MayRun) | None => {}
            }
        }
        Some(DomainType::Other(_)) | None => {}
    }
}

/// Whether KVM was seen to work and could run this guest.
fn should_use_kvm(domain: &Domain, host: &HostIndex<'_>) -> Result<bool, Missing> {
    let facts = host.facts();
    if let Some(guest) = domain.architecture {
        let arch = Context::known(facts.cpu.arch.as_str(), || {
            "the host's architecture".to_owned()
        })?;
        if arch.and_then(|host| guest.runs_on_kvm_of(host)) != Some(true) {
            return Ok(false);
        }
    }
    if facts.kvm.dev_kvm.is_false() {
        return Ok(false);
    }
    let what = || "whether a guest was ever seen to run with KVM".to_owned();
    Ok(Context::known(facts.kvm.proven.clone(), what)? == Some(true))
}

/// What is known of KVM on a host.
enum State {
    /// Nothing speaks against it.
    MayRun,
    /// There certainly is none, for this reason if it is known.
    Missing(Option<KvmObstacle>),
    /// A guest was tried and did not run, in these words.
    DoesNotRun(String),
}

/// What is known of KVM on the host.
fn state(host: &HostIndex<'_>) -> Result<State, Missing> {
    let facts = host.facts();
    let what = || "whether the host has /dev/kvm".to_owned();
    if let Fact::Known(namespace) = &facts.collector.namespace
        && namespace == "container"
    {
        return Err(Missing::new(
            what(),
            "the facts were collected in a container",
        ));
    }
    let obstacle = facts.kvm.obstacle.clone().known();
    let is_there = Context::known(facts.kvm.dev_kvm.clone(), what)?.unwrap_or(false);
    if !is_there {
        // The kernel has it: whoever collected the facts may not have seen the host's own /dev.
        if obstacle == Some(KvmObstacle::Node) {
            return Err(Missing::new(
                what(),
                "KVM is loaded and /dev/kvm is not there, as in a container",
            ));
        }
        return Ok(State::Missing(obstacle));
    }
    Ok(match &facts.kvm.proven {
        Fact::Known(false) => {
            State::DoesNotRun(facts.kvm.trial.clone().known().unwrap_or_default())
        }
        // Unproven is no reproach: most hosts are.
        Fact::Known(true) | Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => State::MayRun,
    })
}

fn report_emulated(report: &mut Report, at: FieldPath) {
    report
        .finding(at, "the guest is emulated, and KVM works on this host")
        .label("QEMU translates every instruction of the guest")
        .note("the facts say that a guest was seen to run with KVM on this host")
        .help("write type='kvm'; the guest may see another default processor")
        .fix(Fix::needs_consent([Change::set(
            at,
            DomainType::Kvm.as_wire(),
        )]));
}

fn report_broken(report: &mut Report, at: FieldPath, trial: &str) {
    let finding = report.finding(
        at,
        "the guest asks for KVM, with which a guest that was tried did not run",
    );
    finding.label("/dev/kvm is there, and proves nothing");
    if !trial.is_empty() {
        finding.note(format!("the trial with the host's own processor: {trial}"));
    }
    finding
        .note("another <cpu> may run, and may be slower than emulation")
        .help("see whether any guest runs on this host; type='qemu' runs without KVM, slowly");
}

fn report_no_kvm(report: &mut Report, at: FieldPath, obstacle: Option<KvmObstacle>) {
    let help = match obstacle {
        Some(KvmObstacle::ProcessorOrFirmware) => {
            "switch virtualisation on in the firmware, or nesting on the host above; type='qemu' runs without it, ten times slower"
        }
        Some(KvmObstacle::Module) => {
            "load kvm_intel or kvm_amd; if it refuses, switch virtualisation on in the firmware; type='qemu' runs without it, ten times slower"
        }
        Some(KvmObstacle::Node | KvmObstacle::Permission) | None => {
            "switch virtualisation on in the firmware, or nesting on the host above, and load kvm_intel or kvm_amd; type='qemu' runs without it, ten times slower"
        }
    };
    report
        .finding(at, "the guest asks for KVM, and this host has none")
        .severity(Severity::Error)
        .label("there is no /dev/kvm")
        .note("an error and no warning: QEMU says `Could not access KVM kernel module` and does not start")
        .help(help);
}
