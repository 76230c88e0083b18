//! `cache-writethrough`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{BackendSource, CacheMode, Change, Device, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::remedy;

declare_rule! {
    /// A disk uses `cache='writethrough'` or `directsync`, which flushes after every write.
    ///
    /// ## What it reports
    /// Reports `cache='writethrough'` and `cache='directsync'` on a disk that the guest can write. `writethrough=on` of a
    /// vhost-user export is not reported: it is the remedy of `vhost-user-flushes-lost`. With `-snapshot` or `snapshot=on`, QEMU
    /// ignores the flushes of its temporary overlay, and the disk is not reported. libvirt's overlay of a `<transient/>`
    /// disk has the cache mode of the disk.
    ///
    /// ## Why it matters
    /// A guest that flushes after each write, such as a database that commits one transaction at a time, sees no
    /// difference: it waits for the disk either way. For all other writes QEMU calls `fdatasync` after each one,
    /// although the guest did not request it. QEMU also hides the write cache, so the guest stops sending flushes.
    /// Without flushes from the guest, XFS reached 4559 sequential writes per second instead of 31372, ext4 3875
    /// instead of 29304, btrfs 732 instead of 7590 (`writethrough` against `writeback`).
    ///
    /// It is not safer than `writeback` or `none` for a guest that flushes, as all common systems have done since about
    /// 2010: such a guest's journal is on the disk when it must be.
    ///
    /// ## Use instead
    /// Use `cache='none'` or `cache='writeback'`. Keep `writethrough` for a guest that never flushes: an operating
    /// system older than that, or a file system mounted with `nobarrier` in the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writethrough'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writeback'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='directsync' io='native'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writeback'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// A disk with a temporary overlay of QEMU:
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -snapshot -drive file=/srv/img/web1.img,format=raw,if=virtio,cache=writethrough
    /// ```
    /// A read-only disk:
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw' cache='writethrough'/>
    ///   <source file='/srv/iso/install.iso'/>
    ///   <target dev='sda' bus='sata'/>
    /// </disk>
    /// ```
    name: "cache-writethrough",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("4 KiB writes in order a second, writethrough, none, writeback: XFS 4559, 15748, 31372; ext4 3875, 16096, 29304; \
                      btrfs 732, 10767, 7590. With a flush after each write none and writeback do what writethrough does", "measured for this project with qemu-img bench 7.2, one request at a time, Linux 6.18.44, medians of 3"),
        Evidence::measured("`write; write; flush; write`: writethrough and directsync call fdatasync after each write, none and writeback at the flush", "strace of qemu-io 7.2, Linux 6.18.44"),
        Evidence::measured("`snapshot=on,cache=writethrough` and `-snapshot`: query-block has no-flush=true for the overlay", "QEMU 7.2"),
        Evidence::measured("random 4 KiB writes against none, 32 requests in flight and no flush: writethrough 0.066 [0.046, 0.094], \
                      directsync 0.52 [0.42, 0.65]; one at a time with a flush after each: inconclusive", "fixtures/measurements/cache-flushes-storage-daemon.json, on a shared machine"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        // A passed-through logical unit has its own write cache.
        if !disk.is_writable() || disk.frontend.effective_device() != Device::Disk {
            continue;
        }
        // The guest of a vhost-user disk may never flush, which `vhost-user-flushes-lost` reports.
        if matches!(disk.backend.source, BackendSource::VhostUser(_)) {
            continue;
        }
        if context.has_unflushed_overlay(disk) {
            continue;
        }
        let mode = match disk.backend.cache {
            Some(mode @ (CacheMode::Writethrough | CacheMode::Directsync)) => mode,
            Some(CacheMode::None | CacheMode::Writeback | CacheMode::Unsafe) | None => continue,
        };
        let better = remedy::without_flush_per_write(mode);
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(
                at,
                phrase!("{disk} waits for the medium after every write: {cache}", cache = setting(at, mode)),
            )
            .label("QEMU calls fdatasync after each write")
            .note(phrase!("with {better} only the guest's own flushes wait for the medium", better = setting(at, better)))
            .note("measured on ext4: 3875 writes a second with writethrough, 29304 with writeback, 16096 with none")
            .help(phrase!(
                "use {better}, unless the guest never flushes (a system from before about 2010, or a file system mounted with `nobarrier`)",
                better = setting(at, better),
            ))
            .fix(Fix::needs_consent([Change::set(at, better)]));
    }
}
