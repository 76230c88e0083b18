//! `blkio-device-twice`

use std::collections::BTreeSet;

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The I/O limits of one device are set twice in `<blkiotune>`.
    ///
    /// ## What it reports
    /// Reports two `<device>` elements of `<blkiotune>` with the same path.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest with `duplicate blkio device path`. Schema validation accepts it.
    ///
    /// ## Use instead
    /// Merge the two elements: one `<device>` can hold the weight and all limits of its path.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <blkiotune>
    ///     <device>
    ///       <path>/dev/sda</path>
    ///       <weight>500</weight>
    ///     </device>
    ///     <device>
    ///       <path>/dev/sda</path>
    ///       <weight>600</weight>
    ///     </device>
    ///   </blkiotune>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <blkiotune>
    ///     <device>
    ///       <path>/dev/sda</path>
    ///       <weight>500</weight>
    ///     </device>
    ///     <device>
    ///       <path>/dev/sdb</path>
    ///       <weight>600</weight>
    ///     </device>
    ///   </blkiotune>
    /// </domain>
    /// ```
    name: "blkio-device-twice",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("duplicate blkio device path '…'", "src/conf/domain_validate.c, virDomainDefTunablesValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(blkiotune) = &context.domain.blkiotune else {
        return;
    };
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&str> = blkiotune
        .devices
        .iter()
        .filter_map(|device| device.path.as_deref())
        .filter(|path| !seen.insert(*path))
        .collect();
    for path in twice {
        report
            .finding(
                FieldPath::Domain(DomainField::Blkiotune),
                phrase!(
                    "the share of {path} is set twice",
                    path = quoted(path.to_owned())
                ),
            )
            .label("each path may have one `<device>`")
            .help("keep one of them");
    }
}
