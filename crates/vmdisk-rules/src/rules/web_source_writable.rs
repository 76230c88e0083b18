//! `web-source-writable`

use vmdisk_facts::Version;
use vmdisk_fields::{DiskName, phrase, setting};
use vmdisk_model::{DiskField, FieldPath, FieldValue, Protocol};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, TakenBy, declare_rule};

/// Until this version libvirt is known to leave web servers to QEMU; some later one has nbdkit serve them.
const BEFORE_NBDKIT: Version = Version(9, 1, 0);

declare_rule! {
    /// A disk that the guest may write is a file on a web server.
    ///
    /// ## What it does
    /// Reports sources on http, https, ftp and ftps that are not read-only. It is a warning where the libvirt may be newer
    /// than 9.0, since newer ones may have nbdkit fetch them instead of QEMU.
    ///
    /// ## Why it matters
    /// QEMU reads such files with libcurl and cannot write them. It refuses to open them for writing, whatever the server
    /// allows, and the guest does not start.
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
    /// An image below another one is only read.
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
    pub(super) static RULE = {
        name: "web-source-writable",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "curl driver does not support writes",
                source: "block/curl.c, curl_open",
            },
            Evidence::Measured {
                figures: "with auto-read-only=on, which libvirt writes, the device says `Block node is read-only`",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 with a server on the same host",
            },
            Evidence::Source("libvirt 11.3's own test data has disks on web servers served by nbdkit, whose curl plugin writes; 9.0 knows no nbdkit"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let may_have_nbdkit = context.taken_by == TakenBy::Libvirt
        && context.libvirt_is_before(BEFORE_NBDKIT) != Some(true);
    for (index, disk, image) in context.images() {
        let Protocol::Network(network) = &image.protocol else {
            continue;
        };
        if !network.protocol.is_curl() || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Source);
        let title = phrase!(
            "{disk} is writable, but QEMU only reads from {protocol}",
            disk = DiskName(index),
            protocol = network.protocol.to_string(),
        );
        let finding = report.finding(at, title);
        finding.label("opened for writing").help(phrase!(
            "use {read_only}, or move the image to writable storage such as nbd",
            read_only = setting(FieldPath::Disk(index, DiskField::ReadOnly), FieldValue::Set),
        ));
        if may_have_nbdkit {
            finding
                .severity(Severity::Warning)
                .confidence(Confidence::Assumed)
                .note("the guest does not start, unless libvirt finds nbdkit and has it serve the disk");
        } else {
            finding.note("the guest does not start");
        }
    }
}
