//! The machine that the disks are attached to.

use vmdisk_source::words;

/// How the guest's CPUs run; libvirt `domain/@type`, QEMU `-accel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainType {
    /// Hardware virtualisation: `kvm`.
    Kvm,
    /// Emulation (TCG): `qemu`.
    Qemu,
    /// Another hypervisor or accelerator, by its libvirt word (`xen`, `lxc`, `hvf`, …).
    Other(String),
}

impl DomainType {
    /// The libvirt word.
    pub fn as_str(&self) -> &str {
        match self {
            DomainType::Kvm => "kvm",
            DomainType::Qemu => "qemu",
            DomainType::Other(word) => word,
        }
    }

    /// The type with this libvirt word.
    pub fn from_word(word: &str) -> Self {
        match word {
            "kvm" => DomainType::Kvm,
            "qemu" => DomainType::Qemu,
            other => DomainType::Other(other.to_owned()),
        }
    }

    /// False for the hypervisors and containers of libvirt that run no QEMU; a word nobody knows may be a new
    /// accelerator of QEMU, as `hvf` was, and counts as one.
    pub fn is_run_by_qemu(&self) -> bool {
        const OTHERS: &[&str] = &[
            "bhyve",
            "hyperv",
            "lxc",
            "openvz",
            "parallels",
            "phyp",
            "test",
            "uml",
            "vbox",
            "vmware",
            "vz",
            "xen",
        ];
        match self {
            DomainType::Kvm | DomainType::Qemu => true,
            DomainType::Other(word) => !OTHERS.contains(&word.as_str()),
        }
    }
}

words! {
    /// Instruction set of the guest; libvirt `os/type/@arch`, and the suffix of `qemu-system-…`.
    pub enum Architecture as as_str {
        /// 64-bit x86.
        X86_64 = "x86_64",
        /// 32-bit x86 (`qemu-system-i386`).
        I686 = "i686",
        /// 64-bit Arm.
        Aarch64 = "aarch64",
        /// 32-bit Arm (`qemu-system-arm`).
        Armv7l = "armv7l",
        /// 64-bit PowerPC, big endian.
        Ppc64 = "ppc64",
        /// 64-bit PowerPC, little endian (`qemu-system-ppc64`).
        Ppc64le = "ppc64le",
        /// 32-bit PowerPC.
        Ppc = "ppc",
        /// IBM Z.
        S390x = "s390x",
        /// 64-bit RISC-V.
        Riscv64 = "riscv64",
        /// 32-bit RISC-V.
        Riscv32 = "riscv32",
        /// LoongArch.
        Loongarch64 = "loongarch64",
        /// 64-bit MIPS.
        Mips64 = "mips64",
        /// MIPS.
        Mips = "mips",
        /// Little-endian MIPS.
        Mipsel = "mipsel",
        /// SPARC.
        Sparc = "sparc",
        /// 64-bit SPARC.
        Sparc64 = "sparc64",
        /// Alpha.
        Alpha = "alpha",
        /// 32-bit Arm, version 6.
        Armv6l = "armv6l",
        /// Motorola 68000.
        M68k = "m68k",
        /// Itanium.
        Itanium = "ia64",
    }
}

impl Architecture {
    /// The suffix of its QEMU, `qemu-system-…`, which firmware descriptors use too.
    pub const fn qemu_name(self) -> &'static str {
        match self {
            Architecture::I686 => "i386",
            Architecture::Armv7l | Architecture::Armv6l => "arm",
            Architecture::Ppc64le => "ppc64",
            other => other.as_str(),
        }
    }

    /// Whether KVM of a host, named as by `uname -m`, runs guests of this instruction set; `None` where that differs
    /// from processor to processor, as for 32-bit Arm on 64-bit Arm.
    ///
    /// ```
    /// use vmdisk_model::Architecture;
    ///
    /// assert_eq!(Architecture::I686.runs_on_kvm_of("x86_64"), Some(true));
    /// assert_eq!(Architecture::Armv7l.runs_on_kvm_of("aarch64"), None);
    /// assert_eq!(Architecture::Aarch64.runs_on_kvm_of("x86_64"), Some(false));
    /// ```
    pub fn runs_on_kvm_of(self, host: &str) -> Option<bool> {
        match self {
            Architecture::I686 => Some(matches!(host, "x86_64" | "i686" | "i386")),
            Architecture::Armv7l | Architecture::Armv6l => {
                let is_own = host == self.as_str();
                let is_arm = host == "aarch64" || host.starts_with("arm");
                (is_own || !is_arm).then_some(is_own)
            }
            // Which end of a word comes first is the guest's choice, at run time.
            Architecture::Ppc64 | Architecture::Ppc64le => {
                Some(matches!(host, "ppc64" | "ppc64le"))
            }
            _ => Some(host == self.as_str()),
        }
    }
}

words! {
    /// Kind of device that the firmware looks for; libvirt `os/boot/@dev`.
    pub enum BootDevice as as_str {
        /// The first floppy drive.
        Floppy = "fd",
        /// The first disk.
        Disk = "hd",
        /// The first CD drive.
        Cdrom = "cdrom",
        /// A network card.
        Network = "network",
    }
}

words! {
    /// Kind of firmware that libvirt looks for on the host; libvirt `os/@firmware` (5.2.0). Unset, the machine's own:
    /// SeaBIOS on a PC, unless `<loader>` names another.
    pub enum Firmware as as_str {
        /// A legacy BIOS.
        Bios = "bios",
        /// UEFI.
        Efi = "efi",
    }
}

words! {
    /// The virtual CPU, where it is that of the host or everything that QEMU has; libvirt `cpu/@mode`, QEMU `-cpu`. Other
    /// modes are written back as they were read.
    pub enum CpuMode as as_str {
        /// The CPU of the host, which KVM needs; QEMU `host`.
        Host = "host-passthrough",
        /// Every feature that QEMU emulates (libvirt 7.1); QEMU `max`.
        Maximum = "maximum",
    }
}

/// Name of a QEMU machine; libvirt `os/type/@machine`, QEMU `-machine`.
///
/// Either an alias such as `q35`, or a version such as `pc-q35-10.0`, which pins guest-visible
/// defaults.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineType(pub String);

/// Machines of one kind, which have one alias for their newest version.
struct MachineFamily {
    alias: &'static str,
    /// What the names of its versions begin with; none for a family without versions.
    versions: &'static [&'static str],
    architectures: &'static [Architecture],
}

const X86: &[Architecture] = &[Architecture::X86_64, Architecture::I686];

/// Families of which all architectures are known.
const FAMILIES: &[MachineFamily] = &[
    MachineFamily {
        alias: "q35",
        versions: &["pc-q35-"],
        architectures: X86,
    },
    MachineFamily {
        alias: "pc",
        versions: &["pc-i440fx-", "pc-0.", "pc-1."],
        architectures: X86,
    },
    MachineFamily {
        alias: "isapc",
        versions: &[],
        architectures: X86,
    },
    MachineFamily {
        alias: "microvm",
        versions: &[],
        architectures: X86,
    },
    MachineFamily {
        alias: "virt",
        versions: &["virt-"],
        architectures: &[
            Architecture::Aarch64,
            Architecture::Armv7l,
            Architecture::Armv6l,
            Architecture::Riscv64,
            Architecture::Riscv32,
            Architecture::Loongarch64,
            Architecture::M68k,
        ],
    },
    MachineFamily {
        alias: "pseries",
        versions: &["pseries-"],
        architectures: &[Architecture::Ppc64, Architecture::Ppc64le],
    },
    MachineFamily {
        alias: "s390-ccw-virtio",
        versions: &["s390-ccw-virtio-"],
        architectures: &[Architecture::S390x],
    },
];

impl MachineFamily {
    fn has(&self, name: &str) -> bool {
        let is_version = |prefix: &&str| name.starts_with(*prefix);
        name == self.alias || self.versions.iter().any(is_version)
    }
}

impl MachineType {
    /// A machine type by its name.
    pub fn new(name: impl Into<String>) -> Self {
        MachineType(name.into())
    }

    /// The version that the name pins, `(major, minor)`; `None` for an alias.
    pub fn version(&self) -> Option<(u32, u32)> {
        let (_, tail) = self.0.rsplit_once('-')?;
        let (major, rest) = tail.split_once('.')?;
        let minor = rest.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// True for the PCI Express PC (`q35`, `pc-q35-…`), which has AHCI and no IDE controller.
    pub fn is_q35(&self) -> bool {
        let name = self.without_vendor();
        name == "q35" || name.starts_with("pc-q35-")
    }

    fn family(&self) -> Option<&'static MachineFamily> {
        let name = self.without_vendor();
        FAMILIES.iter().find(|family| family.has(name))
    }

    /// The architectures whose QEMU has such a machine; `None` for a name of no known family.
    pub fn architectures(&self) -> Option<&'static [Architecture]> {
        self.family().map(|family| family.architectures)
    }

    /// The form of the names of its family, for a name that is neither the alias nor a version, such as `q35-7`.
    pub fn expected_form(&self) -> Option<String> {
        let name = self.without_vendor();
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let family = match self.family() {
            Some(family) => {
                let mut versions = family.versions.iter();
                let version = versions.find_map(|prefix| name.strip_prefix(prefix))?;
                (is_number(version) && MachineType::new(name).version().is_none())
                    .then_some(family)?
            }
            None => FAMILIES.iter().find(|family| {
                let version = name.strip_prefix(family.alias);
                let version = version.and_then(|rest| rest.strip_prefix('-'));
                version.is_some_and(is_number)
            })?,
        };
        let alias = family.alias;
        let versions = family.versions.first();
        Some(versions.map_or_else(
            || format!("`{alias}`"),
            |prefix| format!("`{alias}`, or a version such as `{prefix}7.2`"),
        ))
    }

    /// The name without the suffix of a vendor: `pc-q35-9.0` of `pc-q35-9.0+vendor0`.
    pub fn without_vendor(&self) -> &str {
        self.0.split('+').next().unwrap_or(&self.0)
    }

    /// True for the older PC (`pc`, `pc-i440fx-…`), which has one IDE controller.
    pub fn is_i440fx(&self) -> bool {
        let name = self.without_vendor();
        name == "pc"
            || ["pc-i440fx-", "pc-0.", "pc-1."]
                .iter()
                .any(|start| name.starts_with(start))
    }
}

impl std::fmt::Display for MachineType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_machines_has_its_architectures_and_one_form_of_names() {
        for (name, architectures, is_malformed) in [
            ("q35", Some("x86_64 i686"), false),
            ("pc-q35-9.0+vendor0", Some("x86_64 i686"), false),
            ("pc-q35-rhel8.6.0", Some("x86_64 i686"), false),
            ("pc-1.0", Some("x86_64 i686"), false),
            ("pc-i440fx-bionic-hpb", Some("x86_64 i686"), false),
            ("pseries-7.2", Some("ppc64 ppc64le"), false),
            ("s390-ccw-virtio", Some("s390x"), false),
            ("raspi3b", None, false),
            ("none", None, false),
            ("q35-7", None, true),
            ("pc-7.2", None, true),
            ("microvm-1", None, true),
            ("pc-q35-7", Some("x86_64 i686"), true),
        ] {
            let machine = MachineType::new(name);
            let found = machine.architectures().map(|all| {
                let words: Vec<&str> = all.iter().map(|one| one.as_str()).collect();
                words.join(" ")
            });
            assert_eq!(found.as_deref(), architectures, "{name}");
            assert_eq!(machine.expected_form().is_some(), is_malformed, "{name}");
        }
        let form = MachineType::new("q35-7").expected_form();
        assert_eq!(
            form.as_deref(),
            Some("`q35`, or a version such as `pc-q35-7.2`")
        );
    }

    #[test]
    fn kvm_of_a_host_runs_its_own_architecture_and_32_bit_arm_may_run_on_64_bit() {
        use Architecture::{Aarch64, Armv6l, Armv7l, I686, Ppc64, Ppc64le, X86_64};
        for (guest, host, runs) in [
            (X86_64, "x86_64", Some(true)),
            (X86_64, "aarch64", Some(false)),
            (I686, "x86_64", Some(true)),
            (I686, "ppc64", Some(false)),
            (Armv7l, "armv7l", Some(true)),
            (Armv7l, "aarch64", None),
            (Armv7l, "armv8l", None),
            (Armv6l, "x86_64", Some(false)),
            (Aarch64, "armv7l", Some(false)),
            (Ppc64, "ppc64le", Some(true)),
            (Ppc64le, "ppc64", Some(true)),
            (Ppc64le, "x86_64", Some(false)),
        ] {
            assert_eq!(guest.runs_on_kvm_of(host), runs, "{guest} on {host}");
        }
    }

    #[test]
    fn other_hypervisors_run_no_qemu_and_its_accelerators_do() {
        for (word, is_run_by_qemu) in [
            ("kvm", true),
            ("qemu", true),
            ("hvf", true),
            ("nvmm", true),
            ("xen", false),
            ("lxc", false),
            ("bhyve", false),
        ] {
            assert_eq!(
                DomainType::from_word(word).is_run_by_qemu(),
                is_run_by_qemu,
                "{word}"
            );
        }
    }

    #[test]
    fn a_machine_version_is_the_last_part_of_its_name() {
        for (name, version) in [
            ("pc-q35-10.0", Some((10, 0))),
            ("pc-i440fx-3.1", Some((3, 1))),
            ("virt-7.2", Some((7, 2))),
            ("q35", None),
            ("pc", None),
            ("pseries-rhel7.6.0", None),
        ] {
            assert_eq!(MachineType::new(name).version(), version, "{name}");
        }
    }
}
