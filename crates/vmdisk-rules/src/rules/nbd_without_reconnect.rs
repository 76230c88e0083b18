//! `nbd-without-reconnect`

use vmdisk_facts::Capability;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{FieldPath, ImageField, NetworkProtocol, Protocol};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An NBD disk does not wait for its server: while the server restarts, the guest gets I/O errors.
    ///
    /// ## What it reports
    /// Reports a disk on an NBD server without `<reconnect delay='…'/>`, or without `reconnect-delay` on a command line.
    /// libvirt before 9.2 and QEMU before 4.2 have no such setting, so nothing is reported for them.
    ///
    /// ## Why it matters
    /// QEMU connects again automatically, but each request fails until then. A restart of the server takes seconds; the file
    /// system of the guest becomes read-only at the first error. With a delay, requests wait for so many seconds.
    ///
    /// ## Use instead
    /// Add `<reconnect delay='30'/>` to `<source>`, or `reconnect-delay=30` to the node.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example' port='10809'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example' port='10809'/>
    ///     <reconnect delay='30'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// libvirt before 9.2 ignores it:
    /// ```xml,not-reported,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example' port='10809'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "nbd-without-reconnect",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("while qemu-nbd is away for 2 seconds, a request and the next one fail with EIO; with reconnect-delay=10 both succeed", "QEMU 7.2, qemu-io and qemu-nbd"),
        Evidence::Source("QEMU qapi/block-core.json, BlockdevOptionsNbd: reconnect-delay, since 4.2"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_known = match context.consumer {
        Consumer::Libvirt => context.can(Capability::LibvirtNbdReconnect),
        Consumer::Qemu => context.target.can(Capability::NbdReconnect),
    };
    if is_known.is_no() {
        return;
    }
    for (index, _, image) in context.images() {
        let Protocol::Network(network) = &image.protocol else {
            continue;
        };
        if network.protocol != NetworkProtocol::Nbd || network.reconnect_delay.unwrap_or(0) > 0 {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::ReconnectDelay);
        report
            .finding(
                at,
                phrase!("{disk} does not wait for its NBD server to return"),
            )
            .label("while the server restarts, the guest gets I/O errors")
            .help(match context.consumer {
                Consumer::Libvirt => phrase!("use {delay}", delay = setting(at, "30")),
                Consumer::Qemu => "add `reconnect-delay=30` to the node".into(),
            });
    }
}
