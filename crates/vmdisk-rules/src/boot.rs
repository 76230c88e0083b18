//! The disk that a guest boots from.

use vmdisk_model::{Architecture, Domain};

/// True if SeaBIOS may have to boot from this disk: it is the default firmware of a PC, and cannot boot from disks with
/// sectors of 4096 bytes.
pub(crate) fn may_be_seabios(domain: &Domain, index: usize) -> bool {
    let is_pc = matches!(
        domain.architecture,
        Some(Architecture::X86_64 | Architecture::I686) | None
    );
    is_pc && domain.boot_disk() == Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_model::{Disk, Format, Frontend, Image, TargetBus};

    #[test]
    fn seabios_boots_the_first_disk_of_a_pc() {
        let disk = |target: &str| {
            let image = Image::file(format!("/{target}.img"), Format::Raw);
            Disk::new(Frontend::new(target, TargetBus::Virtio), image)
        };
        let mut domain = Domain {
            disks: vec![disk("vdb"), disk("vda")],
            ..Domain::default()
        };
        assert!(may_be_seabios(&domain, 1) && !may_be_seabios(&domain, 0));
        domain.architecture = Some(Architecture::Aarch64);
        assert!(!may_be_seabios(&domain, 1));
    }
}
