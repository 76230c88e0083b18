//! `migration-size-differs`

use vmdisk_facts::{Fact, HostIndex};
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, FieldPath, ImageField};
use vmdisk_rule::{Comparison, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A disk has different sizes on different hosts.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports a disk that the guest writes alone, and whose image or device is
    /// there on several of them with different sizes of the disk.
    ///
    /// ## Why it matters
    /// A migration that copies the storage mirrors each disk into the one of the same path on the other host. QEMU refuses a
    /// target of another size, larger or smaller: `Source and target image have different sizes`. Storage with larger blocks,
    /// such as a zvol or a volume of an array, rounds sizes up. A guest that is started on the other host instead sees a disk
    /// of another size.
    ///
    /// ## Use instead
    /// Create the disk on the other host with the exact size in bytes. Where its storage rounds up, give the source a size that
    /// both can have.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/nvme0n1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/nvme0n1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "migration-size-differs",
    group: Group::Startup,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("blockdev-mirror to a node that is larger, and to one that is smaller, ends with `Source and target image have different sizes`", "QMP of QEMU 7.2"),
    ],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, _, path) in comparison.images_with_paths() {
        // libvirt copies no other disk.
        if !disk.is_writable() || disk.backend.is_shareable {
            continue;
        }
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let mut answers = report.answers(comparison, at, |host| size_of(host.host, path));
        // Another rule reports a path that is not there.
        answers.remove(&None);
        if answers.len() < 2 {
            continue;
        }
        let affected = answers.values().skip(1).flatten().copied();
        let title = phrase!("{disk} has different sizes on its hosts");
        let finding = report.finding(at, title);
        finding
            .label("QEMU refuses to copy it to a disk of another size")
            .on_hosts(affected.collect::<Vec<_>>());
        for (size, hosts) in &answers {
            let hosts = comparison.names(hosts);
            let size = size.unwrap_or_default();
            finding.note(format!("on {hosts}: {size} bytes, {}", Bytes(size)));
        }
        finding.help("give it the same size in bytes on all hosts");
    }
}

/// The size of the disk at a path; `None` if nothing is there.
fn size_of(host: &HostIndex<'_>, path: &str) -> Result<Option<u64>, Missing> {
    let what = || format!("the size of {path}");
    if let Some(device) = Context::known(host.block_device(path), what)? {
        return Context::known(device.size.clone(), what);
    }
    let Some(file) = host.file(path) else {
        return Ok(None);
    };
    match &file.image {
        Fact::Known(image) => Context::known(image.virtual_size.clone(), what),
        image => Context::known(image.clone().and_then(|_| Fact::NotCollected), what),
    }
}
