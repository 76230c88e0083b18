//! Conflicts between a configured format and the header of an image.

use crate::Format;

/// Formats with their own header, in QEMU's names. LUKS is not among them, because the guest may have encrypted a raw
/// disk, or QEMU because of libvirt's `<encryption>`.
const CONTAINERS: [&str; 10] = [
    "qcow2",
    "qcow",
    "qed",
    "vmdk",
    "vhdx",
    "vpc",
    "vdi",
    "parallels",
    "bochs",
    "cloop",
];

/// A conflict between the configured format and the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatConflict {
    /// The format is raw and the image is a container: the guest sees the bytes of the container.
    Container,
    /// The driver of the format cannot open the image: QEMU refuses it.
    Refused,
}

/// True if an image with this header is a container, so that its content differs from its bytes.
pub fn is_container(header: &str) -> bool {
    CONTAINERS.contains(&header)
}

impl Format {
    /// The conflict between this configured format and the header of the image, in QEMU's names, if there is one.
    pub fn conflict_with(self, header: &str) -> Option<FormatConflict> {
        let written = self;
        let is_plain = matches!(header, "raw" | "luks" | "luks2");
        if !is_plain && !is_container(header) {
            // Formats of newer collectors are not judged.
            return None;
        }
        match written {
            Format::Raw => is_container(header).then_some(FormatConflict::Container),
            Format::Qcow2
            | Format::Qcow
            | Format::Qed
            | Format::Vmdk
            | Format::Vhd
            | Format::Vdi
            | Format::Ploop
            | Format::Bochs
            | Format::Cloop => {
                (written.qemu_driver() != Some(header)).then_some(FormatConflict::Refused)
            }
            // The signature of a fixed VHD is at its end, and a LUKS header may be in another file, so only the header of
            // another container proves a conflict.
            Format::Vpc | Format::Luks => (is_container(header)
                && written.qemu_driver() != Some(header))
            .then_some(FormatConflict::Refused),
            // These formats have no signature at the start, or are not image formats.
            Format::Fat | Format::Dmg | Format::Iso | Format::Cow | Format::Dir => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_agrees_with_its_own_header_and_not_with_another() {
        for header in CONTAINERS {
            let own = Format::of_qemu_driver(header).unwrap();
            assert_eq!(own.conflict_with(header), None, "{header}");
            assert_eq!(
                Format::Raw.conflict_with(header),
                Some(FormatConflict::Container),
                "{header}"
            );
            let other = if own == Format::Qcow2 {
                Format::Vmdk
            } else {
                Format::Qcow2
            };
            assert_eq!(
                other.conflict_with(header),
                Some(FormatConflict::Refused),
                "{header}"
            );
        }
    }

    #[test]
    fn an_encrypted_raw_disk_and_a_fixed_vhd_are_no_contradiction() {
        for (written, header, expected) in [
            (Format::Raw, "raw", None),
            (Format::Raw, "luks", None),
            (Format::Raw, "luks2", None),
            (Format::Vpc, "raw", None),
            (Format::Luks, "raw", None),
            (Format::Dmg, "raw", None),
            (Format::Raw, "format-of-the-future", None),
            (Format::Qcow2, "raw", Some(FormatConflict::Refused)),
            (Format::Qcow2, "luks", Some(FormatConflict::Refused)),
            (Format::Qcow2, "format-of-the-future", None),
            (Format::Vpc, "qcow2", Some(FormatConflict::Refused)),
            (Format::Vhd, "vhdx", None),
            (Format::Ploop, "parallels", None),
        ] {
            assert_eq!(
                written.conflict_with(header),
                expected,
                "{written} {header}"
            );
        }
    }
}
