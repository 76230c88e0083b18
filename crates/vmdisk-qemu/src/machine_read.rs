//! Reads the machine that the disks hang on.

use vmdisk_model::{Bytes, DomainField, DomainType, FieldPath, MachineType, Scope};

use crate::board::Board;
use crate::object::read::size_of;
use crate::reader::{Reader, number_of};
use crate::syntax::form::{Words, architecture};

impl Reader<'_> {
    /// Reads machine, accelerator, memory and CPUs.
    pub(crate) fn read_machine(&mut self, words: &Words) {
        let at = FieldPath::Domain;
        let program = words.program.as_ref().map(|program| program.as_str());
        self.domain.architecture = program.and_then(architecture);
        if self
            .options
            .iter()
            .any(|option| option.name == "enable-kvm")
        {
            self.domain.domain_type = Some(DomainType::Kvm);
        }
        for name in ["machine", "M"] {
            for (option, machine) in self.of_name(name) {
                if let Some(machine_type) = machine
                    .peek("type")
                    .filter(|it| !it.value.as_str().is_empty())
                {
                    self.record(at(DomainField::Machine), machine_type);
                    self.domain.machine = Some(MachineType::new(machine_type.value.as_str()));
                }
                if let Some(accelerator) = machine.peek("accel") {
                    self.record(at(DomainField::DomainType), accelerator);
                    self.domain.domain_type = Some(domain_type(accelerator.value.as_str()));
                }
                self.record_option(at(DomainField::Os), option);
            }
        }
        for (_, accelerator) in self.of_name("accel") {
            if let Some(word) = accelerator.peek("accel")
                // The first of several is tried first.
                && self.map.place(at(DomainField::DomainType)).is_none()
            {
                self.record(at(DomainField::DomainType), word);
                self.domain.domain_type = Some(domain_type(word.value.as_str()));
            }
        }
        for (_, memory) in self.of_name("m") {
            if let Some(size) = memory.peek("size") {
                self.record(at(DomainField::Memory), size);
                self.domain.memory = size_of(size.value.as_str(), Bytes::MIB);
            }
        }
        for (_, smp) in self.of_name("smp") {
            if let Some(cpus) = smp.peek("maxcpus").or(smp.peek("cpus")) {
                self.record(at(DomainField::Vcpus), cpus);
                self.domain.vcpus =
                    number_of(cpus.value.as_str()).and_then(|cpus| u32::try_from(cpus).ok());
            }
        }
        for (_, name) in self.of_name("name") {
            if let Some(guest) = name.peek("guest") {
                self.record(at(DomainField::Name), guest);
                self.domain.name = Some(guest.value.as_str().to_owned());
            }
        }
        for option in self.options.iter().filter(|option| option.name == "uuid") {
            if let Some(uuid) = option.properties.as_ref().and_then(|it| it.peek("uuid")) {
                self.record(at(DomainField::Uuid), uuid);
                self.domain.uuid = Some(uuid.value.as_str().to_owned());
            }
        }
        let is_whole = words.program.is_some() || self.domain.machine.is_some();
        self.domain.scope = if is_whole {
            Scope::WholeGuest
        } else {
            Scope::DisksOnly
        };
        self.board =
            crate::board::Machine::of(&self.domain, &vmdisk_facts::Target::default()).board;
        if self.board == Board::Unknown {
            // Lines of options say `ide.0` and mean what a PC has.
            self.board = Board::I440fx;
        }
    }
}

/// The accelerator that is tried first, as libvirt's type.
fn domain_type(accelerators: &str) -> DomainType {
    match accelerators.split(':').next().unwrap_or_default() {
        "tcg" => DomainType::Qemu,
        word => DomainType::from_wire(word),
    }
}
