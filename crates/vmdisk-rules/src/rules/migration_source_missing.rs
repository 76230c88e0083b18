//! `migration-source-missing`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Comparison, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk is missing on some of the hosts.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports a disk whose image exists on one host and is missing on
    /// another. `source-missing` reports an image that is missing on all of them.
    ///
    /// ## Why it matters
    /// The guest starts only on hosts that have its image, and cannot migrate without copying it. For a guest that
    /// stays on its host this is intended: use only the facts of that host.
    ///
    /// ## Use instead
    /// Keep the image on storage that all hosts share. Alternatively migrate with the storage
    /// (`virsh migrate --copy-storage-all`), which copies the whole disk each time.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,facts-image-not-there
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,facts-md-degraded
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Missing on all hosts: `source-missing` reports it once.
    /// ```xml,not-reported,facts-image-not-there,facts-image-not-there
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked if the facts of a host do not show it:
    /// ```xml,not-checked,facts-xfs-nvme,facts-no-kvm
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "migration-source-missing",
    group: Group::Startup,
    severity: Severity::Warning,
    evidence: &[
        Evidence::refused_by_libvirt_at_start("Cannot access storage file", "src/qemu/qemu_domain.c, qemuDomainDetermineDiskChain; at a start and at the destination of a migration"),
    ],
    supersedes: &["source-missing"],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, _, image, path) in comparison.images_with_paths() {
        if image.creation.is_some() {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let answers = report.answers(comparison, at, |host| {
            let what = || format!("whether {path} exists");
            let exists = Context::known(host::exists(host.host, path), what)?;
            exists.ok_or_else(|| Missing::new(what(), "the facts contradict themselves"))
        });
        let (Some(present), Some(missing)) = (answers.get(&true), answers.get(&false)) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "the image of {disk} is missing on {hosts}: {path}",
                    hosts = comparison.names(missing),
                    path = quoted(path.to_owned()),
                ),
            )
            .label("not available on every host")
            .on_hosts(missing.iter().copied())
            .note(format!("it is on {}", comparison.names(present)))
            .note("the guest neither starts there nor migrates there")
            .help("keep it on storage that all hosts share, or use only the facts of the hosts that the guest may run on");
    }
}
