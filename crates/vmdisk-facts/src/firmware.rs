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
    /// True if it needs or has something, by the descriptor's word.
    pub fn has_feature(&self, feature: &str) -> bool {
        let mut features = self.features.value().into_iter().flatten();
        features.any(|it| it == feature)
    }

    /// The UEFI of a machine, as libvirt chooses it for a guest that says nothing about secure boot: the first, in the order
    /// of the descriptors, that has variables (`qemuFirmwareMatchDomain`).
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
            let mut machines = firmware.machines.value().into_iter().flatten();
            firmware.variables.value().is_some() && machines.any(fits)
        })
    }
}
