//! The elements of a domain that disks refer to, or that limit them.

use vmdisk_fields::CONTROLLER_FIELDS;
use vmdisk_model::{
    BackendSource, Controller, ControllerField, ControllerType, Disk, Domain, Fields, MemoryAccess,
    MemoryBacking, MemorySource, Protocol, Scope,
};

use crate::controller::write_controller;
use crate::unmodeled::UnmodeledContent;
use crate::writer::{Unwritable, Writer};
use crate::{blkiotune, iothreads, memory_backing, throttle_groups};

/// Writes the elements outside the `<disk>` elements of a guest that its disks need or that tune them, each as a
/// text: controllers, iothreads, shared memory, `<blkiotune>` and throttle groups.
///
/// A controller is written without its address and alias, which belong to the guest, and only if libvirt would not
/// add the same one for the disks.
///
/// ```
/// use vmdisk_libvirt::{read, write_surroundings};
///
/// let document = read("<domain type='kvm'><iothreads>1</iothreads><devices>
///   <disk type='file'><driver name='qemu' iothread='1'/><source file='/srv/a.img'/><target dev='vda'/></disk>
/// </devices></domain>")?;
/// assert_eq!(write_surroundings(&document.domain)?, ["<iothreads>1</iothreads>\n"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if a text contains a character that XML cannot represent.
pub fn write_surroundings(domain: &Domain) -> Result<Vec<String>, Unwritable> {
    let nothing = UnmodeledContent::default();
    let mut elements = Vec::new();
    for controller in &domain.controllers {
        if is_needed(domain, controller) {
            let own = Controller {
                address: None,
                alias: None,
                ..controller.clone()
            };
            elements.push(write_controller(&own)?);
        }
    }
    let mut writer = Writer::new();
    if uses_iothreads(domain) {
        iothreads::write(&mut writer, &domain.iothreads, &nothing);
    }
    elements.push(writer.finish()?);
    let mut writer = Writer::new();
    iothreads::write_default(&mut writer, domain.default_iothread.as_ref(), &nothing);
    elements.push(writer.finish()?);
    let mut writer = Writer::new();
    if domain.scope == Scope::WholeGuest && domain.disks.iter().any(is_served) {
        memory_backing::write(&mut writer, &shared_memory(domain), &nothing);
    }
    elements.push(writer.finish()?);
    let mut writer = Writer::new();
    blkiotune::write(&mut writer, domain.blkiotune.as_ref(), &nothing);
    elements.push(writer.finish()?);
    let mut writer = Writer::new();
    let mut filters = domain
        .disks
        .iter()
        .map(|disk| &disk.backend.throttle_filters);
    if filters.any(|filters| !filters.is_empty()) {
        throttle_groups::write(&mut writer, &domain.throttle_groups, &nothing);
    }
    elements.push(writer.finish()?);
    elements.retain(|element| !element.is_empty());
    Ok(elements)
}

/// The memory of the guest if it is configured, else shared memory.
fn shared_memory(domain: &Domain) -> MemoryBacking {
    let own = &domain.memory_backing;
    if own.source.is_some() || own.access.is_some() {
        return own.clone();
    }
    MemoryBacking {
        source: Some(MemorySource::Memfd),
        access: Some(MemoryAccess::Shared),
        ..own.clone()
    }
}

/// True if another process maps the memory of the guest.
fn is_served(disk: &Disk) -> bool {
    match &disk.backend.source {
        BackendSource::VhostUser(_) => true,
        BackendSource::Image(image) => matches!(image.protocol, Protocol::VhostVdpa { .. }),
        BackendSource::Empty => false,
    }
}

fn uses_iothreads(domain: &Domain) -> bool {
    let mut disks = domain.disks.iter();
    disks.any(|disk| {
        let own = &disk.frontend;
        let controller = domain.scsi_controller_of(disk);
        own.iothread.is_some()
            || !own.iothread_mapping.is_empty()
            || controller.is_some_and(|controller| {
                controller.iothread.is_some() || !controller.iothread_mapping.is_empty()
            })
    })
}

/// True for a controller with disks, unless libvirt adds the same controller.
fn is_needed(domain: &Domain, controller: &Controller) -> bool {
    let is_usual = |field: &ControllerField| {
        matches!(
            field,
            ControllerField::Index | ControllerField::Address | ControllerField::Alias
        )
    };
    let mut fields = CONTROLLER_FIELDS.iter();
    let is_set = controller.controller_type == ControllerType::Scsi
        || controller.other_model.is_some()
        || fields.any(|field| !is_usual(field) && controller.has(*field));
    is_set && domain.has_disk_on(controller)
}
