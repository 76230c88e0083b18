//! `vhost-user-flushes-lost`

use vmdisk_fields::phrase;
use vmdisk_model::{BackendSource, Change, DiskField, FieldPath, Switch};
use vmdisk_rule::{Confidence, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A vhost-user disk loses flushes: the guest does not flush, and the daemon uses writeback.
    ///
    /// ## What it reports
    /// Reports a vhost-user-blk device without `config-wce=off` that is served by a `qemu-storage-daemon` without
    /// `writethrough=on`, if one file contains both command lines. If the daemon is unknown, as in libvirt XML, it is
    /// advice: other daemons may differ.
    ///
    /// ## Why it matters
    /// The device lets the guest control the daemon's write cache, and the daemon reports that it is off. Linux
    /// therefore sees a write-through disk and does not flush, while the daemon writes through the cache of the host or
    /// the disk and waits for flushes. The fsync of a database returns at once, and a power failure loses confirmed
    /// data.
    ///
    /// ## Use instead
    /// Use `config-wce=off` on the device: the guest sees a write cache and flushes it. Alternatively, use
    /// `writethrough=on` on the daemon's export, which flushes after each write and is slower.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=export,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda
    /// ```
    /// ```args,fixed
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=export,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <memoryBacking>
    ///     <source type='memfd'/>
    ///     <access mode='shared'/>
    ///   </memoryBacking>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path='/run/web1.sock'>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=export,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    /// ```args,not-reported
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=export,node-name=f0,addr.type=unix,addr.path=/run/web1.sock,writable=on,writethrough=on &
    ///
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda
    /// ```
    name: "vhost-user-flushes-lost",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("2000 writes with an fsync after each: 0 fdatasync of the daemon; 2000 with config-wce=off, and 2000 with writethrough=on", "QEMU 5.2, 7.2, 10.0 and 11.1 with the daemon of the same version, a Linux guest; a test of this repository boots it"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let BackendSource::VhostUser(socket) = &disk.backend.source else {
            continue;
        };
        let writes_back = disk.backend.effective_cache().switches().write_cache;
        if socket.config_wce == Some(Switch::Off) || !disk.is_writable() || !writes_back {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::ConfigWce);
        if socket.served.is_some() {
            report
                .finding(at, phrase!("the guest never flushes {disk}, but the daemon that serves it uses writeback"))
                .label("the guest sees a write cache that is switched off")
                .note("the guest treats the disk as write-through: 2000 fsyncs led to 0 fdatasync calls of the daemon")
                .help("set `config-wce=off` on the device, or `writethrough=on` on the daemon's export")
                .fix(Fix::safe([Change::set(at, Switch::Off)]));
            continue;
        }
        report
            .finding(at, phrase!("the guest may never flush {disk}: if qemu-storage-daemon serves it, it must use writethrough"))
            .label("served by an unknown daemon")
            .severity(Severity::Advice)
            .confidence(Confidence::Assumed)
            .note(context.for_consumer(
                "libvirt does not support config-wce; `<qemu:override>` can set it on the device (libvirt 8.2)",
                "QEMU lets the guest control the daemon's write cache, which the guest sees as off",
            ))
            .help("start the daemon with `writethrough=on` on the export, or set `config-wce=off` on the device");
    }
}
