//! What Windows needs around its disks: a clock in local time that catches up on lost ticks, and interfaces of Hyper-V.
//!
//! The values are those of virt-install (virt-manager 4.1, `virtinst/domain/clock.py` and `features.py`, and the clock of
//! osinfo-db). The words for QEMU are those that libvirt 9.0 writes for the XML; QEMU 5.2 to 11.1 accept them under TCG.
//! Under KVM they were not tried.

use vmdisk_libvirt::{Unmodeled, Unwritable};
use vmdisk_model::{Architecture, Domain, Scope};
use vmdisk_plan::{GuestOs, Plan};

use crate::write;

const XML: &str = "<domain>
  <features>
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
</domain>";

const WORDS: [&str; 6] = [
    "-machine",
    "hpet=off",
    "-rtc",
    "base=localtime,driftfix=slew",
    "-global",
    "kvm-pit.lost_tick_policy=delay",
];

const HYPERV: &str = "hv-time=on,hv-relaxed=on,hv-vapic=on,hv-spinlocks=0x1fff";

/// True for a PC that runs Windows.
fn is_windows(plan: &Plan) -> bool {
    let domain = &plan.domain;
    plan.os == Some(GuestOs::Windows) && domain.is_pc() && domain.scope == Scope::WholeGuest
}

/// The planned guest as XML for libvirt, with what its operating system needs.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn planned_xml(plan: &Plan) -> Result<String, Unwritable> {
    let kept = match is_windows(plan) {
        true => vmdisk_libvirt::read(XML).expect("it is a guest").kept,
        false => Unmodeled::default(),
    };
    write::libvirt_xml_with(&plan.domain, &kept)
}

/// The planned guest as QEMU gets it: its first disk boots, and the words of a command line say what its operating system
/// needs.
pub fn planned_for_qemu(plan: &Plan) -> (Domain, Vec<String>) {
    let mut domain = plan.domain.clone();
    domain.boot_from_first_disk();
    (domain, words(plan))
}

fn words(plan: &Plan) -> Vec<String> {
    if !is_windows(plan) {
        return Vec::new();
    }
    // The CPU that these machines have unless one is chosen.
    let cpu = match plan.domain.architecture {
        Some(Architecture::I686) => "qemu32",
        _ => "qemu64",
    };
    let cpu = format!("{cpu},{HYPERV}");
    WORDS
        .into_iter()
        .chain(["-cpu", &cpu])
        .map(str::to_owned)
        .collect()
}
