//! UEFI for guests: the files of a host, as its descriptors name them.

use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// UEFI for guests, as a descriptor in `/etc/qemu/firmware` or `/usr/share/qemu/firmware` names it.
    pub struct UefiFirmware {
        /// The file of its code.
        pub code: Fact<String>,
        /// The file that the variables of a guest are copied from; absent if it has none.
        pub variables: Fact<String>,
        /// The format of both files: `raw` or `qcow2`.
        pub format: Fact<String>,
        /// Its machines: an instruction set and a pattern each (`x86_64 pc-q35-*`).
        pub machines: Fact<Vec<String>>,
        /// What it needs or has (`requires-smm`, `enrolled-keys`).
        pub features: Fact<Vec<String>>,
    }
}

impl UefiFirmware {
    /// The UEFI of a machine, in the order of the descriptors: the first that needs no system management mode, as libvirt
    /// chooses it for a guest without secure boot.
    pub(crate) fn of_machine<'a>(all: &'a [Self], arch: &str, machine: &str) -> Option<&'a Self> {
        // QEMU's names of the newest of each family.
        let name = match machine {
            "q35" => "pc-q35-",
            "pc" => "pc-i440fx-",
            "virt" => "virt-",
            other => other,
        };
        let fits = |pattern: &String| {
            let (of, pattern) = pattern.split_once(' ').unwrap_or_default();
            of == arch
                && match pattern.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => [name, machine].contains(&pattern),
                }
        };
        all.iter().find(|firmware| {
            let features = firmware.features.value();
            let needs_smm = features.is_some_and(|it| it.iter().any(|it| it == "requires-smm"));
            let mut machines = firmware.machines.value().into_iter().flatten();
            !needs_smm && machines.any(fits)
        })
    }
}
