//! `iothread-missing-fast-media`

use vmdisk_fields::{DiskName, Phrase, phrase, setting};
use vmdisk_model::{
    Address, Change, ControllerField, Device, Disk, DiskField, Domain, DomainField, FieldPath,
    FrontendKind,
};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::iothreads;

declare_rule! {
    /// A virtio disk on fast drives has no iothread.
    ///
    /// ## What it reports
    /// Reports a virtio-blk disk and a virtio-scsi controller without an iothread, if the guest has two or more vCPUs
    /// and all drives below the image are NVMe or other non-rotating drives. Drives that the host itself sees as
    /// virtual disks are not reported, because their `rotational` flag means nothing; nor are guests with an unused
    /// iothread, which `iothread-unused` reports. It is pedantic, because a configuration does not show how busy a disk is.
    ///
    /// ## Why it matters
    /// Without an iothread, QEMU serves the disk in its main loop, together with all other devices and the monitor,
    /// under one lock. Busy disks on fast drives then wait for the main loop. The gain grows with the queue depth: with
    /// one request at a time there was none. The measurement below is of a host without KVM, where vCPU threads compete
    /// with the main loop for its lock and for two cores; with KVM the gain is smaller, and was not measured here.
    ///
    /// ## Use instead
    /// Define an iothread (`<iothreads>1</iothreads>`) and assign it to the disk (`iothread='1'` on its driver), or to
    /// its virtio-scsi controller. It costs one thread on the host.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' io='native'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' io='native' iothread='1'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>1</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' io='native'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none' io='native'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/md/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "iothread-missing-fast-media",
    group: Group::Performance,
    severity: Severity::Pedantic,
    evidence: &[
        Evidence::measured("4 KiB random I/O at depth 32: reads 31.0 k IOPS with an iothread and 13.7 k without, writes 26.1 k and 13.3 k; at depth 1 no difference", "measured for this project on Linux 6.18, QEMU 7.2 under TCG with 2 vCPUs, virtio-blk, raw file, cache=none, io=native, 3 shuffled rounds on a host with 2 cores; neither rate nor ratio holds for KVM"),
        Evidence::Source("QEMU docs/devel/multiple-iothreads: the main loop runs device emulation and the monitor"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let domain = context.domain;
    if !iothreads::idle(domain).is_empty() {
        return;
    }
    let mut controllers_seen = vec![false; domain.controllers.len()];
    for (index, disk, image) in context.images() {
        let Some(place) = place_for_iothread(domain, index, disk) else {
            continue;
        };
        let Some(path) = image.host_path() else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::Disk);
        let Some(vcpus) = report.require(at, context.vcpus()) else {
            continue;
        };
        if vcpus < 2 {
            continue;
        }
        let slowest = context
            .host(|| format!("the drives under {path}"))
            .and_then(|host| host.slowest_drive(path));
        let Some(drive) = report.require(at, slowest) else {
            continue;
        };
        if drive.media.is_fast() != Some(true) {
            continue;
        }
        if let FieldPath::Controller(number, _) = place {
            // All disks of a controller share its iothread, so one finding is enough.
            if std::mem::replace(&mut controllers_seen[number], true) {
                continue;
            }
        }
        let disk_name = DiskName(index);
        let user: Phrase = if matches!(place, FieldPath::Controller(..)) {
            phrase!("the SCSI controller of {disk_name}", disk_name)
        } else {
            phrase!("{disk_name}", disk_name)
        };
        let finding = report.finding(
            at,
            phrase!(
                "{user} runs in QEMU's main loop, which can be slower than its storage",
                user = user.clone()
            ),
        );
        finding
            .label("has no iothread")
            .note(drive.reason(path))
            .note(format!(
                "the guest's {vcpus} vCPUs share one thread for this disk and all other devices"
            ));
        match iothreads::next(domain) {
            Some(id) => {
                let threads = FieldPath::Domain(DomainField::IoThreads);
                finding
                    .help(phrase!(
                        "use {settings} for {user}",
                        settings = [setting(threads, id.0), setting(place, id)],
                        user,
                    ))
                    .fix(Fix::needs_consent([
                        Change::set(threads, id.0),
                        Change::set(place, id),
                    ]))
            }
            None => finding.help(phrase!("add an iothread, and assign it to {user}", user)),
        };
    }
}

/// The field for the iothread, if this disk can have one and has none.
fn place_for_iothread(domain: &Domain, index: usize, disk: &Disk) -> Option<FieldPath> {
    if !matches!(disk.frontend.effective_device(), Device::Disk | Device::Lun) {
        return None;
    }
    // libvirt has iothreads for disks on PCI and CCW only.
    if disk.frontend.address == Some(Address::VirtioMmio) {
        return None;
    }
    match domain.frontend_kind(disk) {
        FrontendKind::VirtioBlk => iothreads::of_disk(disk)
            .next()
            .is_none()
            .then_some(FieldPath::Disk(index, DiskField::IoThread)),
        FrontendKind::VirtioScsi => {
            let (number, controller) = iothreads::virtio_scsi_of(domain, disk)?;
            let has_none = iothreads::of_controller(controller).next().is_none();
            has_none.then_some(FieldPath::Controller(number, ControllerField::IoThread))
        }
        _ => None,
    }
}
