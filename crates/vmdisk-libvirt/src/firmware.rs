//! `<loader>` and `<nvram>`, for a guest that is not read from XML.

use vmdisk_model::Format;

use crate::unmodeled::{Unmodeled, UnmodeledParts, UnmodeledPath};
use crate::writer::{Unwritable, Writer};

/// A file that the guest sees as flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashFile<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its format.
    pub format: Format,
    /// True if the guest cannot write it.
    pub is_read_only: bool,
}

impl Unmodeled {
    /// Adds firmware on flash, and the file with its variables if it has one.
    ///
    /// # Errors
    /// If a path holds a character that XML cannot carry.
    pub fn add_firmware(
        &mut self,
        code: FlashFile<'_>,
        variables: Option<FlashFile<'_>>,
    ) -> Result<(), Unwritable> {
        let nothing = UnmodeledParts::default();
        let element = |name: &'static str, file: FlashFile<'_>, is_code: bool| {
            let mut writer = Writer::new();
            writer.start(name, &nothing);
            if is_code {
                writer.attribute("readonly", if file.is_read_only { "yes" } else { "no" });
                writer.attribute("type", "pflash");
            }
            // Raw is the default, and libvirt before 9.2 does not know the attribute.
            writer.optional(
                "format",
                Some(file.format).filter(|format| *format != Format::Raw),
            );
            // QEMU refuses a block device as a file; libvirt has `type` since 8.5.
            if !is_code && file.path.starts_with("/dev/") {
                writer.attribute("type", "block");
                writer.start("source", &nothing);
                writer.attribute("dev", file.path);
                writer.end();
                writer.end();
            } else {
                writer.end_with_text(Some(file.path.to_owned()));
            }
            let text = writer.finish()?;
            Ok(text.trim_end().to_owned())
        };
        let mut children = vec![element("loader", code, true)?];
        if let Some(variables) = variables {
            children.push(element("nvram", variables, false)?);
        }
        let parts = UnmodeledParts {
            children,
            ..UnmodeledParts::default()
        };
        self.guest.note(UnmodeledPath::path("os"), parts);
        Ok(())
    }
}
