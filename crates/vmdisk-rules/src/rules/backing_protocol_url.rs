//! `backing-protocol-url`

use vmdisk_facts::NamedFile;
use vmdisk_fields::{phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Policy, Report, Severity, declare_rule};

use crate::chain::{End, chains};

declare_rule! {
    /// The header of an image names a network or `json:` backing file.
    ///
    /// ## What it reports
    /// Reports a disk with an image whose header names a backing file with a protocol (`nbd:`, `https:`) or as a QEMU
    /// block device description (`json:`), if the configuration does not set the backing image itself. It is a warning
    /// on hosts with several tenants, and advice with `--policy single-tenant` or `--policy lab`.
    ///
    /// ## Why it matters
    /// QEMU follows the header when the guest starts, without a message. The creator of the image therefore decides
    /// which file, device or server QEMU opens: `json:` can name any file, host and driver. An uploaded image can read
    /// every file that QEMU can read this way (CVE-2024-32498, CVE-2024-4467).
    ///
    /// ## Use instead
    /// If the backing image is intended, write it into the configuration as `<backingStore>`: libvirt (5.10 and later)
    /// then ignores the header. Otherwise do not open the image.
    ///
    /// ## Reported
    /// ```xml,reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/remote.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,facts-backing-chains,single-tenant
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/json.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/overlay.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// The configuration sets the backing image:
    /// ```xml,not-reported,facts-backing-chains
    /// <domain type='kvm'>
    ///   <name>guest</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' cache='none'/>
    ///       <source file='/srv/img/remote.qcow2'/>
    ///       <backingStore/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/remote.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "backing-protocol-url",
    group: Group::Security,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("an image with json:{\"driver\":\"nbd\",…} as its backing file has QEMU connect to that host", "virsh create, libvirt 9.0 with QEMU 7.2"),
        Evidence::Cve("CVE-2024-4467"),
        Evidence::Cve("CVE-2024-32498"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for chain in chains(context) {
        let (recorded, leads) = match &chain.end {
            End::Elsewhere { recorded, named } => match named {
                NamedFile::Json => (recorded, "a tree of block devices".to_owned()),
                NamedFile::Protocol(scheme) => (recorded, format!("the protocol {scheme}")),
                // Not reported: names on another host, and names that could be checked.
                NamedFile::Path(_) | NamedFile::Unresolvable => continue,
            },
            End::Unknown(missing) => {
                report.not_checked(chain.at(), missing.clone());
                continue;
            }
            End::Base | End::NotThere { .. } | End::Loop { .. } | End::TooDeep => continue,
        };
        let last = chain.layers.len().saturating_sub(1);
        let severity = match context.policy {
            Policy::MultiTenant => Severity::Warning,
            Policy::SingleTenant | Policy::Lab => Severity::Advice,
        };
        let above = chain.layers.last().map_or("", |layer| &*layer.path);
        report
            .finding(
                chain.at(),
                phrase!("{image} names {leads} as its backing file", image = chain.name_of(last), leads),
            )
            .severity(severity)
            .label("its header names that backing file")
            .note(phrase!(
                "{above} records {recorded}",
                above = quoted(above.to_owned()),
                recorded = quoted(recorded.path.clone()),
            ))
            .note("whoever created the image decides what the host opens")
            .help(phrase!(
                "if it is intended, write the backing image into the configuration ({backing}), which then overrides the header; otherwise do not open the image",
                backing = chain.below(last),
            ));
    }
}
