//! `vhost-user-needs-shared-mem`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{
    BackendSource, Change, Disk, DiskField, DomainField, FieldPath, MemoryAccess, MemoryBacking,
    MemorySource, Protocol,
};
use vmdisk_rule::{Consumer, Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A vhost-user or vDPA disk needs shared guest memory, but the memory is private.
    ///
    /// ## What it reports
    /// Reports `<disk type='vhostuser'>` and `type='vhostvdpa'` in a guest with private memory: neither
    /// `<access mode='shared'/>` in `<memoryBacking>`, nor `memAccess='shared'` on every NUMA cell.
    ///
    /// ## Why it matters
    /// The daemon reads requests and data from the guest's memory and writes data into it. libvirt refuses the domain.
    /// QEMU on its own starts, and the disk fails, or the guest hangs without a message, when its driver starts.
    ///
    /// ## Use instead
    /// Use `<source type='memfd'/>` and `<access mode='shared'/>` in `<memoryBacking>`. Huge pages can be shared as
    /// they are.
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
    name: "vhost-user-needs-shared-mem",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("'vhostuser' requires shared memory", "src/qemu/qemu_validate.c, qemuValidateDomainDefVhostUserRequireSharedMemory"),
        Evidence::measured("without shared memory QEMU starts and says `vhost-user-blk: vhost start failed` when the guest's driver starts; with a private memory backend the guest hangs without a message", "QEMU 5.2, 7.2, 10.0 and 11.1 with qemu-storage-daemon; 11.1 reports the second case too"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut served = context
        .disks()
        .filter_map(|(index, disk)| source_type(disk).map(|word| (index, disk, word)));
    let Some((index, _, word)) = served.next() else {
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
    // One finding for all disks: the memory belongs to the guest.
    let finding = report.finding(
        at,
        phrase!("{disk} is served by another process, but the guest's memory is private"),
    );
    finding
        .label("the daemon has to map the guest's memory")
        .note(match context.consumer {
            Consumer::Libvirt => {
                format!("libvirt refuses the domain: '{word}' requires shared memory")
            }
            Consumer::Qemu => "QEMU starts, and the disk fails when the guest's driver starts: \
                              `vhost start failed`, or without a message up to QEMU 10.0"
                .to_owned(),
        });
    for (index, ..) in served {
        finding.related(
            FieldPath::Disk(index, DiskField::SourceType),
            phrase!("also served by another process: {disk}"),
        );
    }
    if memory.access.is_some() {
        let access = FieldPath::Domain(DomainField::MemoryAccess);
        finding.related(access, "only QEMU can map private memory");
    }
    if memory.cell_access.contains(&Some(MemoryAccess::Private)) {
        finding.help(phrase!(
            "make the memory of every NUMA node shared: {shared} where none of them sets it",
            shared = setting(
                FieldPath::Domain(DomainField::MemoryAccess),
                MemoryAccess::Shared
            ),
        ));
        return;
    }
    finding.remedy(Fix::safe(shared(memory)));
}

/// libvirt's name for a source that another process or device serves from the guest's memory.
fn source_type(disk: &Disk) -> Option<&'static str> {
    match &disk.backend.source {
        BackendSource::VhostUser(_) => Some("vhostuser"),
        BackendSource::Image(image) => match image.protocol {
            Protocol::VhostVdpa { .. } => image.protocol.source_type(),
            _ => None,
        },
        BackendSource::Empty => None,
    }
}

/// The changes to shared memory, keeping the kind of memory if it can be shared.
fn shared(memory: &MemoryBacking) -> Vec<Change> {
    let source = FieldPath::Domain(DomainField::MemorySource);
    let access = FieldPath::Domain(DomainField::MemoryAccess);
    let mut changes = Vec::new();
    match memory.source {
        Some(MemorySource::File | MemorySource::Memfd) => {}
        // Huge pages are files and can be shared.
        None if memory.huge_pages.is_some() => {}
        Some(MemorySource::Anonymous) | None => {
            changes.push(Change::set(source, MemorySource::Memfd));
        }
    }
    changes.push(Change::set(access, MemoryAccess::Shared));
    changes
}
