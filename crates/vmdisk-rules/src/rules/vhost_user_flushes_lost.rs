//! `vhost-user-flushes-lost`

use vmdisk_model::{BackendSource, Change, DiskField, FieldPath, Switch};

use crate::rule::declare_rule;
use crate::{Confidence, Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// The guest of a vhost-user disk never flushes, and the daemon never does by itself.
    ///
    /// ## What it does
    /// Reports a vhost-user-blk device without `config-wce=off` that is served by a `qemu-storage-daemon` without
    /// `writethrough=on`, where both command lines stand in one text. Where the daemon is not known, as in
    /// libvirt's XML, it is advice: other daemons may do otherwise.
    ///
    /// ## Why it matters
    /// The device offers the guest to switch the daemon's write cache, and the daemon says that it is off. So Linux
    /// sees a write-through disk and sends no flush, while the daemon writes through the host's page cache, or the
    /// disk's own, and waits for one. A database's fsync returns at once, and a power cut takes what it has
    /// confirmed. With `config-wce=off` the guest sees a write cache and flushes it; with `writethrough=on` the
    /// daemon flushes after each write.
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
    pub(super) static RULE = {
        name: "vhost-user-flushes-lost",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "2000 writes with an fsync after each: 0 fdatasync of the daemon; 2000 with config-wce=off, and 2000 with writethrough=on",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 with the daemon of the same version, a Linux guest; a test of this repository boots it",
            },
        ],
        supersedes: &[],
        check: check,
    }
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
        let name = disk.name();
        if socket.served.is_some() {
            report
                .finding(at, format!("the guest never flushes `{name}`, and the daemon that serves it writes back"))
                .label("offers the guest a switch that it reads as off")
                .note("the guest takes the disk for write-through: 2000 fsyncs were 0 fdatasync of the daemon")
                .help("write config-wce=off on the device, or writethrough=on on the daemon's export")
                .fix(Fix::safe([Change::set(at, Switch::Off.as_wire())]));
            continue;
        }
        report
            .finding(at, format!("the guest may never flush `{name}`: if qemu-storage-daemon serves it, it must write through"))
            .label("served by a daemon that is not known here")
            .severity(Severity::Advice)
            .confidence(Confidence::Assumed)
            .note("libvirt has no word for config-wce, which a <qemu:override> of the device can set (libvirt 8.2)")
            .help("start the daemon with writethrough=on on the export, or set config-wce=off on the device");
    }
}
