//! `native-without-direct`

use vmdisk_facts::Verdict;
use vmdisk_fields::{DiskName, phrase, setting};
use vmdisk_model::{AioMode, BackendSource, CacheMode, Change, Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A disk asks for Linux AIO without `O_DIRECT`.
    ///
    /// ## What it does
    /// Reports `io='native'` where the cache mode is not written as `none` or `directsync`.
    ///
    /// ## Why it matters
    /// Linux AIO is asynchronous only for files opened with `O_DIRECT`. libvirt refuses to define the guest,
    /// for CD drives and shareable disks too: that it would take `none` for a shareable disk later
    /// does not count. QEMU started by hand refuses as well, since 2.6.
    ///
    /// Where nothing is written for `cache`, `none` is what `native` was meant for. Where another mode is
    /// written, the fix keeps it and gives up `native`: the guest depends on the cache mode, and does not see
    /// how requests reach the host.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' io='native'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' io='native' cache='none'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback' io='native'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback' io='threads'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Where the host's file system does no direct I/O, `none` would be no remedy.
    /// ```xml,reported,facts-tmpfs
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' io='native'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' io='threads' cache='writeback'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='directsync' io='native'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// io_uring works with every cache mode.
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "native-without-direct",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("io='…' needs either no disk cache or directsync cache mode", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend; also for a shareable disk"),
            Evidence::Refused {
                by: "QEMU 5.2, 7.2, 10.0 and 11.1",
                text: "aio=native was specified, but it requires cache.direct=on, which was not specified.",
                source: "block/file-posix.c, raw_open_common",
            },
        ],
        supersedes: &["cache-implicit"],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_refused = disk.backend.aio == Some(AioMode::Native)
            && match disk.backend.cache {
                Some(CacheMode::None | CacheMode::Directsync) => false,
                Some(CacheMode::Writeback | CacheMode::Writethrough | CacheMode::Unsafe) | None => {
                    true
                }
            };
        // A vhost-user disk has no host I/O of QEMU's at all, which libvirt refuses first.
        if !is_refused || matches!(disk.backend.source, BackendSource::VhostUser(_)) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let cache = FieldPath::Disk(index, DiskField::Cache);
        let native = setting(at, AioMode::Native);
        let threads = setting(at, AioMode::Threads);
        let none = setting(cache, CacheMode::None);
        let finding = report.finding(
            at,
            match disk.backend.cache {
                Some(mode) => phrase!(
                    "{disk} sets {native} with {cache}, which is refused",
                    disk = DiskName(index),
                    native,
                    cache = setting(cache, mode),
                ),
                None => phrase!(
                    "{disk} sets {native} without {none}, which is refused",
                    disk = DiskName(index),
                    native,
                    none = none.clone(),
                ),
            },
        );
        finding
            .label("Linux AIO needs O_DIRECT")
            .note(context.for_taker(
                "libvirt: `io='native' needs either no disk cache or directsync cache mode`",
                "QEMU: `aio=native was specified, but it requires cache.direct=on, which was not specified`",
            ));
        if let Some(mode) = disk.backend.cache {
            finding
                .related(cache, "uses the host's page cache")
                .help(phrase!(
                    "use {threads}, which the guest does not see, or {none} if {mode} is not needed",
                    threads,
                    none,
                    mode = mode.as_wire(),
                ))
                .fix(Fix::safe([Change::set(at, AioMode::Threads)]));
        } else if let Some(why) = why_not_direct(context, disk) {
            let mut changes = vec![Change::set(at, AioMode::Threads)];
            // What QEMU uses then is written, or `cache-implicit` would ask for it next.
            if !disk.backend.is_shareable {
                changes.push(Change::set(cache, CacheMode::Writeback));
            }
            finding
                .note(why)
                .note("direct I/O is not available where the image is stored")
                .remedy(Fix::safe(changes));
        } else {
            finding
                .help(phrase!(
                    "add {none}, or use {threads} to keep the page cache",
                    none,
                    threads
                ))
                .fix(Fix::safe([Change::set(cache, CacheMode::None)]));
        }
    }
}

/// What is known against `O_DIRECT` where the image lies; `None` if nothing is.
fn why_not_direct(context: &Context<'_>, disk: &Disk) -> Option<String> {
    let image = disk.backend.image()?;
    let direct = host::direct_io(context, image)?.ok()?;
    match direct.verdict {
        Verdict::Direct => None,
        _ => Some(host::because(image.host_path()?, &direct)),
    }
}
