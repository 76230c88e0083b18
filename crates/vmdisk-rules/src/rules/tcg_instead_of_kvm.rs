//! `tcg-instead-of-kvm`

use vmdisk_facts::host::KvmObstacle;
use vmdisk_facts::{Fact, HostIndex};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Change, Domain, DomainField, DomainType, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// The guest is emulated although KVM works, or requires KVM on a host without it.
    ///
    /// ## What it reports
    /// Reports `<domain type='qemu'>` as a warning if the facts show that a virtual machine ran with KVM on the host
    /// and the guest has the host's architecture. Reports `<domain type='kvm'>` as an error without `/dev/kvm`, and as
    /// a warning if a trial guest did not run with KVM. That `/dev/kvm` exists and can be opened proves nothing;
    /// `vmdisk facts --group kvm` runs a trial guest.
    ///
    /// ## Why it matters
    /// With `type='qemu'` QEMU translates each instruction of the guest (TCG). The guest is then at least ten times
    /// slower, also for disks, because guest code issues every request. TCG is also not a security boundary, according
    /// to QEMU's documentation. With `type='kvm'` and no `/dev/kvm` the guest does not start.
    ///
    /// ## Use instead
    /// Use `type='kvm'` on a host where KVM works; the guest may see another processor model. On a host without KVM,
    /// enable virtualisation in the firmware and load `kvm_intel` or `kvm_amd`. `type='qemu'` works everywhere, but
    /// slowly.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,facts-no-kvm
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    ///
    /// A trial guest did not run:
    /// ```xml,reported,facts-kvm-does-not-run
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
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
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// KVM cannot run another architecture:
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='aarch64' machine='virt'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='qemu'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    name: "tcg-instead-of-kvm",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("a /dev/kvm that opens and creates virtual machines: a guest of 500 bytes took 3.8 s with it and 0.2 s emulated, \
                      and with the host's processor (-cpu host) QEMU 7.2 ended with `failed to set MSR 0x10a to 0x69`", "vmdisk facts --group kvm on the test machine of this project, where KVM is kvm_pvm"),
        Evidence::NotMeasuredHere("the factor of ten is common knowledge; this project's machines have no working KVM to compare with"),
        Evidence::Source("QEMU docs/system/security: only guests under a hardware hypervisor are a security boundary, TCG is not"),
        Evidence::Source("QEMU accel/kvm/kvm-all.c, kvm_init: Could not access KVM kernel module"),
    ],
    check: Model(check),
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

/// True if KVM is known to work and can run this guest.
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

/// The state of KVM on a host.
enum State {
    /// Nothing indicates that KVM fails.
    MayRun,
    /// KVM is not available, for this reason if known.
    Missing(Option<KvmObstacle>),
    /// A trial guest did not run, with this message.
    DoesNotRun(String),
}

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
        // The kernel has KVM; the facts may come from a container with its own /dev.
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
        // Most hosts have no trial.
        Fact::Known(true) | Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => State::MayRun,
    })
}

fn report_emulated(report: &mut Report, at: FieldPath) {
    report
        .finding(at, "the guest is emulated, but KVM works on this host")
        .label("QEMU translates every instruction of the guest")
        .note("according to the facts, a guest ran with KVM on this host")
        .note("with KVM the guest may see another default processor")
        .remedy(Fix::needs_consent([Change::set(at, DomainType::Kvm)]));
}

fn report_broken(report: &mut Report, at: FieldPath, trial: &str) {
    let finding = report.finding(
        at,
        "the guest requires KVM, but a trial guest did not run with it",
    );
    finding.label("/dev/kvm exists, which proves nothing");
    if !trial.is_empty() {
        finding.note(format!(
            "the trial with the host's processor model failed: {trial}"
        ));
    }
    finding
        .note("another processor model may run, possibly slower than emulation")
        .help(phrase!(
            "check whether any guest runs on this host; {emulated} runs without KVM, slowly",
            emulated = setting(at, DomainType::Qemu),
        ));
}

fn report_no_kvm(report: &mut Report, at: FieldPath, obstacle: Option<KvmObstacle>) {
    let help = match obstacle {
        Some(KvmObstacle::ProcessorOrFirmware) => {
            "enable virtualisation in the firmware, or nesting on the host above"
        }
        Some(KvmObstacle::Module) => {
            "load kvm_intel or kvm_amd; if that fails, enable virtualisation in the firmware"
        }
        Some(KvmObstacle::Node | KvmObstacle::Permission) | None => {
            "enable virtualisation in the firmware, or nesting on the host above, and load kvm_intel or kvm_amd"
        }
    };
    report
        .finding(at, "the guest requires KVM, which this host does not have")
        .severity(Severity::Error)
        .label("/dev/kvm does not exist")
        .note("this is an error: QEMU says `Could not access KVM kernel module` and does not start")
        .help(phrase!(
            "{help}; {emulated} runs without it, ten times slower",
            help,
            emulated = setting(at, DomainType::Qemu),
        ));
}
