//! `bfq-on-fast-media`

use std::collections::BTreeSet;

use vmdisk_facts::verdict::media::Media;
use vmdisk_facts::{BlockDevice, Fact};
use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// An NVMe or SATA SSD below a disk uses the I/O scheduler BFQ, which costs CPU time for each request.
    ///
    /// ## What it reports
    /// Reports a drive below a disk that is NVMe, or that does not rotate, with the scheduler `bfq`. Each drive is
    /// reported once.
    ///
    /// ## Why it matters
    /// BFQ shares a slow drive fairly between processes. It does more work for each request than a fast drive needs to
    /// serve it, under one lock for the whole drive, so the CPU and not the drive is the limit. Linux selects `none` for
    /// NVMe by default.
    ///
    /// ## Use instead
    /// Run `echo none > /sys/block/DRIVE/queue/scheduler`, and keep it with a udev rule. Keep BFQ only if you use its
    /// weights (`io.bfq.weight`) to share the drive.
    ///
    /// ## Reported
    /// ```xml,reported,facts-nvme-bfq
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "bfq-on-fast-media",
    group: Group::Performance,
    severity: Severity::Advice,
    is_about_host: true,
    evidence: &[
        Evidence::NotMeasuredHere("Linux Documentation/block/bfq-iosched.rst, on the limits of BFQ: overhead per request, and the highest rates it sustains on each CPU"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let what = "the drives under the images";
    for (index, .., path, facts) in host::kept_on(context, report, what, |_, _| true) {
        let at = host::image_of(index);
        let what = || format!("the drives under {path}");
        let drives = Context::known(facts.leaves_of(path), what);
        for drive in report.require(at, drives).flatten().unwrap_or_default() {
            if seen.insert(&drive.id) && is_fast_with_bfq(drive) {
                report_drive(report, index, drive);
            }
        }
    }
}

fn is_fast_with_bfq(drive: &BlockDevice) -> bool {
    let uses_bfq = drive.queue.scheduler.as_str() == Fact::Known("bfq");
    uses_bfq && Media::of(drive).is_ok_and(|media| media.is_fast() == Some(true))
}

fn report_drive(report: &mut Report, index: usize, drive: &BlockDevice) {
    let name = drive.name();
    let short = name.rsplit('/').next().unwrap_or("DRIVE");
    report
        .finding(
            host::image_of(index),
            phrase!(
                "{drive} below {disk} is fast and uses the scheduler BFQ",
                drive = name.to_string(),
            ),
        )
        .label("each request costs CPU time under one lock")
        .help(phrase!(
            "run {command}, and make it permanent with a udev rule",
            command = quoted(format!("echo none > /sys/block/{short}/queue/scheduler")),
        ));
}
