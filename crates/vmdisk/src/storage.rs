//! Pools and volumes beside a guest.

use vmdisk_model::VolumeNotLocated;
use vmdisk_rule::Problem;
use vmdisk_rule::reading::INVALID_VALUE;

pub use vmdisk_libvirt::{Storage, StorageItem, Unlocated};

use crate::{Document, Source, unlocated};

impl Document {
    /// The pool or volume that the text describes, if it is none of a guest.
    pub fn storage(&self) -> Option<&StorageItem> {
        match &self.source {
            Source::LibvirtXml(document) => document.storage.as_ref(),
            Source::QemuCommandLine(_) | Source::Spec(_) => None,
        }
    }

    /// True if a disk is on a volume of a pool, which only libvirt can find.
    pub fn has_volumes(&self) -> bool {
        unlocated::has_volumes(self.domain())
    }

    /// Puts in the place of each volume what libvirt opens for it, as far as its pool is known; what
    /// libvirt refuses becomes a mistake of the document.
    ///
    /// The text does not change: [`write::document_xml`](crate::write::document_xml) writes the resolved storage.
    pub fn locate_volumes(&mut self, storage: &Storage) {
        let Source::LibvirtXml(document) = &mut self.source else {
            return;
        };
        for Unlocated { at, why } in storage.locate(&mut document.domain) {
            let message = match why {
                None | Some(VolumeNotLocated::NotSaid) => continue,
                Some(VolumeNotLocated::PoolTypeRefused(pool_type)) => {
                    format!(
                        "libvirt does not support disks on volumes of a pool of type '{pool_type}'"
                    )
                }
                Some(VolumeNotLocated::ModeRefused(pool_type)) => format!(
                    "only volumes of iSCSI pools have a mode, and the pool is of type '{pool_type}'"
                ),
                Some(VolumeNotLocated::VolumeTypeRefused(volume_type)) => {
                    format!("libvirt does not support disks on volumes of type '{volume_type}'")
                }
                Some(VolumeNotLocated::NameRefused) => {
                    "a unit of an iSCSI target is named `unit:0:0:` and its number".to_owned()
                }
            };
            let place = document.source_map.resolve(at);
            let span = place.map_or_else(Default::default, |(_, place)| place.span);
            document
                .problems
                .push(Problem::new(&INVALID_VALUE, at, span, message));
        }
        document.problems.sort_by_key(|problem| problem.span);
    }
}
