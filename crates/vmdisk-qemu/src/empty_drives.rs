//! The empty drives that QEMU adds to a machine.

use vmdisk_model::Scope;

use crate::document::Document;
use crate::index::Index;
use crate::members::Members;
use crate::syntax::option::UNKNOWN_WORD;

impl Document {
    /// Names of the empty drives that QEMU certainly adds to the guest: a CD drive, a floppy drive, or an SD slot. No option
    /// defines them, and the guest has no disks for them. Recorded on QEMU 7.2.
    pub fn empty_drives(&self) -> Vec<&'static str> {
        if self.domain.scope != Scope::WholeGuest {
            return Vec::new();
        }
        let index = Index::new(&self.options);
        let has = |names: &[&str]| names.iter().any(|name| index.has(name));
        let default = self.defaults.interface.word();
        let count = |interfaces: &[&str]| {
            let is_of = |drive: Members<'_>| {
                let interface = drive.value("if").unwrap_or(default);
                interfaces.contains(&interface)
            };
            let drives = index.of_name("drive").filter(|(_, it)| is_of(*it));
            drives.count()
        };
        let is_empty = |name: &&str| match *name {
            "floppy0" => !has(&["fda"]) && count(&["floppy"]) == 0,
            "sd0" | "sd00" => !has(&["sd"]) && count(&["sd"]) == 0,
            // The third drive of the machine: drives without a place fill the free ones in order.
            _ => {
                let placed = ["hda", "hdb"].iter().filter(|name| index.has(name)).count();
                !has(&["cdrom", "hdc"]) && placed + count(&["ide", "scsi"]) < 3
            }
        };
        let mut names = reserved_names(self, &index);
        names.retain(is_empty);
        names
    }
}

/// The names of the empty drives that QEMU certainly adds to the machine, or that options without an id define.
pub(crate) fn reserved_names(document: &Document, index: &Index<'_>) -> Vec<&'static str> {
    let drives = document.defaults.drives.unwrap_or_default();
    let is_placed = |drive: Members<'_>| {
        ["index", "bus", "unit"]
            .iter()
            .any(|it| drive.get(it).is_some())
    };
    let is_open = index.has(UNKNOWN_WORD) || document.is_open;
    if is_open || index.has("nodefaults") || index.of_name("drive").any(|(_, it)| is_placed(it)) {
        return Vec::new();
    }
    let replaced = |name: &str| {
        let kinds: &[&str] = if name.contains("-cd") {
            &[
                "ide-cd",
                "ide-drive",
                "ide-hd",
                "scsi-cd",
                "scsi-disk",
                "scsi-hd",
            ]
        } else {
            &["floppy", "isa-fdc"]
        };
        index
            .devices()
            .any(|(_, driver, _)| kinds.contains(&driver))
    };
    drives.split(',').filter(|name| !replaced(name)).collect()
}
