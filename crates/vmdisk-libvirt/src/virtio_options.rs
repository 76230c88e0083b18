//! What all virtio devices can be told, on the `<driver>` of a disk or SCSI controller.

use vmdisk_model::{Switch, VirtioOptions};

use crate::element::Element;
use crate::writer::Writer;

/// Reads the options of a `<driver>`.
pub(crate) fn read(driver: &mut Element<'_, '_>) -> VirtioOptions {
    VirtioOptions {
        iommu: driver.take("iommu", Switch::from_wire),
        ats: driver.take("ats", Switch::from_wire),
        packed: driver.take("packed", Switch::from_wire),
        page_per_vq: driver.take("page_per_vq", Switch::from_wire),
    }
}

/// Writes the options that are set.
pub(crate) fn write(writer: &mut Writer<'_>, options: &VirtioOptions) {
    let VirtioOptions {
        iommu,
        ats,
        packed,
        page_per_vq,
    } = options;
    writer.optional("iommu", *iommu);
    writer.optional("ats", *ats);
    writer.optional("packed", *packed);
    writer.optional("page_per_vq", *page_per_vq);
}
