//! `error-policy-ignore`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Change, DiskField, ErrorPolicy, FieldPath, ReadErrorPolicy};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk ignores I/O errors, so the guest loses data without an error.
    ///
    /// ## What it reports
    /// Reports `error_policy='ignore'` (`werror=ignore`) on a disk that the guest can write, and
    /// `rerror_policy='ignore'` (`rerror=ignore`) on any disk.
    ///
    /// ## Why it matters
    /// With `ignore`, QEMU reports a failed request to the guest as successful. A failed write is lost, and a later
    /// `fsync` in the guest returns 0. A failed read returns whatever is in the buffer. When the storage of a disk was
    /// full, a guest wrote 32 MiB with `dd conv=fsync` and got no error, and the data was gone. With `report`, the same
    /// command failed with I/O errors.
    ///
    /// ## Use instead
    /// Use `error_policy='enospace'`, which pauses the guest if the storage is full and reports every other error, or
    /// `report` or `stop`. Use `rerror_policy='report'` or `stop` for reads.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' error_policy='ignore'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' error_policy='enospace'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' error_policy='stop' rerror_policy='ignore'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// -blockdev driver=qcow2,node-name=d,file.driver=file,file.filename=/srv/web1.qcow2
    /// -device virtio-blk-pci,drive=d,id=disk,werror=ignore
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' error_policy='stop' rerror_policy='report'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "error-policy-ignore",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("`dd conv=fsync` of 32 MiB in the guest to a disk on a full tmpfs of 8 MiB: exit code 0 and 24 MiB gone with ignore, I/O errors with report", "QEMU 7.2 with virtio-blk, werror=ignore and werror=report"),
        Evidence::Source("QEMU hw/block/virtio-blk.c, virtio_blk_rw_complete: an ignored error completes the request with VIRTIO_BLK_S_OK"),
        Evidence::Source("libvirt docs/formatdomain.rst, error_policy and rerror_policy: reads use error_policy if rerror_policy is not set"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let writes = frontend.error_policy == Some(ErrorPolicy::Ignore) && disk.is_writable();
        let reads = frontend.read_error_policy == Some(ReadErrorPolicy::Ignore);
        if writes || reads {
            report_ignored(context, report, index, (writes, reads));
        }
    }
}

fn report_ignored(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    (writes, reads): (bool, bool),
) {
    let is_for_libvirt = context.consumer == Consumer::Libvirt;
    let policy_for_reads = context.domain.disks[index].frontend.read_error_policy;
    let write_at = FieldPath::Disk(index, DiskField::ErrorPolicy);
    let read_at = FieldPath::Disk(index, DiskField::ReadErrorPolicy);
    let mut changes = Vec::new();
    if writes {
        changes.push(Change::set(write_at, ErrorPolicy::Enospace));
    }
    if reads {
        changes.push(Change::set(read_at, ReadErrorPolicy::Report));
    }
    let what = match (writes, reads) {
        (true, true) => "write and read",
        (true, false) => "write",
        (false, _) => "read",
    };
    let finding = report.finding(
        if writes { write_at } else { read_at },
        phrase!("{disk} hides {what} errors from the guest", what),
    );
    finding.label("a failed request is reported as successful");
    if writes {
        finding.note("a failed write is lost, and the guest's next flush succeeds");
    }
    if writes && policy_for_reads.is_none() && is_for_libvirt {
        finding.note(phrase!(
            "libvirt uses the policy for reads too unless {report} is set",
            report = setting(read_at, ReadErrorPolicy::Report),
        ));
    }
    if reads {
        finding.note("a failed read returns the old content of the buffer");
    }
    finding.remedy(Fix::needs_consent(changes));
}
