//! `controller-refused`

use std::collections::BTreeMap;

use vmdisk_facts::Capability;
use vmdisk_fields::{self as fields, CONTROLLER_FIELDS, ControllerName, phrase};
use vmdisk_model::{
    Address, Change, Controller, ControllerField, ControllerType, Domain, FieldPath, Fields,
    ScsiControllerModel,
};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk controller has an unsupported model, index or option.
    ///
    /// ## What it reports
    /// Reports two controllers of one type with the same index, IDE controllers on q35 and more than one on other
    /// machines, NVMe controllers before libvirt 11.5, SCSI models that QEMU does not have, and queues, limits,
    /// ioeventfd and iothreads on SCSI controllers other than virtio-scsi.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest, with messages such as `Multiple 'scsi' controllers with index '0'`,
    /// `IDE controllers are unsupported for this QEMU binary or machine type` or
    /// `'queues' is only supported by virtio-scsi controller`. The IDE message usually appears after the machine of a
    /// guest is changed from `pc` to `q35`. BusLogic controllers come from VMware guests.
    ///
    /// ## Use instead
    /// Use `<controller type='scsi' model='virtio-scsi'/>` for SCSI, and SATA instead of IDE on q35. Remove duplicate
    /// controllers: libvirt adds the ones that the disks need.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='ide' index='0'/>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'>
    ///       <driver queues='4'/>
    ///     </controller>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type machine='pc-q35-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='ncr53c90'/>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type machine='pc-q35-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,libvirt-12.5
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <devices>
    ///     <controller type='nvme' index='0'><serial>a</serial></controller>
    ///   </devices>
    /// </domain>
    /// ```
    name: "controller-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("Invalid value for attribute 'type' in element 'controller': '…'", "src/util/virxml.c, virXMLPropEnumInternal"),
        Evidence::refused_by_libvirt("Multiple '…' controllers with index '…'", "src/conf/domain_postparse.c, virDomainDefRejectDuplicateControllers"),
        Evidence::refused_by_libvirt("IDE controllers are unsupported for this QEMU binary or machine type", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerIDE"),
        Evidence::refused_by_libvirt("Only a single IDE controller is supported for this machine type", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerIDE"),
        Evidence::refused_by_libvirt("Unsupported controller model: …", "src/qemu/qemu_validate.c, qemuValidateCheckSCSIControllerModel"),
        Evidence::refused_by_libvirt("virtio-scsi IOThreads only available for virtio pci and virtio ccw controllers", "src/qemu/qemu_validate.c, qemuValidateCheckSCSIControllerIOThreads"),
        Evidence::refused_by_libvirt("ncr53c90 SCSI controller is not a built-in for this machine", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerSCSI"),
        Evidence::refused_by_libvirt("ncr53c90 can only be used as first SCSI controller", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerSCSI"),
        Evidence::refused_by_libvirt("is only supported by virtio-scsi controller", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerAttributes"),
        Evidence::refused_by_libvirt("attribute only supported for virtio scsi controllers", "src/conf/domain_postparse.c, virDomainControllerDefPostParse"),
        Evidence::refused_by_libvirt("iothreads are supported only by 'virtio-scsi' controllers", "src/conf/domain_validate.c, virDomainControllerDefValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let domain = context.domain;
    let mut taken: BTreeMap<(ControllerType, u32), usize> = BTreeMap::new();
    for (nth, controller) in domain.controllers.iter().enumerate() {
        let kind = controller.controller_type;
        if let Some(index) = controller.index
            && let Some(first) = taken.insert((kind, index), nth)
            && kind != ControllerType::Usb
        {
            report
                .finding(
                    FieldPath::Controller(nth, ControllerField::Index),
                    format!("two {kind} controllers have the number {index}"),
                )
                .label("already in use")
                .related(
                    FieldPath::Controller(first, ControllerField::Index),
                    "used by this controller",
                )
                .help("give one of them another number");
        }
        if kind == ControllerType::Nvme && context.can(Capability::LibvirtNvmeBus).is_no() {
            report
                .finding(
                    FieldPath::Controller(nth, ControllerField::ControllerType),
                    "NVMe controllers require libvirt 11.5",
                )
                .label("not supported by this libvirt")
                .help("use `bus='virtio'` for the disks, or libvirt 11.5");
        }
        check_ide(context, report, nth, controller);
        check_scsi(context, report, nth, controller);
    }
}

fn check_ide(context: &Context<'_>, report: &mut Report, nth: usize, controller: &Controller) {
    if controller.controller_type != ControllerType::Ide {
        return;
    }
    let Some(machine) = &context.domain.machine else {
        return;
    };
    let at = FieldPath::Controller(nth, ControllerField::Controller);
    if machine.is_q35() {
        report
            .finding(at, format!("machine `{}` has no IDE controller", machine.0))
            .label("q35 has SATA")
            .help("use `bus='sata'` for the disks");
    } else if machine.is_i440fx() && controller.index.is_some_and(|index| index > 0) {
        report
            .finding(
                at,
                format!("machine `{}` has one IDE controller", machine.0),
            )
            .label("a second IDE controller")
            .help("move further disks to another bus");
    }
}

/// True for a virtio-scsi controller. For disks without a machine, libvirt's choice of a model is not known.
pub(super) fn may_be_virtio_scsi(domain: &Domain, controller: &Controller) -> bool {
    let chosen = domain.architecture.map(|architecture| {
        ScsiControllerModel::libvirts_choice(architecture, domain.machine.as_ref())
    });
    let model = controller
        .scsi_model
        .filter(|model| *model != ScsiControllerModel::Auto)
        .or(chosen);
    controller.controller_type == ControllerType::Scsi
        && model.is_none_or(ScsiControllerModel::is_virtio)
}

fn check_scsi(context: &Context<'_>, report: &mut Report, nth: usize, controller: &Controller) {
    let domain = context.domain;
    let is_virtio = may_be_virtio_scsi(domain, controller);
    let at = FieldPath::Controller(nth, ControllerField::Model);
    let virtio_scsi = || Fix::needs_consent([Change::set(at, ScsiControllerModel::VirtioScsi)]);
    if controller.scsi_model == Some(ScsiControllerModel::Buslogic) {
        report
            .finding(at, "QEMU does not support BusLogic controllers")
            .label("only VMware has one")
            .remedy(virtio_scsi());
    }
    let is_pc = domain
        .machine
        .as_ref()
        .is_some_and(|machine| machine.is_q35() || machine.is_i440fx());
    if is_pc && controller.scsi_model == Some(ScsiControllerModel::Ncr53c90) {
        report
            .finding(at, "a PC has no NCR 53C90 controller")
            .label("part of a few boards, not a card")
            .remedy(virtio_scsi());
    }
    if is_virtio {
        check_iothread_address(report, nth, controller);
        return;
    }
    for field in CONTROLLER_FIELDS {
        let row = fields::controller(*field);
        // libvirt's reaction to these was not tried.
        let is_virtios = matches!(
            field,
            ControllerField::Iommu
                | ControllerField::Ats
                | ControllerField::Packed
                | ControllerField::PagePerVq
        );
        if row.virtio_scsi.is_some() && !is_virtios && controller.has(*field) {
            report
                .finding(
                    FieldPath::Controller(nth, *field),
                    phrase!(
                        "{controller} sets {field}, which only virtio-scsi supports",
                        controller = ControllerName(nth),
                        field = FieldPath::Controller(nth, *field),
                    ),
                )
                .label("only on virtio-scsi")
                .help(phrase!(
                    "remove {field}, or use a controller with `type='scsi' model='virtio-scsi'`",
                    field = FieldPath::Controller(nth, *field),
                ));
        }
    }
}

/// Only a controller with interrupts over PCI or a CCW channel can run in an iothread.
fn check_iothread_address(report: &mut Report, nth: usize, controller: &Controller) {
    let has_other_place = !matches!(
        &controller.address,
        None | Some(Address::Pci(_) | Address::Ccw(_))
    );
    if has_other_place && controller.iothread.is_some() {
        report
            .finding(
                FieldPath::Controller(nth, ControllerField::Address),
                "a virtio-scsi controller with an iothread is not on PCI or CCW",
            )
            .label("this address does not support iothreads")
            .help("use an address of the type `pci`, or remove the iothread");
    }
}
