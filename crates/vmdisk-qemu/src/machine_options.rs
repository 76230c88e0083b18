//! `-name`, `-uuid`, `-machine`, `-accel`, `-smp`: the machine around the disks.

use vmdisk_model::{CpuMode, DomainField, DomainType, FieldPath, Switch};

use crate::argument::{ArgumentValue, QemuOption};
use crate::board::program;
use crate::key_value::KeyValue;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes the machine; `memory_backend` is the id of the object that holds the guest's memory.
    pub(crate) fn write_machine(&mut self, memory_backend: Option<&str>) -> Option<&'static str> {
        let domain = self.domain();
        let field = FieldPath::Domain;
        let program = program(self.machine().architecture);
        if program.is_none() {
            let message = format!("QEMU does not emulate {}", self.machine().architecture);
            self.problem(field(DomainField::Architecture), message);
        }
        if let Some(name) = &domain.name {
            let name = KeyValue::default().with("guest", name);
            self.push_pairs(QemuOption::Name, name, field(DomainField::Name));
        }
        if let Some(uuid) = &domain.uuid {
            match canonical_uuid(uuid) {
                Some(uuid) => self.push_pairs(
                    QemuOption::Uuid,
                    KeyValue::first(uuid),
                    field(DomainField::Uuid),
                ),
                None => self.problem(
                    field(DomainField::Uuid),
                    format!("`{uuid}` is not a UUID: expected 32 hexadecimal digits"),
                ),
            }
        }
        // The whole guest is known, so there are no other devices.
        self.push(
            QemuOption::Nodefaults,
            ArgumentValue::None,
            field(DomainField::Devices),
        );
        match self.machine().name.clone() {
            Some(name) => {
                let mut machine = KeyValue::first(name);
                if let Some(memory) = memory_backend {
                    machine = machine.with("memory-backend", memory);
                }
                if domain.acpi == Some(Switch::Off) && domain.is_pc() {
                    machine = machine.with("acpi", "off");
                }
                self.push_pairs(QemuOption::Machine, machine, field(DomainField::Machine));
            }
            None => self.problem(
                field(DomainField::Machine),
                format!(
                    "no machine is set, and {} has no default",
                    self.machine().architecture
                ),
            ),
        }
        match &domain.domain_type {
            Some(DomainType::Kvm) => self.accelerator("kvm"),
            Some(DomainType::Qemu) => self.accelerator("tcg"),
            Some(DomainType::Other(word)) if word == "hvf" => self.accelerator("hvf"),
            Some(DomainType::Other(word)) => self.problem(
                field(DomainField::DomainType),
                format!("QEMU does not run domains of type '{word}'"),
            ),
            None => {}
        }
        if let Some(cpu) = domain.cpu {
            let name = match cpu {
                CpuMode::Host => "host",
                CpuMode::Maximum => "max",
            };
            self.push_pairs(
                QemuOption::Cpu,
                KeyValue::first(name),
                field(DomainField::Vcpus),
            );
        }
        if let Some(vcpus) = domain.vcpus {
            let smp = KeyValue::first(vcpus.to_string());
            self.push_pairs(QemuOption::Smp, smp, field(DomainField::Vcpus));
        }
        program
    }

    fn accelerator(&mut self, word: &str) {
        self.push_pairs(
            QemuOption::Accel,
            KeyValue::first(word),
            FieldPath::Domain(DomainField::DomainType),
        );
    }
}

/// A UUID in the only form that QEMU accepts; libvirt also accepts other positions of dashes, none, and surrounding
/// space.
fn canonical_uuid(text: &str) -> Option<String> {
    let digits: String = text
        .trim()
        .chars()
        .filter(|letter| *letter != '-')
        .collect();
    if digits.len() != 32 || !digits.chars().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    Some(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_qemu_reads_it() {
        let canonical = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
        for text in [
            canonical,
            "4dea22b31d52d8f32516782e98ab3fa0",
            "\n4dea22b31d52d8f32516782e98ab3fa0 ",
            "4dea22b3-1d52d8f3-2516782e98ab3fa0",
        ] {
            assert_eq!(canonical_uuid(text).as_deref(), Some(canonical), "{text}");
        }
        for text in [
            "",
            "web1",
            "4dea22b3-1d52-d8f3-2516-782e98ab3fa",
            "\u{e9}dea22b31d52d8f32516782e98ab3fa",
        ] {
            assert_eq!(canonical_uuid(text), None, "{text}");
        }
    }
}
