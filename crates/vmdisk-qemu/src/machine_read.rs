//! Reads the machine that the disks are attached to.

use vmdisk_facts::Target;
use vmdisk_model::{
    Architecture, Bytes, CpuMode, Domain, DomainField, DomainType, FieldPath, GuestSystem,
    MachineType, Scope, Switch,
};

use crate::board::Machine;
use crate::index::Index;
use crate::members::Members;
use crate::notes::Notes;
use crate::syntax::program::{architecture, is_kvm};
use crate::syntax::properties::Property;
use crate::syntax::value::{number_of, size_of, switch_of};
use vmdisk_model::Board;

/// Reads machine, accelerator, memory and CPUs: a guest without disks, and its board.
pub(crate) fn read_machine(
    program: Option<&str>,
    index: &Index<'_>,
    notes: &mut Notes<'_>,
) -> (Domain, Board) {
    let at = FieldPath::Domain;
    let mut domain = Domain {
        architecture: program.and_then(architecture),
        ..Domain::default()
    };
    let mut devices = index.of_name("device");
    domain.system = devices
        .find_map(|(_, device)| GuestSystem::of_device(device.get("driver")?.value.as_str()));
    read_machine_options(&mut domain, index, notes);
    if program.is_some_and(is_kvm) {
        // Under these names QEMU enables KVM, and emulates the host's architecture.
        domain.domain_type.get_or_insert(DomainType::Kvm);
        let is_pc = |machine: &MachineType| machine.is_q35() || machine.is_i440fx();
        if domain.machine.as_ref().is_none_or(is_pc) {
            domain.architecture = Some(Architecture::X86_64);
        }
    }
    for (_, memory) in index.of_name("m") {
        if let Some(size) = memory.take("size") {
            notes.record_value(at(DomainField::Memory), size);
            domain.memory = size_of(size.value.as_str(), Bytes::MIB);
        }
    }
    for (_, smp) in index.of_name("smp") {
        let number = |key: &str| number_of(smp.get(key)?.value.as_str());
        // The model has no hotpluggable CPUs.
        if number("cpus") == number("maxcpus") {
            smp.accept(&["cpus"]);
        }
        if let Some(cpus) = smp.take("maxcpus").or_else(|| smp.take("cpus")) {
            notes.record_value(at(DomainField::Vcpus), cpus);
            domain.vcpus = number_of(cpus.value.as_str()).and_then(|cpus| u32::try_from(cpus).ok());
        } else if let Some(cpus) = topology(smp) {
            domain.vcpus = Some(cpus);
        } else if let Some(part) = smp.iter().find(|part| part.is_open()) {
            notes.record_value(at(DomainField::Vcpus), part);
        }
    }
    for (_, name) in index.of_name("name") {
        if let Some(guest) = name.take("guest") {
            notes.record_value(at(DomainField::Name), guest);
            domain.name = known(guest).map(str::to_owned);
        }
    }
    for (_, option) in index.of_name("uuid") {
        if let Some(uuid) = option.take("uuid") {
            notes.record_value(at(DomainField::Uuid), uuid);
            domain.uuid = known(uuid).map(str::to_owned);
        }
    }
    let is_whole = program.is_some() || domain.machine.is_some();
    domain.scope = if is_whole {
        Scope::WholeGuest
    } else {
        Scope::DisksOnly
    };
    let mut board = Machine::of(&domain, &Target::default()).board;
    if board == Board::Unknown {
        // Without a machine `ide.0` means that of a PC.
        board = Board::I440fx;
    }
    let is_other = |program: &str| {
        let name = program.rsplit('/').next().unwrap_or(program);
        name.starts_with("qemu-system-") && architecture(program).is_none()
    };
    if domain.machine.is_none() && program.is_some_and(is_other) {
        // The default machine of an instruction set that libvirt does not know.
        board = Board::OtherPci;
    }
    (domain, board)
}

/// The number of vCPUs that follows from their topology; `None` if no part of it is written, or one is not valid.
fn topology(smp: Members<'_>) -> Option<u32> {
    let parts = [
        "drawers", "books", "sockets", "dies", "clusters", "modules", "cores", "threads",
    ];
    let mut written = parts.iter().filter_map(|part| smp.get(part)).peekable();
    written.peek()?;
    written
        .map(|part| number_of(part.value.as_str()).filter(|number| *number > 0))
        .try_fold(1_u64, |product, number| product.checked_mul(number?))
        .and_then(|product| u32::try_from(product).ok())
}

/// Reads the machine, and the accelerator in all of its forms.
fn read_machine_options(domain: &mut Domain, index: &Index<'_>, notes: &mut Notes<'_>) {
    let at = FieldPath::Domain;
    if index.has("no-acpi") {
        domain.acpi = Some(Switch::Off);
    }
    if index.has("enable-kvm") {
        domain.domain_type = Some(DomainType::Kvm);
    }
    for (option, machine) in index.machines() {
        if let Some(machine_type) = machine
            .take("type")
            .filter(|it| !it.value.as_str().is_empty())
        {
            notes.record(at(DomainField::Machine), machine_type);
            domain.machine = Some(MachineType::new(machine_type.value.as_str()));
        }
        if let Some(acpi) = machine.take("acpi") {
            domain.acpi = switch_of(acpi.value.as_str());
        }
        if let Some(accelerator) = machine.take("accel") {
            notes.record_value(at(DomainField::DomainType), accelerator);
            domain.domain_type = known(accelerator).map(domain_type);
        }
        notes.record_option(at(DomainField::Os), option);
    }
    for (_, cpu) in index.of_name("cpu") {
        let mode = match cpu.get("model").and_then(known) {
            Some("host") => Some(CpuMode::Host),
            Some("max") => Some(CpuMode::Maximum),
            _ => None,
        };
        if let Some(property) = cpu.get("model").filter(|_| mode.is_some()) {
            notes.record_value(at(DomainField::Vcpus), property);
            cpu.take("model");
        }
        domain.cpu = mode;
    }
    for (_, accelerator) in index.of_name("accel") {
        // The first of several is tried first.
        if notes.place(at(DomainField::DomainType)).is_none()
            && let Some(word) = accelerator.take("accel")
        {
            notes.record_value(at(DomainField::DomainType), word);
            domain.domain_type = known(word).map(domain_type);
        }
    }
}

/// The text of a value that no shell fills in later.
fn known(property: &Property) -> Option<&str> {
    Some(property.value.as_str()).filter(|_| !property.is_open())
}

/// The first accelerator, as libvirt's domain type.
fn domain_type(accelerators: &str) -> DomainType {
    match accelerators.split(':').next().unwrap_or_default() {
        "tcg" => DomainType::Qemu,
        word => DomainType::from_word(word),
    }
}
