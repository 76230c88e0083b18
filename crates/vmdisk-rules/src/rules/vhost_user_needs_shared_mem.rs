//! `vhost-user-needs-shared-mem`

use vmdisk_model::{
    BackendSource, Change, Disk, DiskField, DomainField, FieldPath, MemoryAccess, MemoryBacking,
    MemorySource, Protocol,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, TakenBy};

declare_rule! {
    /// A disk is served by another process that cannot map the guest's memory.
    ///
    /// ## What it does
    /// Reports `<disk type='vhostuser'>` and `type='vhostvdpa'` in a guest whose memory is private: neither
    /// `<access mode='shared'/>` in `<memoryBacking>`, nor `memAccess='shared'` on every NUMA cell.
    ///
    /// ## Why it matters
    /// The daemon reads requests out of the guest's memory and puts data into it. libvirt refuses the domain. QEMU
    /// by itself starts, and the disk dies, or the guest hangs without a message, when its driver first uses it.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path='/run/vhost/web1.sock'>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <source type='memfd'/>
    ///     <access mode='shared'/>
    ///   </memoryBacking>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path='/run/vhost/web1.sock'>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <source type='memfd'/>
    ///     <access mode='shared'/>
    ///   </memoryBacking>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path='/run/vhost/web1.sock'>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A disk alone does not show the machine's memory:
    /// ```xml,not-checked
    /// <disk type='vhostuser' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source type='unix' path='/run/vhost/web1.sock'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "vhost-user-needs-shared-mem",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("'vhostuser' requires shared memory", "src/qemu/qemu_validate.c, qemuValidateDomainDefVhostUserRequireSharedMemory"),
            Evidence::Measured {
                figures: "without shared memory QEMU starts and says `vhost-user-blk: vhost start failed` when the guest's driver starts; with a memory backend that is private the guest hangs and nothing is said",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 with qemu-storage-daemon; 11.1 reports the second case too",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut served = context
        .disks()
        .filter_map(|(index, disk)| source_type(disk).map(|word| (index, disk, word)));
    let Some((index, disk, word)) = served.next() else {
        return;
    };
    let at = FieldPath::Disk(index, DiskField::SourceType);
    let guest = context.whole_guest(|| "how the guest's memory is backed".to_owned());
    let Some(domain) = report.require(at, guest) else {
        return;
    };
    let memory = &domain.memory_backing;
    if memory.is_shared() {
        return;
    }
    // One cause for all of them, so one finding: the memory belongs to the guest and not to a disk.
    let finding = report.finding(
        at,
        format!(
            "`{}` is served by another process, and the guest's memory is private",
            disk.name()
        ),
    );
    finding
        .label("the daemon has to map the guest's memory")
        .note(match context.taken_by {
            TakenBy::Libvirt => {
                format!("libvirt refuses the domain: '{word}' requires shared memory")
            }
            TakenBy::Qemu => "QEMU starts, and the disk is dead once the guest's driver starts: \
                              `vhost start failed`, or no message at all up to QEMU 10.0"
                .to_owned(),
        });
    for (index, disk, _) in served {
        finding.related(
            FieldPath::Disk(index, DiskField::SourceType),
            format!("so is `{}`", disk.name()),
        );
    }
    if memory.access.is_some() {
        let access = FieldPath::Domain(DomainField::MemoryAccess);
        finding.related(access, "only QEMU may map it");
    }
    if memory.cell_access.contains(&Some(MemoryAccess::Private)) {
        finding
            .help(context.for_taker(
                "write memAccess='shared' on every NUMA cell, or take memAccess away and write <access mode='shared'/> in <memoryBacking>",
                "write share=on on the memory backend of every NUMA node",
            ));
        return;
    }
    finding
        .help(context.for_taker(
            "write <source type='memfd'/> and <access mode='shared'/> in <memoryBacking>",
            "write -object memory-backend-memfd,id=memory,size=SIZE,share=on and -machine memory-backend=memory",
        ))
        .fix(Fix::safe(shared(memory)));
}

/// libvirt's word for a source that another process or device serves out of the guest's memory.
fn source_type(disk: &Disk) -> Option<&'static str> {
    match &disk.backend.source {
        BackendSource::VhostUser(_) => Some("vhostuser"),
        BackendSource::Image(image) => match image.protocol {
            Protocol::VhostVdpa { .. } => image.protocol.source_type(),
            Protocol::File { .. }
            | Protocol::HostDevice { .. }
            | Protocol::Directory { .. }
            | Protocol::Network(_)
            | Protocol::Volume(_)
            | Protocol::Nvme(_)
            | Protocol::Other(_) => None,
        },
        BackendSource::Empty => None,
    }
}

/// The steps to memory that others can map, keeping the kind of memory where that can be shared.
fn shared(memory: &MemoryBacking) -> Vec<Change> {
    let source = FieldPath::Domain(DomainField::MemorySource);
    let access = FieldPath::Domain(DomainField::MemoryAccess);
    let mut changes = Vec::new();
    match memory.source {
        Some(MemorySource::File | MemorySource::Memfd) => {}
        // Huge pages are files of their own file system, and can be shared as they are.
        None if memory.huge_pages.is_some() => {}
        Some(MemorySource::Anonymous) | None => {
            changes.push(Change::set(source, MemorySource::Memfd.as_wire()));
        }
    }
    changes.push(Change::set(access, MemoryAccess::Shared.as_wire()));
    changes
}
