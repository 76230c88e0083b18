//! `aio-slots-exhausted`

use vmdisk_facts::verdict::aio::{AioSlots, SLOTS_OF_THREAD};
use vmdisk_facts::{Answer, Capability};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, DiskField, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::aio;

declare_rule! {
    /// The disks with `io='native'` need more Linux AIO slots than the host has.
    ///
    /// ## What it reports
    /// Reports a guest that needs more slots than `fs.aio-max-nr`, the limit for all processes of the host. Each thread
    /// in which disks with `io='native'` run reserves 1024 slots: the iothreads assigned to them or to their
    /// controllers, and QEMU's main loop for the others. The slots in use at the moment (`fs.aio-nr`) are not counted,
    /// because they change all the time.
    ///
    /// ## Why it matters
    /// The default limit of 65536 is enough for 64 threads on the whole host. Without free slots, QEMU 5.2 and 7.2 do
    /// not start. QEMU 10.0 and 11.1 start, log `Unable to use Linux AIO, falling back to thread pool` at the first
    /// request, and use threads instead. The guest then is slower than on other hosts, with no other sign of it.
    ///
    /// ## Use instead
    /// Raise the limit on the host and make it permanent in `/etc/sysctl.d`: `sysctl fs.aio-max-nr=1048576`.
    /// Alternatively use fewer iothreads, or `io='io_uring'`, which does not use these slots.
    ///
    /// ## Reported
    /// ```xml,reported,facts-aio-slots-few
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>2</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' iothread='2'/>
    ///       <source file='/srv/img/web1-data.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-aio-slots-few
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>
    ///       <source file='/srv/img/web1-data.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "aio-slots-exhausted",
    group: Group::Startup,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::measured("each thread calls io_setup(1024); denied, QEMU 5.2 and 7.2 exit, 10.0 and 11.1 start", "QEMU 5.2, 7.2, 10.0 and 11.1 with io_setup failing with EAGAIN, tests/tests/qemu_refuses/denied.rs"),
        Evidence::Source("Linux Documentation/admin-guide/sysctl/fs.rst, aio-nr and aio-max-nr: io_setup fails with EAGAIN; fs/aio.c, aio_max_nr: 65536"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let Some((index, threads)) = aio::threads(context) else {
        return;
    };
    let at = FieldPath::Disk(index, DiskField::Aio);
    let slots = context
        .host(|| "fs.aio-max-nr".to_owned())
        .and_then(|host| AioSlots::of(host.facts(), threads));
    let Some(Some(slots)) = report.require(at, slots) else {
        return;
    };
    if !slots.are_too_few() {
        return;
    }
    let AioSlots { needed, most, .. } = slots;
    let title = phrase!(
        "the disks with {native} need {needed} slots for Linux AIO, but the host has {most}",
        native = setting(at, AioMode::Native),
        needed,
        most,
    );
    let s = if threads == 1 { "" } else { "s" };
    let finding = report.finding(at, title);
    finding
        .label(phrase!("{disk} is the first of them"))
        .note(format!("{threads} thread{s} with {SLOTS_OF_THREAD} slots each"))
        .help(phrase!(
            "raise `fs.aio-max-nr` on the host to {slots} or more, use fewer iothreads for the disks, or use {io_uring}",
            slots = needed.max(most.saturating_mul(2)),
            io_uring = setting(at, AioMode::IoUring),
        ));
    let (severity, confidence) = match context.target.can(Capability::NativeAioFallsBack) {
        Answer::Yes(_) => (Severity::Warning, Confidence::Certain),
        Answer::No(_) => (Severity::Error, Confidence::Certain),
        Answer::Unknown => (Severity::Error, Confidence::Assumed),
    };
    finding.severity(severity).confidence(confidence);
}
