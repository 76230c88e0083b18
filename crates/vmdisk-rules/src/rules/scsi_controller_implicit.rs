//! `scsi-controller-implicit`

use std::collections::HashMap;

use vmdisk_fields::phrase;
use vmdisk_model::{
    Architecture, Device, Disk, DiskField, Domain, FieldPath, ScsiControllerModel, TargetBus,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::virtio::on_virtio;

declare_rule! {
    /// A SCSI controller has no model, and libvirt chooses the legacy LSI 53C895A.
    ///
    /// ## What it reports
    /// Reports the first disk of a PC whose SCSI controller is missing or has no model.
    ///
    /// ## Why it matters
    /// On a PC libvirt adds `model='lsilogic'`, QEMU's LSI 53C895A from the year 2000. Many guests have no driver for
    /// it and do not see the disk: Red Hat's kernels and Windows do not ship one. With a driver, each request is
    /// emulated register by register, iothreads are not available, and a controller has seven places.
    ///
    /// ## Use instead
    /// Add `<controller type='scsi' index='0' model='virtio-scsi'/>`, or use `bus='virtio'`. The guest needs the virtio
    /// driver, which Windows does not include.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked for a disk alone, because its controllers are unknown:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    name: "scsi-controller-implicit",
    group: Group::Clarity,
    severity: Severity::Warning,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("define succeeds, and dumpxml has `<controller type='scsi' index='0' model='lsilogic'>`", "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs"),
        Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainGetSCSIControllerModel"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let has_model: HashMap<u32, bool> = context
        .domain
        .scsi_controllers()
        .map(|(number, controller)| {
            let is_open = matches!(
                controller.scsi_model,
                None | Some(ScsiControllerModel::Auto)
            );
            (number, !is_open)
        })
        .collect();
    let is_scsi = |disk: &Disk| disk.frontend.effective_bus() == TargetBus::Scsi;
    for (index, disk) in context.disks().filter(|(_, disk)| is_scsi(disk)) {
        let at = FieldPath::Disk(index, DiskField::TargetBus);
        let what = || format!("the SCSI controller of {}", disk.name());
        let Some(domain) = report.require(at, context.whole_guest(what)) else {
            return;
        };
        let architecture = domain.architecture.unwrap_or(Architecture::X86_64);
        let choice = ScsiControllerModel::libvirts_choice(architecture, domain.machine.as_ref());
        if choice != ScsiControllerModel::Lsilogic {
            return;
        }
        let number = Domain::scsi_controller_number_of(disk);
        let problem = match has_model.get(&number) {
            Some(true) => continue,
            Some(false) => "has no model",
            None => "is not configured",
        };
        report
            .finding(
                at,
                phrase!(
                    "{disk} uses SCSI controller {number}, which {problem}",
                    number,
                    problem,
                ),
            )
            .label("libvirt chooses the LSI 53C895A (`lsilogic`)")
            .note("a guest without a driver for it does not see the disk")
            .help(match disk.frontend.effective_device() {
                Device::Disk => phrase!(
                    "set the model of SCSI controller {number} to virtio-scsi, or use {virtio}",
                    number,
                    virtio = on_virtio(context, index, disk),
                ),
                // On virtio there are no other devices.
                _ => phrase!(
                    "set the model of SCSI controller {number} to virtio-scsi",
                    number
                ),
            });
        // One finding is enough for all disks of the guest.
        return;
    }
}
