//! `aio-ignored`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Change, DiskField, FieldPath, Protocol, TargetBus};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The I/O engine (`io`) has no effect on this kind of source.
    ///
    /// ## What it reports
    /// Reports `io` on disks whose source is on the network, a directory, an NVMe controller or a vhost-vdpa device.
    ///
    /// ## Why it matters
    /// Only QEMU's drivers for files and host devices have a selectable I/O engine. libvirt accepts the attribute,
    /// shows it in `virsh dumpxml`, and leaves it out of QEMU's command line. It prints no error or log message, so the
    /// setting looks effective but is not.
    ///
    /// ## Use instead
    /// Remove the attribute. To check what reaches QEMU, run `virsh domxml-to-native qemu-argv --domain GUEST` and look
    /// for `aio`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example' port='10809'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example' port='10809'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "aio-ignored",
    group: Group::Clarity,
    severity: Severity::Warning,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("for a disk with io='native', `domxml-to-native` prints `aio` if it is on a file, and not if it is on nbd", "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs"),
        Evidence::Source("libvirt src/qemu/qemu_block.c, qemuBlockStorageSourceGetFileProps: for blockdev, only this function writes `aio`; src/qemu/qemu_command.c, qemuBuildDriveStr, writes it for bus='sd'"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let (Some(aio), Some(source)) = (disk.backend.aio, without_engine(&image.protocol)) else {
            continue;
        };
        // libvirt describes SD cards with -drive, whose `aio` does not depend on the source.
        if disk.frontend.effective_bus() == TargetBus::Sd {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        report
            .finding(
                at,
                phrase!(
                    "{disk} sets {aio}, which libvirt does not pass to QEMU for {source}",
                    aio = setting(at, aio),
                    source,
                ),
            )
            .label("has no effect")
            .note("QEMU's driver for that source does its own I/O")
            .remedy(Fix::safe([Change::remove(at)]));
    }
}

/// The type of the source, if libvirt passes no I/O engine to it.
pub(super) fn without_engine(protocol: &Protocol) -> Option<String> {
    match protocol {
        Protocol::Network(network) => Some(format!("a source on {}", network.protocol)),
        Protocol::Nvme(_) => Some("an NVMe controller".to_owned()),
        Protocol::Directory { .. } => Some("a directory".to_owned()),
        Protocol::VhostVdpa { .. } => Some("a vhost-vdpa device".to_owned()),
        // libvirt resolves a volume only when the guest starts.
        _ => None,
    }
}
