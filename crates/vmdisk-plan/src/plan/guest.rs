//! The machine around the disks.

use vmdisk_facts::{Capability, Fact, Target};
use vmdisk_model::{
    Architecture, BackendSource, Board, Bytes, CpuMode, Domain, DomainField, DomainType, FieldPath,
    Firmware, HugePages, MachineType, MemoryAccess, MemorySource, Protocol, Switch,
};

use super::choice::{ChoiceSource, Chosen};
use super::planner::Planner;
use crate::spec::{BusSpec, GuestOs, GuestSpec, GuestType, HugePagesSpec, MediaSpec, SpecPath};

const fn at(field: DomainField) -> FieldPath {
    FieldPath::Domain(field)
}

/// Decides instruction set, machine, accelerator, vCPUs and memory.
pub(crate) fn plan_machine(planner: &mut Planner<'_>) {
    let GuestSpec {
        name,
        uuid,
        guest_type,
        arch,
        machine,
        os,
        drivers,
        firmware: _, // after the disks have names
        vcpus,
        cpu,
        memory,
        iothreads: _,
        hugepages: _,
        network,
        console,
        channel,
        tpm,
        rng,
    } = planner.spec.guest.clone().unwrap_or_default();
    planner.domain.uuid.clone_from(&uuid);
    planner.note_asked(at(DomainField::Uuid), "uuid", uuid);
    planner.domain.name = planner.decide(at(DomainField::Name), "name", name, |_| {
        let reason = "a guest needs a name, and none is set";
        Some(Chosen::by_default("guest".to_owned(), reason))
    });
    let arch = planner.decide(at(DomainField::Architecture), "arch", arch, |planner| {
        Some(architecture(&planner.host.target, machine.as_deref()))
    });
    planner.domain.architecture = arch;
    planner.note_asked(at(DomainField::Os), "os", os);
    planner.note_asked(at(DomainField::Os), "drivers", drivers);
    let devices = at(DomainField::Devices);
    planner.note_asked(devices, "network", network.map(|it| it.to_string()));
    planner.note_asked(devices, "console", console);
    planner.note_asked(devices, "channel", channel);
    planner.note_asked(devices, "tpm", tpm);
    planner.note_asked(devices, "rng", rng);
    let arch = arch.unwrap_or(Architecture::X86_64);
    let machine = planner.decide(at(DomainField::Machine), "machine", machine, |planner| {
        choose_machine(planner, arch)
    });
    if let Some(machine) = machine {
        // The features of a machine depend on the chosen machine type, not on the requested one.
        let chosen = Target {
            machine: Some(machine.clone()),
            ..Target::default()
        };
        planner.host.target = chosen.or(planner.host.target.clone());
        let machine = MachineType::new(machine);
        if !planner.existing.is_there() {
            refuse_machine(planner, arch, &machine);
        }
        planner.domain.machine = Some(machine);
    }
    let guest_type = planner.decide(at(DomainField::DomainType), "type", guest_type, |planner| {
        Some(accelerator(planner, arch))
    });
    planner.domain.domain_type = guest_type.map(DomainType::from);
    planner.domain.vcpus = planner.decide(at(DomainField::Vcpus), "vcpus", vcpus, |_| {
        Some(Chosen::by_default(1, "the default of libvirt and QEMU"))
    });
    plan_cpu(planner, cpu);
    // QEMU: "ram_size must be greater than 1G".
    let is_loongarch = arch == Architecture::Loongarch64;
    planner.domain.memory = planner.decide(at(DomainField::Memory), "memory", memory, |_| {
        let reason = "a guest needs memory, and no size is set";
        let size = Bytes::gib(if is_loongarch { 2 } else { 1 });
        Some(Chosen::by_default(size, reason))
    });
    if is_loongarch && planner.domain.memory <= Some(Bytes::gib(1)) {
        let at = SpecPath::default().key("guest").key("memory");
        planner.refuse(at, format!("QEMU's {arch} needs more than 1 GiB of memory"));
    }
}

/// Refuses a machine that no QEMU for the architecture has.
fn refuse_machine(planner: &mut Planner<'_>, arch: Architecture, machine: &MachineType) {
    let at = SpecPath::default().key("guest").key("machine");
    if let Some(form) = machine.expected_form() {
        let message = format!("QEMU has no machine {machine}");
        planner.refuse(at, message).help = Some(format!("use {form}"));
    } else if let Some(architectures) = machine.architectures()
        && !architectures.contains(&arch)
    {
        let message = format!("QEMU for {arch} has no machine {machine}");
        let keys = architectures.iter().map(|arch| format!("`arch: {arch}`"));
        let keys = keys.collect::<Vec<_>>().join(" or ");
        planner.refuse(at, message).help = Some(format!("write {keys}, or use another machine"));
    }
}

/// Decides the virtual CPU. The default of x86 is one of 2003, on which systems that need x86-64-v2 do not start, and that
/// of Arm's `virt` has 32 bits.
fn plan_cpu(planner: &mut Planner<'_>, asked: Option<CpuMode>) {
    let is_emulated = planner.domain.domain_type == Some(DomainType::Qemu);
    let has_maximum = !planner
        .host
        .target
        .can(Capability::LibvirtCpuMaximum)
        .is_no();
    let has_default = match planner.domain.architecture {
        Some(Architecture::X86_64) => has_maximum || !is_emulated,
        Some(Architecture::Aarch64) => true,
        _ => false,
    };
    planner.domain.cpu = planner.decide(at(DomainField::Cpu), "cpu", asked, |planner| {
        let (cpu, reason) = match is_emulated {
            true => (
                CpuMode::Maximum,
                "the machine's own lacks what systems need",
            ),
            false => (CpuMode::Host, "KVM runs the CPU of the host"),
        };
        (has_default && !planner.existing.is_there()).then(|| Chosen::by_default(cpu, reason))
    });
    let needs_kvm = planner.domain.cpu == Some(CpuMode::Host) && !planner.existing.is_there();
    if is_emulated && needs_kvm {
        let at = SpecPath::default().key("guest").key("cpu");
        planner.refuse(
            at,
            "the CPU of the host needs KVM, and this guest is emulated",
        );
    }
}

/// True for a guest whose machine boots a disk only with UEFI: it has no firmware of its own that does.
pub(crate) fn needs_uefi(domain: &Domain) -> bool {
    use Architecture::{Aarch64, Armv7l, Loongarch64, Riscv64};
    let machine = domain.machine.as_ref();
    let is_one = |arch: Architecture| {
        matches!(arch, Aarch64 | Armv7l | Loongarch64 | Riscv64)
            && machine.is_none_or(|machine| Board::of(arch, &machine.0) == Board::PcieVirt)
    };
    domain.architecture.is_some_and(is_one)
}

/// Refuses a firmware that no machine of the architecture has.
fn refuse_firmware(planner: &mut Planner<'_>, firmware: Option<Firmware>) {
    use Architecture::{Aarch64, Armv7l, I686, Loongarch64, Riscv64, X86_64};
    let arch = planner.domain.architecture.unwrap_or(X86_64);
    let (has_it, name) = match firmware {
        Some(Firmware::Efi) => {
            let has_efi = matches!(
                arch,
                X86_64 | I686 | Aarch64 | Armv7l | Riscv64 | Loongarch64
            );
            (has_efi, "UEFI")
        }
        Some(Firmware::Bios) => (is_pc(Some(arch)), "BIOS"),
        None => return,
    };
    if !has_it {
        let at = SpecPath::default().key("guest").key("firmware");
        planner
            .refuse(at, format!("there is no {name} for {arch}"))
            .help = Some("remove `firmware`".to_owned());
    }
}

/// Decides the firmware: SeaBIOS does not boot from a disk with sectors of more than 512 bytes.
///
/// Tried with SeaBIOS 1.16.2: `virtio-blk … block size 4096 is unsupported` and `virtio-scsi: unsupported block size
/// 4096`, then `No bootable device`.
pub(crate) fn plan_firmware(planner: &mut Planner<'_>) {
    let asked = planner.spec.guest.as_ref().and_then(|guest| guest.firmware);
    let machine = planner.domain.machine.as_ref();
    let has_seabios = is_pc(planner.domain.architecture)
        && !machine.is_some_and(|machine| machine.0.starts_with("microvm"));
    let large = planner.boot_disk.filter(|_| has_seabios).and_then(|first| {
        let size = planner.spec.disks[first].logical_block_size?.0;
        (size > 512).then_some((first, size))
    });
    let needs_uefi = needs_uefi(&planner.domain) && !planner.existing.is_there();
    let firmware = planner.decide(at(DomainField::Firmware), "firmware", asked, |_| {
        if needs_uefi {
            let reason = "without UEFI this machine boots only a kernel, and not a disk";
            return Some(Chosen::by_default(Firmware::Efi, reason));
        }
        let (_, size) = large?;
        let reason = format!("SeaBIOS does not boot from a disk with {size}-byte sectors");
        Some(Chosen::by_default(Firmware::Efi, reason).instead_of("seabios-4096-sectors"))
    });
    if !planner.existing.is_there() {
        refuse_firmware(planner, firmware);
    }
    // The BIOS is the machine's own: libvirt looks for a descriptor of it, which no distribution has.
    planner.domain.firmware = firmware.filter(|firmware| *firmware == Firmware::Efi);
    // RISC-V guests boot with a device tree; its machines have ACPI only since QEMU 8.1.
    let has_acpi = matches!(
        planner.domain.architecture,
        Some(Architecture::Aarch64 | Architecture::Loongarch64)
    );
    planner.domain.acpi = (has_acpi && firmware == Some(Firmware::Efi)).then_some(Switch::On);
    if planner.domain.architecture == Some(Architecture::Riscv32) && !planner.existing.is_there() {
        let at = SpecPath::default().key("guest").key("arch");
        planner
            .refuse(at, "no firmware boots a disk on riscv32: it needs a kernel, which a spec does not name")
            .help = Some("write `arch: riscv64`".to_owned());
    }
    if let Some((first, size)) = large
        && firmware == Some(Firmware::Bios)
    {
        let at = SpecPath::disk(first).key("logical-block-size");
        let message = format!("SeaBIOS does not boot from a disk with {size}-byte sectors");
        planner.refuse(at, message).help =
            Some("write `firmware: efi`, or only `physical-block-size: 4096`".to_owned());
    }
}

impl Planner<'_> {
    /// True for a PC that runs Windows without the drivers of virtio.
    pub(crate) fn is_windows_pc(&self) -> bool {
        let guest = self.spec.guest.as_ref();
        is_pc(self.domain.architecture)
            && guest
                .is_some_and(|guest| guest.os == Some(GuestOs::Windows) && guest.drivers.is_none())
    }
}

/// True for the architectures whose machines have SeaBIOS as their own firmware.
pub(crate) const fn is_pc(architecture: Option<Architecture>) -> bool {
    matches!(
        architecture,
        Some(Architecture::X86_64 | Architecture::I686)
    )
}

fn architecture(target: &Target, machine: Option<&str>) -> Chosen<Architecture> {
    let machine = machine.map(MachineType::new);
    if let Some([only]) = machine.as_ref().and_then(MachineType::architectures) {
        return Chosen::by_default(*only, "the architecture of the machine");
    }
    match target.arch.as_deref().and_then(Architecture::from_word) {
        Some(arch) => Chosen::by_fact(arch, "the architecture of the target"),
        None => Chosen::by_default(Architecture::X86_64, "the most common"),
    }
}

fn choose_machine(planner: &mut Planner<'_>, arch: Architecture) -> Option<Chosen<String>> {
    if let Some(machine) = &planner.host.target.machine {
        return Some(Chosen::by_fact(
            machine.clone(),
            "the machine type of the target",
        ));
    }
    let wants_ide = planner
        .spec
        .disks
        .iter()
        .any(|disk| disk.bus == Some(BusSpec::Ide));
    let wants_floppy = planner
        .spec
        .disks
        .iter()
        .any(|disk| disk.bus == Some(BusSpec::Fdc) || disk.media == Some(MediaSpec::Floppy));
    let (machine, reason) = match arch {
        Architecture::X86_64 | Architecture::I686 if wants_ide => {
            ("pc", "a disk needs parallel ATA, which q35 does not have")
        }
        Architecture::X86_64 | Architecture::I686 if wants_floppy => {
            ("pc", "it has a floppy controller, and q35 does not")
        }
        Architecture::X86_64 | Architecture::I686 => {
            ("q35", "PCI Express and AHCI; the default is the older pc")
        }
        Architecture::Aarch64
        | Architecture::Armv7l
        | Architecture::Armv6l
        | Architecture::Riscv64
        | Architecture::Riscv32
        | Architecture::Loongarch64 => ("virt", "the machine made for virtualisation"),
        Architecture::S390x => ("s390-ccw-virtio", "the machine made for virtualisation"),
        Architecture::Ppc64 | Architecture::Ppc64le => {
            ("pseries", "the machine made for virtualisation")
        }
        Architecture::Ppc
        | Architecture::Mips64
        | Architecture::Mips
        | Architecture::Mipsel
        | Architecture::Sparc
        | Architecture::Sparc64
        | Architecture::Alpha
        | Architecture::M68k
        | Architecture::Itanium => {
            let at = SpecPath::default().key("guest").key("arch");
            planner
                .refuse(at, format!("{arch} has no default machine"))
                .help = Some("write `machine`".to_owned());
            return None;
        }
    };
    Some(Chosen::by_default(machine.to_owned(), reason))
}

/// KVM unless the facts prove that there is none for this guest.
fn accelerator(planner: &Planner<'_>, arch: Architecture) -> Chosen<GuestType> {
    let facts = planner.host.index.facts();
    if let Fact::Known(host) = &facts.cpu.arch
        && arch.runs_on_kvm_of(host) == Some(false)
    {
        let reason = format!("KVM on {host} runs no {arch}");
        return Chosen::by_fact(GuestType::Qemu, reason);
    }
    match (&facts.kvm.dev_kvm, &facts.kvm.proven) {
        (Fact::Known(false) | Fact::Absent, _) => {
            let reason = "there is no /dev/kvm on this host, so guests are emulated, which is slow";
            Chosen::by_fact(GuestType::Qemu, reason).instead_of("tcg-instead-of-kvm")
        }
        (_, Fact::Known(false)) => {
            let reason = "a trial guest did not run with KVM on this host, so guests are emulated, which is slow";
            Chosen::by_fact(GuestType::Qemu, reason).instead_of("tcg-instead-of-kvm")
        }
        (_, Fact::Known(true)) => Chosen::by_fact(
            GuestType::Kvm,
            "according to the facts, a guest ran with KVM on this host",
        )
        .instead_of("tcg-instead-of-kvm"),
        _ => Chosen::by_default(GuestType::Kvm, "the facts do not rule out KVM"),
    }
}

/// Decides how memory is backed, once it is known which disks need it shared.
pub(crate) fn plan_memory(planner: &mut Planner<'_>) {
    let asked = planner
        .spec
        .guest
        .as_ref()
        .and_then(|guest| guest.hugepages);
    if let Some(asked) = asked {
        plan_huge_pages(planner, asked);
    }
    if planner.existing.is_there() {
        // Its memory is its own affair.
        return;
    }
    let needs_sharing = planner
        .domain
        .disks
        .iter()
        .any(|disk| match &disk.backend.source {
            BackendSource::VhostUser(_) => true,
            BackendSource::Image(image) => matches!(image.protocol, Protocol::VhostVdpa { .. }),
            BackendSource::Empty => false,
        });
    if !needs_sharing {
        return;
    }
    let reason = "the other side of a vhost-user-blk or vDPA disk maps the guest's memory";
    planner.domain.memory_backing.source =
        planner.decide(at(DomainField::MemorySource), "memory source", None, |_| {
            Some(Chosen::by_default(
                MemorySource::Memfd,
                format!("{reason}, and a memfd needs no directory"),
            ))
        });
    planner.domain.memory_backing.access =
        planner.decide(at(DomainField::MemoryAccess), "memory access", None, |_| {
            Some(
                Chosen::by_default(MemoryAccess::Shared, reason)
                    .instead_of("vhost-user-needs-shared-mem"),
            )
        });
}

fn plan_huge_pages(planner: &mut Planner<'_>, asked: HugePagesSpec) {
    let path = SpecPath::default().key("guest").key("hugepages");
    let (size, shown) = match asked {
        HugePagesSpec::No => {
            planner.note_asked(at(DomainField::HugePages), "hugepages", Some("no"));
            return;
        }
        HugePagesSpec::DefaultSize => (None, "of the host's default size".to_owned()),
        HugePagesSpec::Size(size) => (Some(size), format!("of {size}")),
    };
    let memory = planner.domain.memory.unwrap_or_default();
    let pages = &planner.host.index.facts().memory.hugepages;
    // The default size is 2 MiB unless the kernel command line changes it.
    let looked_up = size.unwrap_or(Bytes(2 * Bytes::MIB));
    if let Some(size) = size
        && !memory.0.is_multiple_of(size.0)
    {
        let message = format!("memory of {memory} is not a multiple of the page size {size}");
        planner.refuse(path, message);
        return;
    }
    let reason = match pages.get(&(looked_up.0 / 1024)).map(|pages| &pages.free) {
        Some(Fact::Known(free)) if free.saturating_mul(looked_up.0) < memory.0 => {
            let message = format!(
                "the host has {free} free pages of {looked_up}, and memory of {memory} needs {}",
                memory.0.div_ceil(looked_up.0)
            );
            planner.refuse(path, message).help =
                Some("reserve more (vm.nr_hugepages), or remove hugepages".to_owned());
            return;
        }
        Some(Fact::Known(free)) => format!("requested; the host has {free} free pages"),
        None if !pages.is_empty() => {
            planner.refuse(path, format!("the host has no pages of {looked_up}"));
            return;
        }
        Some(Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) | None => {
            "requested; it is not known whether the host has enough".to_owned()
        }
    };
    planner.decide(at(DomainField::HugePages), "hugepages", None, |_| {
        let mut chosen = Chosen::by_fact(shown, reason);
        chosen.source = ChoiceSource::Asked;
        Some(chosen.instead_of("hugepages-insufficient"))
    });
    planner.domain.memory_backing.huge_pages = Some(HugePages {
        page_sizes: Vec::from_iter(size),
    });
}
