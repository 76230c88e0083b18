//! `known-bad-build`

use vmdisk_facts::known_bad::{KnownBadRow, virtio_win_version};
use vmdisk_facts::{Answer, BlockKind, Bug, FsKind, Version};
use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{
    AioMode, Device, Discard, Disk, DiskField, FieldPath, FrontendKind, Image, ImageField,
    Protocol, Snapshot,
};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::chain::chains;
use crate::{host, iothreads};

declare_rule! {
    /// A disk uses a feature with a known bug in this version of QEMU, libvirt, Linux or virtio-win.
    ///
    /// ## What it reports
    /// Compares the configuration with a table of known-bad builds, which `vmdisk capabilities` prints. A row is
    /// reported only for a disk that uses the feature with the bug:
    ///
    /// - `io='io_uring'` in an iothread, QEMU 7.1.0;
    /// - `cache='none'` on bcachefs, QEMU up to 10.0;
    /// - internal snapshots, libvirt 11.2 and 11.3;
    /// - an overlay on an image with internal snapshots, libvirt 9.0 to 10.10;
    /// - `snapshot='external'`, libvirt before 11.10;
    /// - `io='io_uring'` above a logical volume, a ZFS volume, LUKS or a loop device, Linux 5.1 to 5.12;
    /// - `cache='none'` above a logical volume or LUKS, Linux 6.0.0 to 6.0.9 with QEMU before 7.2;
    /// - limits of a disk (`<iotune>`, `throttling.`), QEMU 9.1 and 10.0;
    /// - `io='io_uring'` on CIFS, Linux 5.15 and later;
    /// - a virtio disk in a guest with the driver image virtio-win 0.1.285 to 0.1.294;
    /// - `discard='unmap'` of a virtio disk in a guest with the driver image virtio-win up to 0.1.171, which has no TRIM.
    ///
    /// `qcow2-discard-corruption`, `image-size-unaligned` and `chain-too-long` report the other rows of the table.
    ///
    /// ## Why it matters
    /// The configuration is valid, and nothing reports the bug before it loses data, hangs the guest or fails. Few
    /// people read the release notes that describe it. A distribution can have backported a fix; the version number
    /// does not show that.
    ///
    /// ## Use instead
    /// Update the program to the version in the finding. If that is not possible, use what the finding suggests.
    ///
    /// ## Reported
    /// ```xml,reported,libvirt-11.3
    /// <disk type='file' device='disk' snapshot='internal'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,libvirt-11.9
    /// <disk type='file' device='disk' snapshot='external'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,qemu-7.1
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='io_uring' iothread='1'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,qemu-10.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <total_iops_sec>1000</total_iops_sec>
    ///   </iotune>
    /// </disk>
    /// ```
    /// The name of the driver image contains the version:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.285.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' discard='unmap'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.164.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.164.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,libvirt-11.4
    /// <disk type='file' device='disk' snapshot='internal'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,libvirt-11.3,qemu-7.1,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='io_uring'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>win1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/win1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/iso/virtio-win-0.1.271.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <readonly/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,kernel-6.0.2,qemu-6.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,kernel-6.0.2,qemu-7.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,kernel-6.0.2,qemu-6.2,facts-lvm-thin-64k
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without a target, because the version of libvirt is unknown:
    /// ```xml,not-checked
    /// <disk type='file' device='disk' snapshot='external'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "known-bad-build",
    group: Group::DataSafety,
    severity: Severity::Warning,
    is_about_host: true,
    evidence: &[
        Evidence::Source("openSUSE obs-build pull request 893 and QEMU issue 1193: iothreads with aio=io_uring hang in 7.1.0"),
        Evidence::Source("bcachefs issues 791 and 1095, bcachefs-tools pull request 653: writes with O_DIRECT below the block size fail with EINVAL"),
        Evidence::Source("libvirt NEWS 11.4.0: Fix failure when reverting to internal snapshots; a regression in 11.2 and 11.3"),
        Evidence::Source("libvirt NEWS 11.0.0: Fix snapshot to not delete disk image with internal snapshot"),
        Evidence::Source("libvirt NEWS 11.10.0: Incorrect permissions on images after external snapshot of an inactive VM"),
        Evidence::Cve("CVE-2025-13193"),
        Evidence::Source("Proxmox qemu-server Drive.pm, storage_allows_io_uring_default: problems with CIFS since kernel 5.15"),
        Evidence::Source("canonical/lxd issue 10061 and pull requests 9979 and 10064: guests on LVM, and on ZFS above LVM, hang with io_uring on Linux 5.4, not on 5.13"),
        Evidence::Source("pop-os/pop issue 2670, pve-edge-kernel issue 341: direct I/O on LUKS and LVM fails on Linux 6.0 with QEMU before 7.2"),
        Evidence::Source("QEMU issue 3144: throttled disks stop to answer on 9.1 and 10.0"),
        Evidence::Source("kvm-guest-drivers-windows issue 392 and pull request 399: viostor has no TRIM in 0.1.164"),
        Evidence::Source("kvm-guest-drivers-windows issue 1614: viostor corrupts the page file in 0.1.285, not in 0.1.271; fixed in build 295"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        io_uring_in_iothread(context, report, index, disk);
        io_uring_on_lvm(context, report, index, disk, image);
        direct_above_mapper(context, report, index, disk, image);
        io_uring_on_cifs(context, report, index, disk, image);
        bcachefs(context, report, index, disk, image);
        snapshot_of_disk(context, report, index, disk);
        throttled(context, report, index, disk);
    }
    overlays_on_snapshots(context, report);
    viostor(context, report);
}

/// The row of a bug that a target has or may have.
fn open_row(context: &Context<'_>, bug: Bug) -> Option<&'static KnownBadRow> {
    let answer = context.target.has_bug(bug);
    (!answer.is_no()).then(|| bug.row())
}

/// Reports that a disk uses a feature if the target has the bug, with the advice for hosts that cannot be updated; if the version is not known, reports that.
fn report_use(
    context: &Context<'_>,
    report: &mut Report,
    row: &KnownBadRow,
    at: FieldPath,
    instead: Phrase,
) {
    let program = row.program.name();
    match (
        context.target.version_of(row.program),
        context.target.has_bug(row.bug),
    ) {
        (_, Answer::No(_)) => {}
        (Some(version), Answer::Yes(_)) => report_bug(report, row, version, at, instead),
        (Some(version), Answer::Unknown) => {
            let why = format!("{program} {version} was not tried");
            let what = format!("the bug `{}`", row.name);
            report.not_checked(at, Missing::new(what, why));
        }
        (None, _) => {
            let what = format!("the version of {program}");
            report.not_checked(at, Missing::new(what, "the target does not set it"));
        }
    }
}

/// Reports a disk that uses io_uring, with the advice to use threads.
fn advise_threads(context: &Context<'_>, report: &mut Report, row: &KnownBadRow, disk: usize) {
    let at = FieldPath::Disk(disk, DiskField::Aio);
    let instead = phrase!("use {threads}", threads = setting(at, AioMode::Threads));
    report_use(context, report, row, at, instead);
}

fn report_bug(
    report: &mut Report,
    row: &KnownBadRow,
    version: Version,
    at: FieldPath,
    instead: Phrase,
) {
    let program = row.program.name();
    let fix = row.fix();
    let finding = report.finding(
        at,
        phrase!(
            "{disk} is affected by a bug of {program} {version}: {bug}",
            program,
            version = version.to_string(),
            bug = in_sentence(row.about),
        ),
    );
    finding
        .label("uses the feature with the bug")
        .confidence(Confidence::Assumed)
        .severity(severity(row.bug));
    match fix {
        Some(fix) => finding
            .note(format!(
                "fixed in {program} {fix}; distributions may have backported the fix"
            ))
            .help(phrase!(
                "update {program}, or {instead}",
                program,
                instead = instead
            )),
        None => finding
            .note(format!("no {program} with a fix is known"))
            .help(instead),
    };
}

/// Turns a sentence into the end of another sentence.
fn in_sentence(about: &str) -> String {
    let mut letters = about.trim_end_matches('.').chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Errors for guests that hang, cannot write or lose a whole image.
const fn severity(bug: Bug) -> Severity {
    match bug {
        Bug::IoUringInIothread
        | Bug::BcachefsWriteAlignment
        | Bug::IoUringOnLvm
        | Bug::DirectIoMemoryAlignment
        | Bug::SnapshotDeletesImage => Severity::Error,
        Bug::InternalSnapshotRevert
        | Bug::ThrottleStall
        | Bug::ViostorNoTrim
        | Bug::WorldReadableOverlay
        | Bug::IoUringOnCifs
        | Bug::ViostorPagefile
        // Reported by the rules qcow2-discard-corruption, image-size-unaligned and chain-too-long.
        | Bug::Qcow2DiscardDuringCow
        | Bug::RawEndUnaligned
        | Bug::DeepChain => Severity::Warning,
    }
}

fn io_uring_in_iothread(context: &Context<'_>, report: &mut Report, index: usize, disk: &Disk) {
    let Some(row) = open_row(context, Bug::IoUringInIothread) else {
        return;
    };
    let controller = iothreads::virtio_scsi_of(context.domain, disk);
    let is_in_iothread = iothreads::of_disk(disk).next().is_some()
        || controller.is_some_and(|(_, it)| iothreads::of_controller(it).next().is_some());
    if disk.backend.aio != Some(AioMode::IoUring) || !is_in_iothread {
        return;
    }
    advise_threads(context, report, row, index);
}

/// io_uring above a device that hangs with it, at any depth.
fn io_uring_on_lvm(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    image: &Image,
) {
    let Some(row) = open_row(context, Bug::IoUringOnLvm) else {
        return;
    };
    let (Some(AioMode::IoUring), Some(path)) = (disk.backend.aio, image.host_path()) else {
        return;
    };
    let at = FieldPath::Disk(index, DiskField::Aio);
    let hangs =
        |kind: &BlockKind| is_mapped(kind) || matches!(kind, BlockKind::Zvol | BlockKind::Loop);
    if is_above(context, report, at, path, hangs) {
        advise_threads(context, report, row, index);
    }
}

fn is_mapped(kind: &BlockKind) -> bool {
    kind.is_lvm() || kind.is_crypt()
}

/// True if a device of a kind is under a path, at any depth; unknown devices are reported as not checked.
fn is_above(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    path: &str,
    is_of_kind: impl Fn(&BlockKind) -> bool,
) -> bool {
    let devices = context
        .host(|| format!("the devices under {path}"))
        .and_then(|facts| host::devices_under(facts, path));
    let devices = report.require(at, devices);
    devices.is_some_and(|all| all.iter().any(|device| is_of_kind(&device.kind)))
}

/// Direct I/O above device mapper, with a QEMU that detects the alignment wrongly.
fn direct_above_mapper(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    image: &Image,
) {
    // Without a kernel, nothing is said: the bug was in ten releases.
    let has_bug = context
        .target
        .has_bug(Bug::DirectIoMemoryAlignment)
        .is_yes();
    let is_detected = context.target.qemu.is_some_and(|it| it >= Version(7, 2, 0));
    let Some(path) = image.host_path().filter(|_| has_bug && !is_detected) else {
        return;
    };
    let at = FieldPath::Disk(index, DiskField::Cache);
    if disk.backend.is_direct() && is_above(context, report, at, path, is_mapped) {
        let writeback = setting(at, vmdisk_model::CacheMode::Writeback);
        let row = Bug::DirectIoMemoryAlignment.row();
        report_use(
            context,
            report,
            row,
            at,
            phrase!("use {writeback}", writeback),
        );
    }
}

/// Disks with limits.
fn throttled(context: &Context<'_>, report: &mut Report, index: usize, disk: &Disk) {
    let Some(row) = open_row(context, Bug::ThrottleStall) else {
        return;
    };
    // Without a target, nothing is said: the bug is rare, and many disks have limits.
    let is_limited = disk.backend.iotune.is_some() || !disk.backend.throttle_filters.is_empty();
    if is_limited && context.target.qemu.is_some() {
        let at = FieldPath::Disk(index, DiskField::Iotune);
        let instead =
            "watch the guest for I/O that does not return, and remove the limits if it happens"
                .into();
        report_use(context, report, row, at, instead);
    }
}

fn io_uring_on_cifs(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    image: &Image,
) {
    let Some(row) = open_row(context, Bug::IoUringOnCifs) else {
        return;
    };
    if disk.backend.aio != Some(AioMode::IoUring) {
        return;
    }
    let at = FieldPath::Disk(index, DiskField::Aio);
    if is_on(context, report, at, image, &FsKind::Cifs) {
        advise_threads(context, report, row, index);
    }
}

fn bcachefs(context: &Context<'_>, report: &mut Report, index: usize, disk: &Disk, image: &Image) {
    let Some(row) = open_row(context, Bug::BcachefsWriteAlignment) else {
        return;
    };
    if !disk.backend.is_direct() || !disk.is_writable() {
        return;
    }
    let at = FieldPath::Disk(index, DiskField::Cache);
    if is_on(context, report, at, image, &FsKind::Bcachefs) {
        let writeback = setting(at, vmdisk_model::CacheMode::Writeback);
        let instead = phrase!("use {writeback}", writeback);
        report_use(context, report, row, at, instead);
    }
}

/// True if an image is a file on a kind of file system; an unknown file system is reported as not checked.
fn is_on(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    image: &Image,
    kind: &FsKind,
) -> bool {
    let Protocol::File { path, .. } = &image.protocol else {
        return false;
    };
    let what = || format!("the file system of {path}");
    let filesystem = context
        .host(what)
        .and_then(|host| Context::known(host.filesystem_of(path), what));
    let filesystem = report.require(at, filesystem).flatten();
    filesystem.is_some_and(|filesystem| filesystem.kind == *kind)
}

fn snapshot_of_disk(context: &Context<'_>, report: &mut Report, index: usize, disk: &Disk) {
    if !context.is_for_libvirt() {
        return;
    }
    let at = FieldPath::Disk(index, DiskField::Snapshot);
    let (bug, instead) = match disk.backend.snapshot {
        Some(Snapshot::Internal) => (
            Bug::InternalSnapshotRevert,
            phrase!("use {external}", external = setting(at, Snapshot::External)),
        ),
        Some(Snapshot::External) => (
            Bug::WorldReadableOverlay,
            Phrase::from(
                "run `chmod 600` on the overlay after each snapshot of the inactive guest",
            ),
        ),
        Some(Snapshot::No | Snapshot::Manual) | None => return,
    };
    if let Some(row) = open_row(context, bug) {
        report_use(context, report, row, at, instead);
    }
}

/// Overlays above an image that has internal snapshots.
fn overlays_on_snapshots(context: &Context<'_>, report: &mut Report) {
    let Some(row) =
        open_row(context, Bug::SnapshotDeletesImage).filter(|_| context.is_for_libvirt())
    else {
        return;
    };
    for chain in chains(context) {
        if let Some(missing) = chain.unknown() {
            report.not_checked(chain.at(), missing.clone());
        }
        let has_snapshots = chain
            .layers
            .iter()
            .skip(usize::from(chain.written_above == 0))
            .filter_map(|layer| layer.header)
            .any(|header| header.snapshots.value().is_some_and(|count| *count > 0));
        if has_snapshots {
            let instead = "copy the image before you delete a snapshot".into();
            let disk = chain.index;
            let at = FieldPath::Image(disk, 0, ImageField::Path);
            report_use(context, report, row, at, instead);
        }
    }
}

/// Disks of the virtio-blk driver in a guest that has a driver image with the bug.
fn viostor(context: &Context<'_>, report: &mut Report) {
    let Some(version) = context.images().find_map(|(_, disk, image)| {
        let is_cdrom = disk.frontend.effective_device() == Device::Cdrom;
        let name = image.host_path()?.rsplit('/').next()?;
        virtio_win_version(name).filter(|_| is_cdrom)
    }) else {
        return;
    };
    let rows = [
        (
            Bug::ViostorPagefile,
            DiskField::TargetBus,
            "install the drivers of 0.1.271 in the guest",
        ),
        (
            Bug::ViostorNoTrim,
            DiskField::Discard,
            "use bus `scsi` with a virtio-scsi controller, whose driver has TRIM",
        ),
    ];
    for (bug, field, instead) in rows {
        let row = bug.row();
        let trims = |disk: &Disk| disk.backend.discard == Some(Discard::Unmap);
        let is_met = |disk: &Disk| {
            let is_virtio_blk = context.domain.frontend_kind(disk) == FrontendKind::VirtioBlk;
            is_virtio_blk && (field != DiskField::Discard || trims(disk))
        };
        let met = context.disks().find(|(_, disk)| is_met(disk));
        if let Some((disk, _)) = met.filter(|_| row.answer(version).is_yes()) {
            let at = FieldPath::Disk(disk, field);
            let instead = instead.into();
            report_bug(report, row, version, at, instead);
        }
    }
}
