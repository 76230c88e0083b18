//! The image formats, and their names in QEMU and libvirt.

use std::fmt;

/// Declares the formats, each with its name in QEMU and in libvirt.
macro_rules! formats {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$of_format:meta])* $format:ident = $qemu:expr, $libvirt:expr;)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$of_format])* $format,)+ }

        impl $name {
            /// All formats.
            pub const ALL: &'static [Self] = &[$(Self::$format,)+];

            /// Returns the name of QEMU's driver; `None` without a driver.
            #[must_use]
            pub fn qemu_name(self) -> Option<&'static str> {
                match self { $(Self::$format => $qemu,)+ }
            }

            /// Returns the value of `<driver type=…>` in libvirt; `None` if libvirt does not support the format.
            ///
            /// Two of the names mislead: `vhd` is QEMU's `vhdx`, and `vpc` is usually called VHD. LUKS is `raw` with
            /// `<encryption format='luks'>`.
            #[must_use]
            pub fn libvirt_name(self) -> Option<&'static str> {
                match self { $(Self::$format => $libvirt,)+ }
            }
        }
    };
}

formats! {
    /// An image format.
    pub enum ImageFormat {
        /// No format: the image is the disk.
        Raw = Some("raw"), Some("raw");
        /// qcow2, versions 2 and 3.
        Qcow2 = Some("qcow2"), Some("qcow2");
        /// qcow, version 1.
        Qcow = Some("qcow"), Some("qcow");
        /// QED.
        Qed = Some("qed"), Some("qed");
        /// VMware's format.
        Vmdk = Some("vmdk"), Some("vmdk");
        /// Hyper-V's format.
        Vhdx = Some("vhdx"), Some("vhd");
        /// VHD, the format of Virtual PC.
        Vpc = Some("vpc"), Some("vpc");
        /// VirtualBox's format.
        Vdi = Some("vdi"), Some("vdi");
        /// LUKS version 1 as an image format.
        Luks = Some("luks"), None;
        /// LUKS version 2, which QEMU does not support.
        Luks2 = None, None;
        /// Parallels' format, `ploop` in libvirt.
        Parallels = Some("parallels"), Some("ploop");
        /// The growing image of Bochs, read-only.
        Bochs = Some("bochs"), Some("bochs");
        /// A compressed loop device, read-only.
        Cloop = Some("cloop"), Some("cloop");
    }
}

impl ImageFormat {
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
        Self::ALL.iter().copied().find(|format| {
            format
                .qemu_name()
                .is_some_and(|known| known.as_bytes() == name)
        })
    }

    /// Returns the format of a libvirt name.
    #[must_use]
    pub fn from_libvirt_name(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| {
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
        for format in ImageFormat::ALL.iter().copied() {
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
