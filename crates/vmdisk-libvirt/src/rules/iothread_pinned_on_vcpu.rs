//! `iothread-pinned-on-vcpu`

use std::collections::BTreeSet;

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::RootKind;
use crate::xml::Node;

xml_rule! {
    /// An iothread is pinned to a CPU that also runs a vCPU, so they wait for each other.
    ///
    /// ## What it reports
    /// Reports `<iothreadpin>` if each CPU in its set is one to which a vCPU is pinned alone. Sets in which vCPUs and
    /// iothreads can move to another CPU are not reported.
    ///
    /// ## Why it matters
    /// An iothread serves the requests that a vCPU submits. On the same CPU it runs only when the vCPU is interrupted,
    /// so under load each request waits for a time slice. Pinning is meant to prevent that.
    ///
    /// ## Use instead
    /// Pin the iothread to a CPU of the same NUMA node that no `<vcpupin>` names, or remove `<iothreadpin>`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>2</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <cputune>
    ///     <vcpupin vcpu='0' cpuset='2'/>
    ///     <vcpupin vcpu='1' cpuset='3'/>
    ///     <iothreadpin iothread='1' cpuset='2'/>
    ///   </cputune>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' iothread='1'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>2</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <cputune>
    ///     <vcpupin vcpu='0' cpuset='2'/>
    ///     <vcpupin vcpu='1' cpuset='3'/>
    ///     <iothreadpin iothread='1' cpuset='3-4'/>
    ///   </cputune>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' iothread='1'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "iothread-pinned-on-vcpu",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::NotMeasuredHere("IBM and Red Hat, tuning guides for KVM: pin iothreads to other CPUs than vCPUs"),
        Evidence::Source("libvirt docs/formatdomain.rst, iothreadpin: by default iothreads run on the CPUs of <vcpu>, or on all"),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let cputune = xml.tree.root().child("cputune");
    let Some(cputune) = cputune.filter(|_| matches!(xml.root, RootKind::Domain)) else {
        return;
    };
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    for pin in cputune.children().filter(|node| node.is_named("vcpupin")) {
        if let Some(&[cpu]) = cpus(pin).as_deref() {
            taken.insert(cpu);
        }
    }
    if taken.is_empty() {
        return;
    }
    for pin in cputune
        .children()
        .filter(|node| node.is_named("iothreadpin"))
    {
        let Some(set) = cpus(pin).filter(|set| !set.is_empty()) else {
            continue;
        };
        if !set.iter().all(|cpu| taken.contains(cpu)) {
            continue;
        }
        let id = pin.attribute("iothread").unwrap_or_default();
        let message = format!("iothread {id} is pinned to CPUs that run vCPUs");
        let at = FieldPath::Domain(DomainField::Domain);
        report
            .finding(at, message)
            .span(pin.tag())
            .help("pin it to a CPU that no `<vcpupin>` names");
    }
}

/// The CPUs of a pin; `None` if it is not a list such as `0-3,^2,8`, or names more CPUs than a host has.
fn cpus(pin: Node<'_>) -> Option<Vec<u32>> {
    const MAX_CPU: u32 = 8192;
    let mut set = BTreeSet::new();
    for part in pin.attribute("cpuset")?.split(',') {
        let part = part.trim();
        if let Some(without) = part.strip_prefix('^') {
            set.remove(&without.parse().ok()?);
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > MAX_CPU {
            return None;
        }
        set.extend(first..=last);
    }
    Some(set.into_iter().collect())
}
