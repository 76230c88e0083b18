//! The formats, and what QEMU and libvirt call them.

use std::fmt;

/// An image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageFormat {
    /// No format: the bytes are the disk.
    Raw,
    /// qcow2, versions 2 and 3.
    Qcow2,
    /// qcow, version 1.
    Qcow,
    /// QED.
    Qed,
    /// VMware's.
    Vmdk,
    /// Hyper-V's.
    Vhdx,
    /// VHD, Virtual PC's.
    Vpc,
    /// VirtualBox's.
    Vdi,
    /// LUKS version 1, as a format of its own.
    Luks,
    /// LUKS version 2, which QEMU does not open.
    Luks2,
    /// Parallels', libvirt's `ploop`.
    Parallels,
    /// Bochs' growing image, for reading only.
    Bochs,
    /// A compressed loop device, for reading only.
    Cloop,
}

impl ImageFormat {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Raw,
        Self::Qcow2,
        Self::Qcow,
        Self::Qed,
        Self::Vmdk,
        Self::Vhdx,
        Self::Vpc,
        Self::Vdi,
        Self::Luks,
        Self::Luks2,
        Self::Parallels,
        Self::Bochs,
        Self::Cloop,
    ];

    /// The name of QEMU's driver; `None` for what QEMU has none for.
    #[must_use]
    pub fn qemu_name(self) -> Option<&'static str> {
        match self {
            Self::Raw => Some("raw"),
            Self::Qcow2 => Some("qcow2"),
            Self::Qcow => Some("qcow"),
            Self::Qed => Some("qed"),
            Self::Vmdk => Some("vmdk"),
            Self::Vhdx => Some("vhdx"),
            Self::Vpc => Some("vpc"),
            Self::Vdi => Some("vdi"),
            Self::Luks => Some("luks"),
            Self::Luks2 => None,
            Self::Parallels => Some("parallels"),
            Self::Bochs => Some("bochs"),
            Self::Cloop => Some("cloop"),
        }
    }

    /// The word for `<driver type=…>` in libvirt; `None` for what libvirt has none for.
    ///
    /// Two of the words mislead: `vhd` is QEMU's `vhdx`, and `vpc` is what everybody else calls VHD. LUKS is `raw` with
    /// `<encryption format='luks'>`.
    #[must_use]
    pub fn libvirt_name(self) -> Option<&'static str> {
        match self {
            Self::Raw => Some("raw"),
            Self::Qcow2 => Some("qcow2"),
            Self::Qcow => Some("qcow"),
            Self::Qed => Some("qed"),
            Self::Vmdk => Some("vmdk"),
            Self::Vhdx => Some("vhd"),
            Self::Vpc => Some("vpc"),
            Self::Vdi => Some("vdi"),
            Self::Parallels => Some("ploop"),
            Self::Bochs => Some("bochs"),
            Self::Cloop => Some("cloop"),
            Self::Luks | Self::Luks2 => None,
        }
    }

    /// The format of a driver's name in QEMU, which is also what images record of their backing files.
    ///
    /// ```
    /// use vmdisk_image::ImageFormat;
    ///
    /// assert_eq!(ImageFormat::from_qemu_name(b"vhdx"), Some(ImageFormat::Vhdx));
    /// assert_eq!(ImageFormat::from_libvirt_name(b"vhd"), Some(ImageFormat::Vhdx));
    /// assert_eq!(ImageFormat::from_qemu_name(b"QCOW2"), None);
    /// ```
    #[must_use]
    pub fn from_qemu_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            format
                .qemu_name()
                .is_some_and(|known| known.as_bytes() == name)
        })
    }

    /// The format of a word of libvirt.
    #[must_use]
    pub fn from_libvirt_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            format
                .libvirt_name()
                .is_some_and(|known| known.as_bytes() == name)
        })
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.qemu_name().unwrap_or("luks2"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_format() {
        for format in ImageFormat::ALL {
            if let Some(name) = format.qemu_name() {
                assert_eq!(
                    ImageFormat::from_qemu_name(name.as_bytes()),
                    Some(format),
                    "{name}"
                );
            }
            if let Some(name) = format.libvirt_name() {
                assert_eq!(
                    ImageFormat::from_libvirt_name(name.as_bytes()),
                    Some(format),
                    "{name}"
                );
            }
        }
    }
}
