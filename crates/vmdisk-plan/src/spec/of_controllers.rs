//! Controllers of a guest, which a plan makes again from the disks.

use std::collections::BTreeSet;

use vmdisk_fields::{CONTROLLER_FIELDS, Label};
use vmdisk_model::{
    Controller, ControllerField, DiskField, Domain, FieldPath, Fields, ScsiControllerModel,
    TargetBus,
};

use super::dropped::DroppedFields;

/// Reports the parts of controllers that a plan of the spec does not have.
pub(super) fn report_controllers(domain: &Domain, report: &mut DroppedFields) {
    report_models(domain, report);
    for (nth, controller) in domain.controllers.iter().enumerate() {
        if domain.has_disk_on(controller) {
            report_settings(nth, controller, report);
        } else {
            let at = FieldPath::Controller(nth, ControllerField::Controller);
            let kind = controller.controller_type;
            let what = format!("the {kind} controller, which no disk uses,");
            report.report_dropped(at, what, false);
        }
    }
}

/// Reports each SCSI controller whose model differs from the model that every spec results in.
fn report_models(domain: &Domain, report: &mut DroppedFields) {
    let planned = ScsiControllerModel::VirtioScsi;
    let mut reported = BTreeSet::new();
    for (nth, disk) in domain.disks.iter().enumerate() {
        if disk.frontend.effective_bus() != TargetBus::Scsi {
            continue;
        }
        let model = domain.scsi_model_of(disk);
        let number = Domain::scsi_controller_number_of(disk);
        if model == planned || !reported.insert(number) {
            continue;
        }
        let own = domain.scsi_controller_of(disk);
        let written = own.and_then(|own| {
            let mut all = domain.controllers.iter();
            all.position(|controller| std::ptr::eq(controller, own))
        });
        let is_named = own.and_then(|own| own.scsi_model) == Some(model);
        let by_default = if is_named { "" } else { " (libvirt's default)" };
        let what = format!(
            "the SCSI controller model `{model}`{by_default}, which the spec replaces with `{planned}`,"
        );
        let at = match written {
            Some(position) => FieldPath::Controller(position, ControllerField::Model),
            None => FieldPath::Disk(nth, DiskField::TargetBus),
        };
        report.report_dropped(at, what, false);
    }
}

/// Reports the settings of a controller that has disks.
fn report_settings(nth: usize, controller: &Controller, report: &mut DroppedFields) {
    let is_virtio = controller
        .scsi_model
        .is_none_or(ScsiControllerModel::is_virtio);
    for field in CONTROLLER_FIELDS {
        let is_carried = match field {
            // The order of the disks decides.
            ControllerField::Index => true,
            ControllerField::IoThread => is_virtio,
            ControllerField::IoThreadMapping => {
                let mut rows = controller.iothread_mapping.iter();
                is_virtio && rows.all(|row| row.queues.is_empty())
            }
            // With the disks.
            ControllerField::Queues => is_virtio,
            _ => false,
        };
        if !is_carried && controller.has(*field) {
            let what = format!("`{}`", field.label());
            report.report_dropped(FieldPath::Controller(nth, *field), what, false);
        }
    }
    if controller.other_model.is_some() {
        let at = FieldPath::Controller(nth, ControllerField::Model);
        report.report_dropped(at, format!("`{}`", ControllerField::Model.label()), false);
    }
}
