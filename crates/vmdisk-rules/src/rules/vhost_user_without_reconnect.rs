//! `vhost-user-without-reconnect`

use vmdisk_facts::Capability;
use vmdisk_fields::{either, phrase, setting};
use vmdisk_model::{BackendSource, DiskField, FieldPath, Switch};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A vhost-user disk does not reconnect: after a restart of the daemon, its requests hang until the guest restarts.
    ///
    /// ## What it reports
    /// Reports a disk of a vhost-user daemon without `<reconnect enabled='yes'>`, or without `reconnect` or
    /// `reconnect-ms` of its chardev. libvirt before 7.1 has no such setting for disks, so nothing is reported for it.
    ///
    /// ## Why it matters
    /// QEMU closes the connection when the daemon ends, and opens it again only if reconnecting is enabled. After an
    /// update or a crash of the daemon, all requests of the guest wait, and the new daemon gets no connection.
    ///
    /// ## Use instead
    /// Use `<reconnect enabled='yes' timeout='10'/>` in `<source>`, or `reconnect=10` in the chardev.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='vhostuser' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source type='unix' path='/run/vhost.sock'></source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='vhostuser' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source type='unix' path='/run/vhost.sock'>
    ///     <reconnect enabled='yes' timeout='10'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "vhost-user-without-reconnect",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("after a restart of the daemon, `info chardev` shows `disconnected`; with reconnect=1 it is connected again", "QEMU 7.2 with qemu-storage-daemon and vhost-user-blk-pci"),
        Evidence::Source("libvirt docs/formatdomain.rst, source of a vhostuser disk: reconnect, since 7.1.0"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // The setting is as old as the disks.
    if context.can(Capability::LibvirtVhostUser).is_no() {
        return;
    }
    for (index, disk) in context.disks() {
        let BackendSource::VhostUser(socket) = &disk.backend.source else {
            continue;
        };
        if socket.reconnect == Some(Switch::On) {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Reconnect);
        report
            .finding(
                at,
                phrase!("{disk} does not reconnect to its vhost-user daemon"),
            )
            .label("after a restart of the daemon, all requests hang")
            .help(match context.consumer {
                // Only a spec has one word for it; XML needs two attributes.
                Consumer::Libvirt => either(
                    phrase!("use {reconnect}", reconnect = setting(at, Switch::On)),
                    "add `<reconnect enabled='yes' timeout='10'/>` to the source",
                ),
                Consumer::Qemu => "add `reconnect=10` to the chardev".into(),
            });
    }
}
