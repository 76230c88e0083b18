//! `io-native-on-buffered-dio`

use vmdisk_facts::DirectIoEffect;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, Change, Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// Linux AIO (`io='native'`) blocks QEMU, because the file system buffers direct writes.
    ///
    /// ## What it reports
    /// Reports `io='native'` with `cache='none'` or `directsync` on a disk that the guest writes, if the file system
    /// accepts `O_DIRECT` but writes through the page cache: btrfs with checksums on current kernels, ext4 with
    /// `data=journal`, tmpfs, ZFS 0.8 to 2.2.
    ///
    /// ## Why it matters
    /// `io_submit` returns at once only for direct writes. A buffered write is carried out inside the call, and blocks
    /// the thread that serves all of the guest's disks (or all disks of one iothread): 74 µs for each submission on
    /// btrfs, 2 to 3 on XFS and ext4. With `threads`, another thread carries out the same write; the guest sees no
    /// difference.
    ///
    /// The cache mode does not bypass the page cache there either. `odirect-silently-buffered` and `btrfs-dio-buffered`
    /// report that.
    ///
    /// ## Use instead
    /// Use `io='threads'`. Alternatively move the image to a file system that supports `O_DIRECT`, such as XFS or ext4.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='threads'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "io-native-on-buffered-dio",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("mean time inside io_submit for a 4 KiB write: btrfs 74 µs, btrfs zstd 70, btrfs raid1 85, ext4 data=journal 39 \
                      (p99 66 ms); XFS 2, ext4 3", "measured for this project on Linux 6.18.44 with fio 3.33 and libaio on loop files, 5 s each"),
    ],
    // The useless O_DIRECT is reported at the same time, because its fix is a trade-off.
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_native = |disk: &Disk, _: &str| disk.backend.aio == Some(AioMode::Native);
    let found = host::written_directly(context, report, DiskField::Aio, is_native);
    for (index, _, path, direct) in found {
        let at = FieldPath::Disk(index, DiskField::Aio);
        // On older kernels btrfs is direct; another rule reports its wrong checksums.
        if !matches!(direct.verdict, DirectIoEffect::AcceptedButBuffered(_)) {
            continue;
        }
        report
            .finding(
                at,
                phrase!(
                    "{disk} sets {native} where O_DIRECT is ignored, so every write blocks QEMU's event loop",
                    native = setting(at, AioMode::Native),
                ),
            )
            .label("not asynchronous here")
            .related(FieldPath::Disk(index, DiskField::Cache), "does not bypass the host's page cache here")
            .note(host::because(path, &direct))
            .note("a buffered write runs inside io_submit: 74 µs each on btrfs, 2 on XFS")
            .help(phrase!(
                "use {threads}, or move the image to a file system that supports O_DIRECT",
                threads = setting(at, AioMode::Threads),
            ))
            .confidence(host::confidence(&direct))
            .fix(Fix::safe([Change::set(at, AioMode::Threads)]));
    }
}
