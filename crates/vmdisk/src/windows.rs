//! What Windows needs around its disks: a clock in local time that catches up on lost ticks, and interfaces of Hyper-V.
//!
//! The values are those of virt-install (virt-manager 4.1, `virtinst/domain/clock.py` and `features.py`, and the clock of
//! osinfo-db). The words for QEMU are those that libvirt 9.0 writes for the XML; QEMU 5.2 to 11.1 accept them under TCG.
//! Under KVM they were not tried.

use vmdisk_model::Scope;
use vmdisk_plan::{GuestOs, Plan};

/// Elements of a domain.
pub(crate) const XML: &str = "  <features>
    <acpi/>
    <apic/>
    <hyperv>
      <relaxed state='on'/>
      <vapic state='on'/>
      <spinlocks state='on' retries='8191'/>
    </hyperv>
  </features>
  <clock offset='localtime'>
    <timer name='rtc' tickpolicy='catchup'/>
    <timer name='pit' tickpolicy='delay'/>
    <timer name='hpet' present='no'/>
    <timer name='hypervclock' present='yes'/>
  </clock>
";

/// Options of a command line.
pub(crate) const WORDS: [&str; 6] = [
    "-machine",
    "hpet=off",
    "-rtc",
    "base=localtime,driftfix=slew",
    "-global",
    "kvm-pit.lost_tick_policy=delay",
];

/// Properties of the CPU.
pub(crate) const HYPERV: &str = "hv-time=on,hv-relaxed=on,hv-vapic=on,hv-spinlocks=0x1fff";

/// True for a PC that runs Windows.
pub(crate) fn is_windows(plan: &Plan) -> bool {
    let domain = &plan.domain;
    plan.os == Some(GuestOs::Windows) && domain.is_pc() && domain.scope == Scope::WholeGuest
}
