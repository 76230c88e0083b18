//! `node-on-two-iothreads`

use std::collections::HashMap;
use vmdisk_facts::{Capability, Version};
use vmdisk_rule::{Evidence, Group, Missing, Report, Severity};

use super::line::{Line, line_rule};
use super::second_users::{SecondUse, second_users};
use crate::members::Members;

line_rule! {
    /// Devices in different iothreads share one node, which QEMU 5.2 and 7.2 refuse.
    ///
    /// ## What it reports
    /// Reports two devices that share a node (`share-rw=on`, or read-only) if they run in different iothreads, or only
    /// one of them runs in an iothread. The thread of a SCSI disk is the thread of its controller.
    ///
    /// ## Why it matters
    /// In QEMU 5.2 and 7.2 a node belongs to one event loop. QEMU exits at start with
    /// `Cannot change iothread of active block backend`. QEMU 10.0 and later allow several threads for one node. The
    /// versions in between have not been tried, and the rule does not check them.
    ///
    /// ## Use instead
    /// Run both devices in the same iothread, or use QEMU 10.0 or later.
    ///
    /// ## Reported
    /// ```args,reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,qemu-7.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io0 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    /// ```args,not-reported,qemu-10.0
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    /// Not checked without a version of QEMU:
    /// ```args,not-checked
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0 -object iothread,id=io1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 \
    ///   -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on
    /// ```
    name: "node-on-two-iothreads",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by("QEMU 5.2 and 7.2", "Cannot change iothread of active block backend", "block/block-backend.c"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let is_supported = line.context.target.can(Capability::NodeOnSeveralIothreads);
    if is_supported.is_yes() {
        return;
    }
    let threads = threads_of_controllers(line);
    for second in second_users(line).iter().filter(|it| it.is_shared) {
        let SecondUse {
            option,
            device,
            drive,
            first: Some(first),
            ..
        } = second
        else {
            continue;
        };
        let (own, others) = (thread_of(*device, &threads), thread_of(*first, &threads));
        if own == others {
            continue;
        }
        if !is_supported.is_no() {
            report.not_checked(line.owner(*option), untried(line.context.target.qemu));
            continue;
        }
        let word = |thread: Option<&str>| match thread {
            Some(thread) => format!("iothread `{thread}`"),
            None => "the main loop".to_owned(),
        };
        let message = format!(
            "`{}` is used in {} and in {}, which requires QEMU 10.0",
            drive.value.as_str(),
            word(others),
            word(own)
        );
        let help = "run both devices in the same iothread, or use QEMU 10.0 or later";
        line.refuse(report, *option, drive.span, message, help);
    }
}

fn untried(qemu: Option<Version>) -> Missing {
    let why = match qemu {
        Some(qemu) => format!("QEMU {qemu} was not tried"),
        None => Missing::NO_QEMU.to_owned(),
    };
    Missing::new("whether this QEMU supports one node in two iothreads", why)
}

/// The iothreads of controllers, by id of the controller.
fn threads_of_controllers<'a>(line: &Line<'a>) -> HashMap<&'a str, &'a str> {
    let text = |device: Members<'a>, key| Some(device.get(key)?.value.as_str());
    line.index
        .devices()
        .filter_map(|(_, _, device)| Some((text(device, "id")?, text(device, "iothread")?)))
        .collect()
}

/// The iothread that a device runs in: its own or its controller's; `None` for the main loop.
fn thread_of<'a>(device: Members<'a>, threads: &HashMap<&'a str, &'a str>) -> Option<&'a str> {
    if let Some(own) = device.get("iothread") {
        return Some(own.value.as_str());
    }
    let bus = device.get("bus")?.value.as_str();
    let owner = bus.rsplit_once('.').map_or(bus, |(owner, _)| owner);
    threads.get(owner).copied()
}
