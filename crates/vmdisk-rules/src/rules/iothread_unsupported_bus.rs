//! `iothread-unsupported-bus`

use vmdisk_model::{Change, ControllerField, DiskField, FieldPath, TargetBus};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, TakenBy, iothreads};

declare_rule! {
    /// A disk asks for an iothread on a bus whose devices have none.
    ///
    /// ## What it does
    /// Reports `iothread` and `<iothreads>` on the driver of a disk whose bus is not virtio. A SCSI disk's iothread
    /// belongs to its virtio-scsi controller, and serves all disks on it. IDE, SATA, USB, SD, floppy and NVMe devices
    /// run in QEMU's main loop, always.
    ///
    /// ## Why it matters
    /// libvirt refuses the domain. Schema validation does not notice.
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
    /// ```xml,fixed
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
    /// On SCSI it moves to the controller:
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
    /// ```xml,fixed
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
    pub(super) static RULE = {
        name: "iothread-unsupported-bus",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("IOThreads not available for bus … target …", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskIOThreads"),
            Evidence::Refused {
                by: "QEMU 5.2, 7.2, 10.0 and 11.1",
                text: "Property 'ide-hd.iothread' not found",
                source: "hw/ide/ide-dev.c has no such property",
            },
        ],
        supersedes: &["iothread-undefined"],
        check: check,
    }
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
            format!(
                "`{}` asks for an iothread, which a {bus} disk cannot have",
                disk.name()
            ),
        );
        finding
            .label("only virtio disks take one here")
            .related(FieldPath::Disk(index, DiskField::TargetBus), "the bus")
            .note(match context.taken_by {
                TakenBy::Libvirt => format!(
                    "libvirt refuses the domain: IOThreads not available for bus {bus} target {}",
                    disk.name()
                ),
                TakenBy::Qemu => "QEMU: the device has no property `iothread`".to_owned(),
            });
        let remove = Change::remove(at);
        match (bus, iothreads::virtio_scsi_of(context.domain, disk)) {
            (TargetBus::Scsi, Some((number, controller)))
                if iothreads::of_controller(controller).next().is_some() =>
            {
                finding
                    .related(
                        FieldPath::Controller(number, ControllerField::Driver),
                        "the controller has its iothread here",
                    )
                    .help("take it away: the disk runs in the iothread of its controller")
                    .fix(Fix::needs_consent([remove]));
            }
            (TargetBus::Scsi, Some((number, _))) => {
                finding.help("write it on the driver of the virtio-scsi controller; it serves all disks on it");
                if let Some(id) = frontend.iothread {
                    let set = Change::set(
                        FieldPath::Controller(number, ControllerField::IoThread),
                        id.to_string(),
                    );
                    finding.fix(Fix::needs_consent([remove, set]));
                }
            }
            (TargetBus::Scsi, None) => {
                finding.help(context.for_taker(
                    "add <controller type='scsi' model='virtio-scsi'> and write the iothread on its driver",
                    "write the iothread on a virtio-scsi-pci controller of its own",
                ));
            }
            (
                TargetBus::Virtio
                | TargetBus::Sata
                | TargetBus::Ide
                | TargetBus::Usb
                | TargetBus::Fdc
                | TargetBus::Nvme
                | TargetBus::Sd
                | TargetBus::Xen
                | TargetBus::Uml,
                _,
            ) => {
                finding
                    .help("take it away, or put the disk on bus='virtio', which the guest sees and needs a driver for")
                    .fix(Fix::needs_consent([remove]));
            }
        }
    }
}
