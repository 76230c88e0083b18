//! Requirements of a domain before disks are attached to it.

use std::fmt::Write as _;

use vmdisk::model::{BackendSource, Disk, Domain, Protocol};
use vmdisk::write;

use crate::sanitize::line;
use crate::stop::Stop;

/// A line for each thing outside the `<disk>` elements that the disks need.
pub(super) fn requirements(domain: &Domain) -> Result<String, Stop> {
    let mut elements = Vec::new();
    for controller in &domain.controllers {
        let element = write::controller_xml(controller);
        elements.push(element.map_err(|error| Stop::new(error.to_string()))?);
    }
    if let Some(last) = domain.iothreads.iter().map(|thread| thread.id.0).max() {
        elements.push(format!("<iothreads>{last}</iothreads>"));
    }
    let is_served = |disk: &Disk| match &disk.backend.source {
        BackendSource::VhostUser(_) => true,
        BackendSource::Image(image) => matches!(image.protocol, Protocol::VhostVdpa { .. }),
        BackendSource::Empty => false,
    };
    if domain.disks.iter().any(is_served) {
        elements.push(
            "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>"
                .to_owned(),
        );
    }
    let mut out = String::new();
    for element in elements {
        let words: Vec<&str> = element.lines().map(str::trim).collect();
        let _ = writeln!(out, "the domain must have {}", line(&words.concat()));
    }
    let targets: Vec<&str> = domain.disks.iter().map(Disk::name).collect();
    let _ = writeln!(
        out,
        "the domain must not have a disk called {} yet; --into DOMAIN.xml plans around its disks",
        line(&targets.join(" or "))
    );
    Ok(out)
}
