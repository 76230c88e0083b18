//! `iothread-unsupported-bus`

use vmdisk_fields::{ControllerName, phrase, setting};
use vmdisk_model::{Change, ControllerField, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::iothreads;
use crate::virtio::on_virtio;

declare_rule! {
    /// A disk has an iothread, but its bus does not support one.
    ///
    /// ## What it reports
    /// Reports `iothread` and `<iothreads>` on the driver of a disk whose bus is not virtio. A SCSI disk uses the
    /// iothread of its virtio-scsi controller, which serves all disks of the controller. IDE, SATA, USB, SD, floppy and
    /// NVMe devices always run in QEMU's main loop.
    ///
    /// ## Why it matters
    /// libvirt refuses the domain, and QEMU does not start. Schema validation accepts it.
    ///
    /// ## Use instead
    /// For a SCSI disk, set `iothread` on the `<driver>` of its virtio-scsi controller. For other buses, remove it, or
    /// use `<target bus='virtio'/>`; the guest then needs a virtio driver, and the device has another name there.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// On SCSI, the controller has the iothread:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='virtio-scsi'>
    ///       <driver queues='4'/>
    ///     </controller>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='virtio-scsi'>
    ///       <driver queues='4' iothread='1'/>
    ///     </controller>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' iothread='1'/>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "iothread-unsupported-bus",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("IOThreads not available for bus … target …", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskIOThreads"),
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "Property 'ide-hd.iothread' not found", "hw/ide/ide-dev.c has no such property"),
    ],
    supersedes: &["iothread-undefined"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let bus = frontend.effective_bus();
        let field = match (frontend.iothread, frontend.iothread_mapping.is_empty()) {
            (Some(_), _) => DiskField::IoThread,
            (None, false) => DiskField::IoThreadMapping,
            (None, true) => continue,
        };
        if bus == TargetBus::Virtio {
            continue;
        }
        let at = FieldPath::Disk(index, field);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} sets {iothread}, which {bus} disks do not support",
                iothread = at,
                bus = bus.as_str(),
            ),
        );
        finding
            .label("only virtio disks support this")
            .related(FieldPath::Disk(index, DiskField::TargetBus), "the bus")
            .note(match context.consumer {
                Consumer::Libvirt => format!(
                    "libvirt: `IOThreads not available for bus {bus} target {}`",
                    disk.name()
                ),
                Consumer::Qemu => "QEMU refuses a property that the device does not have".into(),
            });
        let remove = Change::remove(at);
        match (bus, iothreads::virtio_scsi_of(context.domain, disk)) {
            (TargetBus::Scsi, Some((number, controller)))
                if iothreads::of_controller(controller).next().is_some() =>
            {
                let driver = FieldPath::Controller(number, ControllerField::Driver);
                finding
                    .related(driver, "the iothread of the controller")
                    .note("the disk runs in the iothread of its controller")
                    .remedy(Fix::needs_consent([remove]));
            }
            (TargetBus::Scsi, Some((number, _))) => {
                let on_controller = FieldPath::Controller(number, ControllerField::IoThread);
                finding.note("the iothread of a controller serves all its disks");
                match frontend.iothread {
                    Some(id) => finding
                        .help(phrase!(
                            "use {iothread} on {controller} instead",
                            iothread = setting(on_controller, id).instead_of(at),
                            controller = ControllerName(number),
                        ))
                        .fix(Fix::needs_consent([remove, Change::set(on_controller, id)])),
                    None => finding.help(phrase!(
                        "assign the iothread to {controller} instead",
                        controller = ControllerName(number)
                    )),
                };
            }
            (TargetBus::Scsi, None) => {
                finding.help("add a virtio-scsi controller, and assign the iothread to it");
            }
            _ => {
                finding
                    .note(
                        "another bus changes the device that the guest sees, which needs a driver",
                    )
                    .help(phrase!(
                        "remove {iothread}, or use {virtio}",
                        iothread = at,
                        virtio = on_virtio(context, index, disk),
                    ))
                    .fix(Fix::needs_consent([remove]));
            }
        }
    }
}
