//! `native-without-direct`

use vmdisk_facts::DirectIoEffect;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, BackendSource, CacheMode, Change, Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use super::aio_ignored::without_engine;
use crate::host;

declare_rule! {
    /// A disk uses `io='native'` without `O_DIRECT`, which libvirt and QEMU refuse.
    ///
    /// ## What it reports
    /// Reports `io='native'` (`aio=native`) if the cache mode is not set to `none` or `directsync`.
    ///
    /// ## Why it matters
    /// Linux AIO is asynchronous only for files opened with `O_DIRECT`. libvirt refuses to define the guest. This
    /// includes CD drives, and shareable disks, for which libvirt would otherwise use `none`. QEMU refuses it since
    /// 2.6.
    ///
    /// ## Use instead
    /// If no cache mode is set, use `cache='none'`. If a cached mode is set on purpose, use `io='threads'`: the guest
    /// depends on the cache mode, but does not see how requests reach the host. Also use `io='threads'` on a file
    /// system without direct I/O.
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
    /// If the host's file system does not support direct I/O, the fix does not use `none`:
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
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='directsync' io='native'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// io_uring works with every cache mode:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "native-without-direct",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("io='…' needs either no disk cache or directsync cache mode", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend; also for a shareable disk"),
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "aio=native was specified, but it requires cache.direct=on, which was not specified.", "block/file-posix.c, raw_open_common"),
    ],
    supersedes: &["cache-implicit"],
    check: Model(check),
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
        // QEMU does no host I/O for a vhost-user disk; `vhost-user-option-refused` reports it.
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
                    native,
                    cache = setting(cache, mode),
                ),
                None => phrase!(
                    "{disk} sets {native} without {none}, which is refused",
                    native,
                    none = none.clone(),
                ),
            },
        );
        finding
            .label("Linux AIO needs O_DIRECT")
            .note(context.for_consumer(
                "libvirt: `io='native' needs either no disk cache or directsync cache mode`",
                "QEMU: `aio=native was specified, but it requires cache.direct=on, which was not specified`",
            ));
        let image = disk.backend.image();
        if context.is_for_libvirt()
            && image.is_some_and(|image| without_engine(&image.protocol).is_some())
        {
            // `aio-ignored` removes it.
            finding.help(phrase!(
                "remove {native}",
                native = setting(at, AioMode::Native)
            ));
            continue;
        }
        if let Some(mode) = disk.backend.cache {
            finding
                .related(cache, "uses the host's page cache")
                .help(phrase!(
                    "use {threads}, which the guest does not see, or {none} if {mode} is not needed",
                    threads,
                    none,
                    mode = mode.as_str(),
                ))
                .fix(Fix::safe([Change::set(at, AioMode::Threads)]));
        } else if let Some(why) = why_not_direct(context, disk) {
            let mut changes = vec![Change::set(at, AioMode::Threads)];
            // Sets QEMU's default explicitly, so that `cache-implicit` does not report the result.
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

/// The facts that rule out `O_DIRECT` for the image, if there are any.
fn why_not_direct(context: &Context<'_>, disk: &Disk) -> Option<String> {
    let image = disk.backend.image()?;
    let direct = host::direct_io(context, image)?.ok()?;
    match direct.verdict {
        DirectIoEffect::Direct => None,
        _ => Some(host::because(image.host_path()?, &direct)),
    }
}
