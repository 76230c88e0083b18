//! `qcow2-lazy-refcounts`

use vmdisk_fields::{command, phrase};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The qcow2 image has lazy reference counts, so the first start after a crash checks and repairs the whole image.
    ///
    /// ## What it reports
    /// Reports an image with the feature `lazy_refcounts` whose disk does not use a write-through cache mode.
    ///
    /// ## Why it matters
    /// The feature saves updates of the reference counts at each flush, which is a gain only with
    /// `cache='writethrough'` or `'directsync'`. After a crash, the counts are wrong: QEMU reads all tables of the
    /// image and writes the counts again before the guest starts. The time grows with the image.
    ///
    /// ## Use instead
    /// Remove the feature while the guest is off: `qemu-img amend -o lazy_refcounts=off IMAGE`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/lazy.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap'/>
    ///   <source file='/srv/img/lazy.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "qcow2-lazy-refcounts",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("the first open after a kill: 44 reads, 8 writes and `Rebuilding refcount structure`; 10 reads and no writes without the feature", "strace of qemu-io, QEMU 7.2, an image with 3.9 GiB of data"),
        Evidence::Source("QEMU docs/interop/qcow2.txt: lazy refcounts; qemu-img(1): particularly interesting with cache=writethrough"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image, path) in host::kept(context) {
        let Some(header) = host::qcow2_header(context, image) else {
            continue;
        };
        let header = report.require(host::image_of(index), header).flatten();
        if context.host.is_none() {
            return;
        }
        let is_lazy = header.is_some_and(|header| header.lazy.is_true());
        if !is_lazy || !disk.backend.effective_cache().switches().write_cache {
            continue;
        }
        report
            .finding(
                host::image_of(index),
                phrase!("the image of {disk} has lazy reference counts"),
            )
            .label("after a crash, QEMU repairs the whole image before the guest starts")
            .help(phrase!(
                "with the guest off, run {command}",
                command = command("qemu-img amend -o lazy_refcounts=off", &[path]),
            ));
    }
}
