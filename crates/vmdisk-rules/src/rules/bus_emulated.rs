//! `bus-emulated`

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{
    BackendSource, Change, Device, Disk, DiskField, Domain, DomainType, FieldPath, GuestSystem,
    MachineType, ScsiControllerModel, TargetBus,
};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::target_names::TargetNames;
use crate::virtio::{on_virtio, only_elsewhere};

declare_rule! {
    /// A disk is on an emulated IDE or SATA bus instead of virtio.
    ///
    /// ## What it reports
    /// Reports a writable disk on IDE, SATA or a SCSI controller of model `lsilogic` in a guest of QEMU whose machine supports
    /// virtio devices. It is a warning
    /// if the guest boots from a virtio disk, because the guest then has the drivers. Otherwise it is advice: the
    /// configuration does not show whether the guest has them. CD and floppy drives are not reported, nor a guest with macOS (libosinfo's note, or
    /// `isa-applesmc`), where virtio depends on the version.
    ///
    /// ## Why it matters
    /// For each request the guest writes several device registers, and QEMU emulates each of these writes. AHCI has one
    /// queue of 32 requests, and IDE handles one request at a time. Neither supports iothreads, several queues or
    /// sectors of 4096 bytes. The LSI 53C895A (`lsilogic`) has no driver in Windows since Vista and in Red Hat's kernels: such
    /// a guest finds no disk, and Windows stops with `INACCESSIBLE_BOOT_DEVICE`.
    ///
    /// ## Use instead
    /// Use `bus='virtio'`, and a target name such as `vdb`. Linux and the BSDs include the drivers. In Windows, install
    /// virtio-win before you move the boot disk, or the guest does not boot. The guest's name for the disk changes, so
    /// `/etc/fstab` should use UUIDs.
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
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/data.qcow2'/>
    ///       <target dev='sdb' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/data.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Advice, because the configuration does not show whether the guest has the drivers:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-i440fx-9.0'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='lsilogic'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// macOS:
    /// ```xml,not-reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>mac</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/mac.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='isa-applesmc'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>mac</name>
    ///   <metadata>
    ///     <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    ///       <libosinfo:os id='http://apple.com/macosx/10.15'/>
    ///     </libosinfo:libosinfo>
    ///   </metadata>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/mac.qcow2'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -accel kvm -machine q35 -device isa-applesmc \
    ///   -drive file=/srv/mac.qcow2,format=qcow2,if=none,id=d -device ide-hd,drive=d,bus=ide.0
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>desk1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc-i440fx-9.0'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='lsisas1068'/>
    ///     <controller type='scsi' index='1' model='lsilogic'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/desk1.qcow2'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/system.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/install.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without the machine:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/data.qcow2'/>
    ///   <target dev='sdb' bus='sata'/>
    /// </disk>
    /// ```
    name: "bus-emulated",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::NotMeasuredHere("qemu.org, 2021-01-19, Hajnoczi and Lopez: virtio is the most performant and fully featured choice, AHCI a fallback for guests without the drivers"),
        Evidence::Source("QEMU 5.2 to 11.1: ide-hd has no property iothread and refuses logical_block_size=4096"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut names = TargetNames::of(context.domain);
    let is_virtio = |nth: &usize| {
        let kind = context.domain.frontend_kind(&context.domain.disks[*nth]);
        kind.is_virtio()
    };
    if context.domain.system == Some(GuestSystem::Macos) {
        return;
    }
    let boots_from = context.domain.boot_disk().filter(is_virtio);
    for (index, disk) in context.disks() {
        if disk.frontend.bus.is_none() && disk.frontend.target.is_none() {
            continue;
        }
        let bus = disk.frontend.effective_bus();
        let is_lsi = bus == TargetBus::Scsi && is_on_lsi(context.domain, disk);
        let is_emulated = is_lsi || matches!(bus, TargetBus::Sata | TargetBus::Ide);
        if !is_emulated || !is_data_disk(disk) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::TargetBus);
        let guest = context.whole_guest(|| "the machine and its other disks".to_owned());
        let Some(domain) = report.require(at, guest) else {
            continue;
        };
        if !can_have_virtio(domain) {
            continue;
        }
        let title = match is_lsi {
            true => phrase!("{disk} is on an emulated LSI 53C895A"),
            false => phrase!("{disk} is on an emulated {bus} bus", bus = bus.as_str()),
        };
        let finding = report.finding(at, title);
        if is_lsi {
            finding.note(
                "Windows since Vista and Red Hat's kernels have no driver for it, and find no disk",
            );
        }
        let virtio = on_virtio(context, index, disk);
        finding.label("each request exits to the host several times");
        match boots_from {
            Some(boots_from) => {
                finding
                    .related(
                        FieldPath::Disk(boots_from, DiskField::TargetBus),
                        "the guest boots from virtio",
                    )
                    .note(phrase!(
                        "the guest boots from {boot}, which is virtio, so it has the drivers",
                        boot = DiskName(boots_from),
                    ))
                    .note("the guest's name for the disk changes")
                    .help(phrase!("use {virtio}", virtio));
                if let Some(changes) = to_virtio(&mut names, index, disk) {
                    finding.remedy(Fix::needs_consent(changes));
                }
            }
            None => {
                finding
                    .severity(Severity::Advice)
                    .note("the configuration does not show whether the guest has virtio drivers; Windows needs virtio-win before its boot disk moves")
                    .help(phrase!("if the guest has the drivers, use {virtio}; otherwise allow `bus-emulated`", virtio));
            }
        }
    }
}

/// True if a guest keeps data on the disk: it is not removable, not empty, and writable.
fn is_data_disk(disk: &Disk) -> bool {
    let has_source = matches!(&disk.backend.source, BackendSource::Image(_));
    // libvirt refuses read-only IDE and SATA disks, which another rule reports.
    has_source && disk.frontend.effective_device() == Device::Disk && disk.is_writable()
}

/// True if the model of the disk's SCSI controller is written, and is LSI's of the year 2000.
fn is_on_lsi(domain: &Domain, disk: &Disk) -> bool {
    let number = Domain::scsi_controller_number_of(disk);
    let mut controllers = domain.scsi_controllers();
    controllers.any(|(nth, controller)| {
        nth == number && controller.scsi_model == Some(ScsiControllerModel::Lsilogic)
    })
}

/// True if QEMU runs the guest on a machine that supports virtio devices.
fn can_have_virtio(domain: &Domain) -> bool {
    let is_qemu = matches!(
        &domain.domain_type,
        Some(DomainType::Kvm | DomainType::Qemu)
    );
    let takes_virtio = |machine: &MachineType| {
        let known = ["virt", "pseries", "s390-ccw"];
        let is_known = known.iter().any(|name| machine.0.starts_with(name));
        machine.is_q35() || machine.is_i440fx() || is_known
    };
    is_qemu && domain.machine.as_ref().is_none_or(takes_virtio)
}

/// The changes that move the disk to virtio, if no other setting of the disk depends on its bus.
fn to_virtio(names: &mut TargetNames<'_>, index: usize, disk: &Disk) -> Option<Vec<Change>> {
    if only_elsewhere(disk).next().is_some() {
        return None;
    }
    let frontend = &disk.frontend;
    let target = frontend.target.as_deref()?;
    let name = names.for_bus(TargetBus::Virtio, target)?;
    let at = |field| FieldPath::Disk(index, field);
    let mut changes = vec![
        Change::set(at(DiskField::TargetDev), name),
        Change::set(at(DiskField::TargetBus), TargetBus::Virtio),
    ];
    if frontend.address.is_some() {
        changes.push(Change::remove(at(DiskField::Address)));
    }
    Some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_virtio_and_another_hypervisor_are_left_alone() {
        let mut domain = Domain {
            domain_type: Some(DomainType::Kvm),
            ..Domain::default()
        };
        assert!(can_have_virtio(&domain));
        domain.machine = Some(MachineType::new("isapc"));
        assert!(!can_have_virtio(&domain));
        domain.machine = Some(MachineType::new("pc-i440fx-9.2"));
        assert!(can_have_virtio(&domain));
        domain.domain_type = Some(DomainType::Other("xen".to_owned()));
        assert!(!can_have_virtio(&domain));
    }
}
