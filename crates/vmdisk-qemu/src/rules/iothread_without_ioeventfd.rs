//! `iothread-without-ioeventfd`

use vmdisk_model::{Change, ControllerField, DiskField, FieldPath, Switch, TargetBus};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::value::switch_of;

line_rule! {
    /// A device has an iothread, but `ioeventfd` is off.
    ///
    /// ## What it reports
    /// Reports ioeventfd off on a virtio disk or virtio-scsi controller with an iothread.
    ///
    /// ## Why it matters
    /// The iothread waits for an event that only ioeventfd sends. Without it, the vCPU thread processes the requests.
    /// libvirt defines the guest, and QEMU exits at start with `ioeventfd is required for iothread`.
    ///
    /// ## Use instead
    /// Remove `ioeventfd='off'`, which is rarely useful. Alternatively remove the iothread.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' iothread='1' ioeventfd='off'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' iothread='1'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1,ioeventfd=off
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' ioeventfd='off'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1
    /// ```
    name: "iothread-without-ioeventfd",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("ioeventfd is required for iothread", "hw/block/dataplane/virtio-blk.c, virtio_blk_data_plane_create"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.consumer == Consumer::Qemu {
        return;
    }
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let has_iothread = frontend.iothread.is_some() || !frontend.iothread_mapping.is_empty();
        let is_off = frontend.ioeventfd == Some(Switch::Off);
        if has_iothread && is_off && frontend.effective_bus() == TargetBus::Virtio {
            let at = FieldPath::Disk(index, DiskField::IoEventFd);
            report_off(report, at, &format!("`{}`", disk.name()));
        }
    }
    for (index, controller) in context.domain.controllers.iter().enumerate() {
        let has_iothread = controller.iothread.is_some() || !controller.iothread_mapping.is_empty();
        if has_iothread && controller.ioeventfd == Some(Switch::Off) {
            let at = FieldPath::Controller(index, ControllerField::IoEventFd);
            report_off(report, at, "the controller");
        }
    }
}

fn report_off(report: &mut Report, at: FieldPath, user: &str) {
    report
        .finding(
            at,
            format!("{user} has an iothread, but with ioeventfd='off' no request reaches it"),
        )
        .label("disables the notifications that the iothread waits for")
        .note("libvirt accepts it, but QEMU exits with `ioeventfd is required for iothread`")
        .help("remove ioeventfd, or the iothread")
        .fix(Fix::safe([Change::remove(at)]));
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if matches!(base_of(driver), "virtio-scsi" | "virtio-blk") {
            check_ioeventfd(line, report, option, device);
        }
    }
}

fn check_ioeventfd(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let thread = device.get("iothread");
    let has_thread = thread.is_some() || device.has_within("iothread-vq-mapping.");
    let off = device
        .get("ioeventfd")
        .filter(|it| switch_of(it.value.as_str()) == Some(Switch::Off));
    if let Some(off) = off.filter(|_| has_thread) {
        let message = "with ioeventfd=off the vCPU handles requests, so the iothread stays idle";
        let help = "remove ioeventfd=off, or the iothread";
        line.refuse(report, option, off.span, message, help);
    }
}
