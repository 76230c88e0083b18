//! `web-source-writable`

use vmdisk_facts::{Answer, Capability};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{DiskField, FieldPath, FieldValue, Protocol};
use vmdisk_rule::{Confidence, Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A writable disk is a file on a web server, which QEMU can only read.
    ///
    /// ## What it reports
    /// Reports sources on http, https, ftp and ftps that are not read-only. It is a warning if the libvirt is 9.8 to
    /// 9.10, which let nbdkit serve the disk if it is installed, and if the version of libvirt is unknown. Since 10.0,
    /// libvirt uses nbdkit only with `storage_use_nbdkit = 1` in `qemu.conf`, or if its build enables it by default.
    ///
    /// ## Why it matters
    /// QEMU reads such files with libcurl, and cannot write them. It refuses to open them for writing, whatever the
    /// server permits, and the guest does not start.
    ///
    /// ## Use instead
    /// Add `<readonly/>` for an installation medium (`read-only=on` on command lines). For a disk that the guest
    /// writes, create an overlay with the web source as its backing image, or copy the image:
    /// `qemu-img convert -O qcow2 https://SERVER/IMAGE IMAGE.qcow2`.
    ///
    /// ## Reported
    /// ```xml,reported,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='https' name='images/tools.img'>
    ///     <host name='store.example' port='443'/>
    ///   </source>
    ///   <target dev='vdb' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=https,node-name=f0,url=https://store.example/images/tools.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0 \
    ///   -device virtio-blk-pci,drive=r0,id=vdb
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='https' name='images/tools.img'>
    ///     <host name='store.example' port='443'/>
    ///   </source>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// A backing image is only read:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <backingStore type='network'>
    ///     <format type='qcow2'/>
    ///     <source protocol='https' name='images/base.qcow2'>
    ///       <host name='store.example' port='443'/>
    ///     </source>
    ///     <backingStore/>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// With `snapshot=on`, QEMU writes to a temporary file:
    /// ```args,not-reported
    /// qemu-system-x86_64 -machine q35 \
    ///   -drive file=https://store.example/images/tools.qcow2,format=qcow2,if=virtio,snapshot=on
    /// ```
    name: "web-source-writable",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("curl driver does not support writes", "block/curl.c, curl_open"),
        Evidence::measured("with auto-read-only=on, which libvirt writes, the device says `Block node is read-only`", "QEMU 5.2, 7.2, 10.0 and 11.1 with a server on the same host"),
        Evidence::Source("libvirt NEWS 9.8.0: nbdkit serves http, ftp and ssh disks if it is available; 10.0.0: `storage_use_nbdkit`, off by default"),
        Evidence::Source("libvirt 11.3's test data has writable disks on web servers served by nbdkit"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let (severity, confidence, note) = what_happens(context);
    for (index, disk, image) in context.images() {
        let Protocol::Network(network) = &image.protocol else {
            continue;
        };
        // With `snapshot=on`, QEMU itself opens the source as the backing image of a temporary overlay.
        let is_overlaid = context.has_unflushed_overlay(disk);
        if !network.protocol.is_curl() || !disk.is_writable() || is_overlaid {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Source);
        let title = phrase!(
            "{disk} is writable, but QEMU only reads from {protocol}",
            protocol = network.protocol.to_string(),
        );
        report
            .finding(at, title)
            .label("opened for writing")
            .severity(severity)
            .confidence(confidence)
            .note(note)
            .help(phrase!(
                "use {read_only}, or use the source as the backing image of a local overlay",
                read_only = setting(FieldPath::Disk(index, DiskField::ReadOnly), FieldValue::Set),
            ));
    }
}

/// The result at the start of the guest, which depends on whether libvirt uses nbdkit instead of QEMU.
fn what_happens(context: &Context<'_>) -> (Severity, Confidence, &'static str) {
    let certain = (
        Severity::Error,
        Confidence::Certain,
        "the guest does not start",
    );
    if context.consumer == Consumer::Qemu {
        return certain;
    }
    match (
        context.can(Capability::LibvirtNbdkit),
        context.can(Capability::LibvirtNbdkitByDefault),
    ) {
        (Answer::No(_), _) => certain,
        (_, Answer::Yes(_)) => (
            Severity::Warning,
            Confidence::Assumed,
            "the guest does not start, unless nbdkit is installed, which libvirt 9.8 to 9.10 then use",
        ),
        (_, Answer::No(_)) => (
            Severity::Error,
            Confidence::Assumed,
            "the guest does not start, unless `storage_use_nbdkit` is enabled in qemu.conf",
        ),
        (_, Answer::Unknown) => (
            Severity::Warning,
            Confidence::Assumed,
            "the guest does not start, unless libvirt uses nbdkit: 9.8 to 9.10 do if it is installed, later ones if `storage_use_nbdkit` is enabled in qemu.conf",
        ),
    }
}
