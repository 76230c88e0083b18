//! Rules about XML text: one file each, with page, evidence and check.
//!
//! The reader reports most mistakes itself.

mod acpi_missing;
mod disk_in_qemu_commandline;
mod image_denied_by_apparmor;
mod image_denied_by_selinux;
pub(crate) mod iothread_pinned_on_vcpu;
mod nvram_format_differs;
mod pci_slot_refused;
mod qemu_set_refused;
pub(crate) mod seabios_4096_sectors;
mod taken_by_other_device;
mod uefi_files_refused;
pub(crate) mod undeclared_prefix;
pub(crate) mod unknown_attribute;
pub(crate) mod unknown_element;
mod xml;

#[cfg(test)]
#[allow(
    dead_code,
    reason = "`cargo xtask new-rule` copies it; tests compile it"
)]
mod template;

use vmdisk_rule::{Rule, TextRule};

pub(crate) use xml::{Xml, XmlRule};

/// The rules of this crate, sorted by name.
pub(crate) static TEXT_RULES: &[&XmlRule] = &[
    &acpi_missing::RULE,
    &disk_in_qemu_commandline::RULE,
    &image_denied_by_apparmor::RULE,
    &image_denied_by_selinux::RULE,
    &iothread_pinned_on_vcpu::RULE,
    &nvram_format_differs::RULE,
    &pci_slot_refused::RULE,
    &qemu_set_refused::RULE,
    &seabios_4096_sectors::RULE,
    &taken_by_other_device::RULE,
    &uefi_files_refused::RULE,
    &undeclared_prefix::RULE,
    &unknown_attribute::RULE,
    &unknown_element::RULE,
];

/// The rules of this crate, sorted by name.
pub static RULES: &[&Rule] = &TextRule::rules::<{ TEXT_RULES.len() }>(TEXT_RULES);
