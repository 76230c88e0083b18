//! The image formats, and their names in QEMU and libvirt.

use std::fmt;

/// An image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageFormat {
    /// No format: the image is the disk.
    Raw,
    /// qcow2, versions 2 and 3.
    Qcow2,
    /// qcow, version 1.
    Qcow,
    /// QED.
    Qed,
    /// VMware's format.
    Vmdk,
    /// Hyper-V's format.
    Vhdx,
    /// VHD, the format of Virtual PC.
    Vpc,
    /// VirtualBox's format.
    Vdi,
    /// LUKS version 1 as an image format.
    Luks,
    /// LUKS version 2, which QEMU does not support.
    Luks2,
    /// Parallels' format, `ploop` in libvirt.
    Parallels,
    /// The growing image of Bochs, read-only.
    Bochs,
    /// A compressed loop device, read-only.
    Cloop,
}

impl ImageFormat {
    /// All formats.
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

    /// Returns the name of QEMU's driver; `None` without a driver.
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

    /// Returns the value of `<driver type=…>` in libvirt; `None` if libvirt does not support the format.
    ///
    /// Two of the names mislead: `vhd` is QEMU's `vhdx`, and `vpc` is usually called VHD. LUKS is `raw` with
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

    /// Returns the format of a QEMU driver, which images also record for their backing files.
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

    /// Returns the format of a libvirt name.
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
    fn every_name_is_parsed_to_its_format() {
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
