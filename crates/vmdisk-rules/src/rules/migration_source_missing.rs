//! `migration-source-missing`

use vmdisk_model::{FieldPath, ImageField};

use crate::comparison::Comparison;
use crate::rule::declare_rule;
use crate::rules::compares_hosts;
use crate::{Context, Evidence, Group, Missing, Report, Severity, host};

declare_rule! {
    /// A disk's file or device is on some of the hosts only.
    ///
    /// ## What it does
    /// Compares the hosts that a guest may run on. Reports a disk whose image was found on one and looked for in vain on
    /// another. Where it is on none, `source-missing` says so.
    ///
    /// ## Why it matters
    /// The guest starts only where its image is, and cannot be migrated without copying it. For a guest that is meant to stay
    /// on its host that is as it should be: give the facts of that host alone.
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
    /// On none of the hosts: `source-missing` reports it once.
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
    /// Whether it is there has to be known of each host:
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
    pub(super) static RULE = {
        name: "migration-source-missing",
        group: Group::Startup,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt_at_start("Cannot access storage file", "src/qemu/qemu_domain.c, qemuDomainDetermineDiskChain; where a guest is migrated to as where it is started"),
        ],
        supersedes: &["source-missing"],
        check: compares_hosts,
        compare: compare,
    }
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, image, path) in comparison.images_with_paths() {
        if image.creation.is_some() {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let answers = comparison.answers(report, at, |host| {
            let what = || format!("whether {path} exists");
            let exists = Context::known(host::exists(host.host, path), what)?;
            exists.ok_or_else(|| Missing::new(what(), "the facts contradict themselves"))
        });
        let (Some(there), Some(missing)) = (answers.get(&true), answers.get(&false)) else {
            continue;
        };
        report
            .finding(
                at,
                format!(
                    "the image of `{}` is not on {}: {path}",
                    disk.name(),
                    comparison.names(missing),
                ),
            )
            .label("not on every host")
            .on_hosts(missing.iter().copied())
            .note(format!("it is on {}", comparison.names(there)))
            .note("the guest neither starts nor migrates to where it is missing")
            .help("keep it on storage that all hosts share, or give only the facts of the hosts that the guest may run on");
    }
}
