//! `emulator-missing`

use vmdisk_facts::{Fact, FileKind, HostIndex};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The `<emulator>` of the guest does not exist.
    ///
    /// ## What it reports
    /// Reports an `<emulator>` that does not exist on the host, that is a directory, or that nobody may execute. Also
    /// reports one without a directory, such as `qemu-system-x86_64`: libvirt does not search `PATH`. An emulator below
    /// `/app` belongs to a Flatpak, whose files are not those of the host, and is not checked.
    ///
    /// ## Why it matters
    /// libvirt refuses the definition. Distributions install QEMU at different paths: `/usr/bin/qemu-system-x86_64` on
    /// Debian, Ubuntu, Arch and Fedora, `/usr/bin/kvm` on older ones, `/usr/libexec/qemu-kvm` on RHEL.
    ///
    /// ## Use instead
    /// Remove `<emulator>`: libvirt then uses the QEMU of the host for the architecture. `virsh domcapabilities` prints its
    /// path.
    ///
    /// ## Reported
    /// ```xml,reported,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/usr/libexec/qemu-kvm</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>qemu-system-x86_64</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/opt/qemu</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/opt/qemu/run.sh</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/usr/bin/qemu-system-x86_64</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/opt/qemu/qemu-system-x86_64</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/opt/qemu/others.sh</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/usr/libexec/qemu-kvm</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-checked,hidden,facts-apparmor
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <emulator>/app/bin/qemu-system-x86_64</emulator>
    ///   </devices>
    /// </domain>
    /// ```
    name: "emulator-missing",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("Cannot check QEMU binary …: No such file or directory", "src/qemu/qemu_capabilities.c, virQEMUCapsNewForBinaryInternal"),
        Evidence::measured("`QEMU binary /etc/passwd is not executable: Permission denied`, and `Is a directory` for /usr/bin", "virsh define with libvirt 9.0 and 11.3"),
    ],
    check: Model(check),
}

/// The files of a Flatpak, as it sees them.
const FLATPAK: &str = "/app/";

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(path) = context.domain.emulator.as_deref() else {
        return;
    };
    let at = FieldPath::Domain(DomainField::Emulator);
    let problem = if path.contains('/') {
        let what = || format!("whether {path} can be started");
        let problem = context.host(what).and_then(|facts| {
            let problem = match path.starts_with(FLATPAK) {
                true => Fact::NotCollected,
                false => problem(facts, path),
            };
            Context::known(problem, what)
        });
        report.require(at, problem).flatten()
    } else {
        Some("libvirt does not search `PATH`")
    };
    let Some(problem) = problem else {
        return;
    };
    report
        .finding(
            at,
            phrase!(
                "the emulator cannot be started: {path}",
                path = quoted(path.to_owned())
            ),
        )
        .label(problem)
        .help(
            "remove `<emulator>`, so that libvirt uses the QEMU of the host, or correct the path",
        );
}

/// The reason why a program cannot be started; absent if it can.
fn problem(facts: &HostIndex<'_>, path: &str) -> Fact<&'static str> {
    let programs = facts.facts().qemu.value().into_iter().flatten();
    let mut paths = programs.filter_map(|qemu| qemu.path.value());
    if paths.any(|program| program == path) {
        return Fact::Absent;
    }
    host::exists(facts, path).and_then(|exists| {
        let file = facts.file(path);
        let kind = file.and_then(|file| file.kind.value());
        let mode = file.and_then(|file| file.mode.value());
        match exists {
            false => Fact::Known("not found on the host"),
            true if kind == Some(&FileKind::Directory) => Fact::Known("a directory"),
            true if mode.is_some_and(|mode| mode.0 & 0o111 == 0) => Fact::Known("not executable"),
            true => Fact::Absent,
        }
    })
}
