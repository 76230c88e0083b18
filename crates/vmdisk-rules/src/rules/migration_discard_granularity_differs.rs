//! `migration-discard-granularity-differs`

use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Discard, DiskField, FieldPath};
use vmdisk_rule::{Comparison, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The discard granularity of a disk's device differs from host to host.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports a disk with `discard='unmap'` on a block device whose
    /// discard granularity is not the same on all hosts, or that accepts discards only on some of them.
    ///
    /// ## Why it matters
    /// A discard that covers no whole unit frees nothing. A guest that trims in units of 64 KiB frees what it deletes
    /// on a pool with such chunks, and almost nothing on a pool with chunks of 4 MiB; that pool fills although its
    /// guests are half empty. QEMU does not pass the granularity to the guest, so the guest cannot adapt.
    ///
    /// ## Use instead
    /// Create the pools with the same chunk size (`lvcreate --chunksize`). Alternatively set the largest granularity on
    /// the disk with `discard_granularity` in `<blockio>`; the guest then keeps small freed areas allocated.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-64k,facts-lvm-thin-4m-nozero
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-lvm-thin-4m-nozero,facts-lvm-thin-4m-snapshots
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A disk that drops discards frees nothing on any host:
    /// ```xml,not-reported,facts-lvm-thin-64k,facts-lvm-thin-4m-nozero
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "migration-discard-granularity-differs",
    group: Group::Space,
    severity: Severity::Advice,
    evidence: &[
        Evidence::measured("a thin volume of a pool with chunks of 4 MiB has a discard_granularity of 4194304 bytes, one of a pool with chunks of 64 KiB 65536", "fixtures/facts-lab/lvm-thin-4m-nozero.6.12.root.json and lvm-thin-64k-zero.6.12.root.json, from booted hosts"),
        Evidence::Source("QEMU issue 161: a thin pool with large chunks and a guest that trims in small pieces"),
    ],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, _, path) in comparison.images_with_paths() {
        if disk.backend.discard != Some(Discard::Unmap) || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Discard);
        let mut answers = report.answers(comparison, at, |host| {
            host.of_device(path, "the discard granularity", |device| {
                &device.queue.discard_granularity
            })
        });
        // If the path is a file, the file system decides.
        answers.remove(&None);
        let [(smallest, _), .., (largest, _)] = answers.iter().collect::<Vec<_>>()[..] else {
            continue;
        };
        // A device that does not support discards has the granularity zero.
        let worst = if smallest == &Some(0) {
            *smallest
        } else {
            *largest
        };
        let affected = answers.get(&worst).cloned().unwrap_or_default();
        let finding = report.finding(
            at,
            phrase!("{disk} frees space in units that differ from host to host"),
        );
        finding
            .label("not the same on every host")
            .on_hosts(affected);
        for (size, hosts) in &answers {
            let unit = match size {
                None | Some(0) => "no discards".to_owned(),
                Some(size) => format!("units of {}", Bytes(*size)),
            };
            finding.note(format!("{path} on {}: {unit}", comparison.names(hosts)));
        }
        finding.help(phrase!(
            "use the same chunk size for all pools, or set {granularity} to the largest",
            granularity = FieldPath::Disk(index, DiskField::DiscardGranularity),
        ));
    }
}
