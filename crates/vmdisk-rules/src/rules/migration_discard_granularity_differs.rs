//! `migration-discard-granularity-differs`

use vmdisk_model::{Bytes, Discard, DiskField, FieldPath};

use crate::comparison::Comparison;
use crate::rule::declare_rule;
use crate::rules::compares_hosts;
use crate::{Evidence, Group, Report, Severity};

declare_rule! {
    /// The pieces in which a disk's device gives space back differ from host to host.
    ///
    /// ## What it does
    /// Compares the hosts that a guest may run on. Reports a disk with `discard='unmap'` on a block device whose discard
    /// granularity is not the same on all of them, or that takes discards on some of them only.
    ///
    /// ## Why it matters
    /// A discard that covers no whole piece gives nothing back. A guest that trims in pieces of 64 KiB gives back what it
    /// deletes on a pool with such chunks, and next to nothing on one with chunks of 4 MiB; the pool there fills although its
    /// guests are half empty. QEMU does not tell the guest what the device can do, so that it cannot adapt.
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
    /// A disk that drops discards gives nothing back anywhere.
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
    pub(super) static RULE = {
        name: "migration-discard-granularity-differs",
        group: Group::Space,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a thin volume of a pool with chunks of 4 MiB has a discard_granularity of 4194304 bytes, one of a pool with chunks of 64 KiB 65536",
                how: "fixtures/facts-lab/lvm-thin-4m-nozero.6.12.root.json and lvm-thin-64k-zero.6.12.root.json, from booted hosts",
            },
            Evidence::Source("QEMU issue 161: a thin pool with large chunks and a guest that trims in small pieces"),
        ],
        supersedes: &[],
        check: compares_hosts,
        compare: compare,
    }
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, _, path) in comparison.images_with_paths() {
        if disk.backend.discard != Some(Discard::Unmap) || !disk.is_writable() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Discard);
        let mut answers = comparison.answers(report, at, |host| {
            host.of_device(path, "the discard granularity", |device| {
                &device.queue.discard_granularity
            })
        });
        // What is a file there is for the file system to give back.
        answers.remove(&None);
        let [(smallest, _), .., (largest, _)] = answers.iter().collect::<Vec<_>>()[..] else {
            continue;
        };
        // Zero is what a device says that takes no discards at all.
        let worst = if smallest == &Some(0) {
            *smallest
        } else {
            *largest
        };
        let affected = answers.get(&worst).cloned().unwrap_or_default();
        let name = disk.name();
        let finding = report.finding(
            at,
            format!("`{name}` gives space back in pieces that differ from host to host"),
        );
        finding
            .label("not the same on every host")
            .on_hosts(affected);
        for (size, hosts) in &answers {
            let said = match size {
                None | Some(0) => "takes no discards".to_owned(),
                Some(size) => format!("in pieces of {}", Bytes(*size)),
            };
            finding.note(format!("{path} on {}: {said}", comparison.names(hosts)));
        }
        finding.help("make the pools alike, or let the guest trim in pieces as large as the largest (discard_granularity of its device)");
    }
}
