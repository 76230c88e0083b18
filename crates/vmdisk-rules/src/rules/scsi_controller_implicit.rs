//! `scsi-controller-implicit`

use std::collections::HashMap;

use vmdisk_model::{
    Architecture, Disk, DiskField, Domain, FieldPath, ScsiControllerModel, TargetBus,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// SCSI disks hang on a controller whose model nobody wrote, and libvirt takes LSI's of the year 2000.
    ///
    /// ## What it does
    /// Reports the first disk of a PC whose SCSI controller is not written, or is written without a model.
    ///
    /// ## Why it matters
    /// On a PC libvirt fills in `model='lsilogic'`, QEMU's LSI 53C895A. Many guests have no driver for it and do not
    /// see the disk: Red Hat's kernels and Windows have none. Where there is one, each request is emulated register
    /// by register, discards and iothreads are out of reach, and a controller has seven places.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
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
    /// Of a disk alone nobody knows the controllers.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "scsi-controller-implicit",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::Measured {
                figures: "define succeeds, and dumpxml has `<controller type='scsi' index='0' model='lsilogic'>`",
                how: "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs",
            },
            Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainGetSCSIControllerModel"),
        ],
        supersedes: &[],
        check: check,
    }
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
        let name = disk.name();
        let what = || format!("the SCSI controller of `{name}`");
        let Some(domain) = report.require(at, context.whole_guest(what)) else {
            return;
        };
        let architecture = domain.architecture.unwrap_or(Architecture::X86_64);
        let choice = ScsiControllerModel::libvirts_choice(architecture, domain.machine.as_ref());
        if choice != ScsiControllerModel::Lsilogic {
            return;
        }
        let number = Domain::scsi_controller_number_of(disk);
        let has_no = match has_model.get(&number) {
            Some(true) => continue,
            Some(false) => format!("SCSI controller {number}, which has no model"),
            None => format!("SCSI controller {number}, which is not written"),
        };
        report
            .finding(at, format!("`{name}` hangs on {has_no}"))
            .label("libvirt makes it an LSI 53C895A (model 'lsilogic')")
            .note("a guest without a driver for that one does not see the disk")
            .help(format!(
                "write <controller type='scsi' index='{number}' model='virtio-scsi'/>, or put the disk on bus='virtio'"
            ));
        // One finding is enough for all disks of the guest.
        return;
    }
}
