//! `iothread-missing-fast-media`

use vmdisk_model::{
    Change, ControllerField, Device, Disk, DiskField, Domain, DomainField, FieldPath, FrontendKind,
};

use crate::media::{self, Media};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, TakenBy, iothreads};

declare_rule! {
    /// A virtio disk on fast drives has no iothread.
    ///
    /// ## What it does
    /// Reports a virtio-blk disk without an iothread, and a virtio-scsi controller without one, where the guest has
    /// two vCPUs or more and all drives under the image are NVMe (a warning) or other drives that do not spin
    /// (advice). Drives of which the host only sees a virtual disk are left alone: their `rotational` flag means
    /// nothing. So are guests that have an iothread to spare, which `iothread-unused` speaks about.
    ///
    /// ## Why it matters
    /// Without an iothread QEMU serves the disk in its main loop, together with every other device, with the
    /// monitor and with all other disks, behind one lock. A hard disk is slower than that; an SSD is not. The gain
    /// comes with depth: at one request at a time there is none.
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
    /// ```xml,fixed,facts-xfs-nvme
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
    /// Without facts, nobody knows the drives:
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
    pub(super) static RULE = {
        name: "iothread-missing-fast-media",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "4 KiB random I/O at depth 32: reads 31.0 k IOPS with an iothread and 13.7 k without, writes 26.1 k and 13.3 k; at depth 1 no difference",
                how: "measured for this project on Linux 6.18, QEMU 7.2 under TCG with 2 vCPUs, virtio-blk, raw file, cache=none, io=native, 3 shuffled rounds; under TCG the ratio counts, not the rate",
            },
            Evidence::Source("QEMU docs/devel/multiple-iothreads: the main loop runs device emulation and the monitor"),
        ],
        supersedes: &[],
        check: check,
    }
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
        let guest = context.whole_guest(|| "the number of vCPUs".to_owned());
        let Some(domain) = report.require(at, guest) else {
            continue;
        };
        let vcpus = domain.effective_vcpus();
        if vcpus < 2 {
            continue;
        }
        let slowest = context
            .host(|| format!("the drives under {path}"))
            .and_then(|host| media::slowest(host, path));
        let Some((media, drive)) = report.require(at, slowest) else {
            continue;
        };
        let (severity, words) = match media {
            Media::Nvme => (Severity::Warning, "NVMe"),
            Media::SolidState => (Severity::Advice, "a drive that does not spin"),
            Media::SlowOrUnknown => continue,
        };
        if let FieldPath::Controller(number, _) = place {
            // The controller's disks share its thread, so one of them speaks for all.
            if std::mem::replace(&mut controllers_seen[number], true) {
                continue;
            }
        }
        let user = match place {
            FieldPath::Controller(..) => format!("the SCSI controller of `{}`", disk.name()),
            FieldPath::Disk(..)
            | FieldPath::Domain(_)
            | FieldPath::Image(..)
            | FieldPath::IoThread(..)
            | FieldPath::Iotune(..)
            | FieldPath::ThrottleGroup(..) => format!("`{}`", disk.name()),
        };
        let finding = report.finding(
            at,
            format!("{user} is served by QEMU's main loop, which may be slower than its storage"),
        );
        finding
            .severity(severity)
            .label("no iothread serves it")
            .note(format!("{path} is on {words}: {drive}"))
            .note(format!(
                "the guest's {vcpus} vCPUs share one thread for this disk with all other devices"
            ));
        match iothreads::next(domain) {
            Some(id) => finding
                .help(match context.taken_by {
                    TakenBy::Libvirt => format!(
                        "write <iothreads>{id}</iothreads> in the domain and iothread='{id}' on the driver of {user}"
                    ),
                    TakenBy::Qemu => format!(
                        "write -object iothread,id=iothread{id} and iothread=iothread{id} on the device of {user}"
                    ),
                })
                .fix(Fix::needs_consent([
                    Change::set(FieldPath::Domain(DomainField::IoThreads), id.to_string()),
                    Change::set(place, id.to_string()),
                ])),
            None => finding.help(format!("{} {user}", context.for_taker(
                "add an iothread to <iothreadids> and name it on the driver of",
                "write one more -object iothread and name it on the device of",
            ))),
        };
    }
}

/// Where the iothread would be written, if this disk could have one and has none.
fn place_for_iothread(domain: &Domain, index: usize, disk: &Disk) -> Option<FieldPath> {
    match disk.frontend.effective_device() {
        Device::Disk | Device::Lun => {}
        Device::Cdrom | Device::Floppy => return None,
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
        FrontendKind::VhostUserBlk
        | FrontendKind::Scsi
        | FrontendKind::Sata
        | FrontendKind::Ide
        | FrontendKind::Usb
        | FrontendKind::Fdc
        | FrontendKind::Nvme
        | FrontendKind::Sd
        | FrontendKind::Foreign => None,
    }
}
