//! The format of an image.

use vmdisk_source::words;

words! {
    /// Format of an image; libvirt `driver/@type`. QEMU's driver has the same name unless said.
    pub enum Format as as_str {
        /// The bytes are the disk.
        Raw = "raw",
        /// QEMU copy-on-write, version 2 or 3.
        Qcow2 = "qcow2",
        /// QEMU copy-on-write, version 1.
        Qcow = "qcow",
        /// QEMU enhanced disk.
        Qed = "qed",
        /// VMware.
        Vmdk = "vmdk",
        /// VirtualBox.
        Vdi = "vdi",
        /// Hyper-V; libvirt's word is `vhd` for QEMU `vhdx`.
        Vhd = "vhd",
        /// Virtual PC.
        Vpc = "vpc",
        /// A directory shown as a FAT file system, QEMU `vvfat`.
        Fat = "fat",
        /// LUKS container.
        Luks = "luks",
        /// Parallels, QEMU `parallels`.
        Ploop = "ploop",
        /// Bochs.
        Bochs = "bochs",
        /// Compressed loop.
        Cloop = "cloop",
        /// Apple disk image.
        Dmg = "dmg",
        /// A word libvirt knows and QEMU refuses; write `raw`.
        Iso = "iso",
        /// A word libvirt knows and QEMU refuses.
        Cow = "cow",
        /// A word libvirt knows and QEMU refuses; a directory is a source, not a format.
        Dir = "dir",
    }
}

impl Format {
    /// QEMU's driver of this format; `None` where none opens an image as that.
    ///
    /// ```
    /// use vmdisk_model::Format;
    ///
    /// assert_eq!(Format::Vhd.qemu_driver(), Some("vhdx"));
    /// assert_eq!(Format::Iso.qemu_driver(), None);
    /// ```
    pub const fn qemu_driver(self) -> Option<&'static str> {
        match self {
            Format::Vhd => Some("vhdx"),
            Format::Ploop => Some("parallels"),
            Format::Raw
            | Format::Qcow2
            | Format::Qcow
            | Format::Qed
            | Format::Vmdk
            | Format::Vdi
            | Format::Vpc
            | Format::Luks
            | Format::Bochs
            | Format::Cloop
            | Format::Dmg => Some(self.as_str()),
            Format::Fat | Format::Iso | Format::Cow | Format::Dir => None,
        }
    }

    /// The format whose driver QEMU calls by this name.
    pub fn of_qemu_driver(driver: &str) -> Option<Self> {
        let mut formats = Format::ALL.iter().copied();
        formats.find(|format| format.qemu_driver() == Some(driver))
    }

    /// The format that a common word means that is not the name of a format.
    ///
    /// ```
    /// use vmdisk_model::Format;
    ///
    /// assert_eq!(Format::of_common_word("img"), Some(Format::Raw), "one letter from `dmg`");
    /// assert_eq!(Format::of_common_word("qcow3"), Some(Format::Qcow2));
    /// ```
    pub fn of_common_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "img" | "image" | "bin" => Some(Format::Raw),
            // Version 3 has no name of its own.
            "qcow3" => Some(Format::Qcow2),
            _ => None,
        }
    }

    /// True if images of this format may have a backing image.
    pub const fn has_backing(self) -> bool {
        matches!(
            self,
            Format::Qcow2 | Format::Qcow | Format::Qed | Format::Vmdk
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_of_qemu_is_that_of_one_format() {
        for format in Format::ALL {
            let again = format.qemu_driver().map(Format::of_qemu_driver);
            assert!(again.is_none_or(|it| it == Some(*format)), "{format}");
        }
        assert_eq!(Format::of_qemu_driver("vvfat"), None);
    }
}
