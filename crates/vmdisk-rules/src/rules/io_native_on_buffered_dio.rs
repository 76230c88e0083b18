//! `io-native-on-buffered-dio`

use vmdisk_facts::Verdict;
use vmdisk_model::{AioMode, Change, Disk, DiskField, FieldPath};

use crate::host::{self, WrittenDirectly};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk uses Linux AIO where it cannot be asynchronous, and blocks QEMU's event loop.
    ///
    /// ## What it does
    /// Reports `io='native'` with `cache='none'` or `directsync` on a disk the guest writes, where the file
    /// system takes `O_DIRECT` and writes through the page cache all the same: btrfs with checksums on
    /// current kernels, ext4 with `data=journal`, tmpfs, ZFS before 2.3.
    ///
    /// ## Why it matters
    /// `io_submit` returns at once only if the write really is direct. A buffered one is carried out inside
    /// the call, and the thread that called is the one that serves all of the guest's disks (or all on one
    /// iothread): 74 µs for each submission on btrfs, 2 to 3 on XFS and ext4. `threads` carries the same
    /// write out on a thread of its own; the guest does not see the difference.
    ///
    /// The cache mode does not keep its promise there either. `odirect-silently-buffered` and
    /// `btrfs-dio-buffered` tell what to do about that, and stay silent while this rule speaks.
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
    /// Without facts there is no telling.
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
    pub(super) static RULE = {
        name: "io-native-on-buffered-dio",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "mean time inside io_submit for a 4 KiB write: btrfs 74 µs, btrfs zstd 70, btrfs raid1 85, ext4 data=journal 39 \
                          (p99 66 ms); XFS 2, ext4 3",
                how: "measured for this project on Linux 6.18.44 with fio 3.33 and libaio on loop files, 5 s each",
            },
        ],
        // That O_DIRECT is of no use here is a question of its own, and its answer a trade: it is asked at once, and
        // not only after the safe fix of this.
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_native = |disk: &Disk| disk.backend.aio == Some(AioMode::Native);
    for found in host::written_directly(context, report, DiskField::Aio, is_native) {
        let WrittenDirectly {
            index,
            disk,
            path,
            direct,
        } = found;
        let at = FieldPath::Disk(index, DiskField::Aio);
        match direct.verdict {
            Verdict::AcceptedButBuffered(_) => {}
            // btrfs on older kernels is direct, and its wrong checksums are the trouble to speak of.
            Verdict::Unsupported
            | Verdict::Direct
            | Verdict::DirectUnstableChecksums
            | Verdict::DirectUnstableMirrors => continue,
        }
        report
            .finding(
                at,
                format!(
                    "`{}` has io='native' where O_DIRECT is ignored, so every write blocks QEMU's event loop",
                    disk.name()
                ),
            )
            .label("not asynchronous here")
            .related(FieldPath::Disk(index, DiskField::Cache), "does not bypass the host's page cache here")
            .note(host::because(path, &direct))
            .note("a buffered write is carried out inside io_submit: 74 µs each on btrfs, 2 on XFS")
            .help("write io='threads', or put the image where O_DIRECT is done")
            .confidence(host::confidence(&direct))
            .fix(Fix::safe([Change::set(at, AioMode::Threads.as_wire())]));
    }
}
