//! `alias-dropped`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::Change;
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use super::alias_twice::{PREFIX, aliases, is_kept, is_plain};

declare_rule! {
    /// libvirt drops an alias that does not begin with `ua-`.
    ///
    /// ## What it reports
    /// Reports `<alias>` of disks and disk controllers whose name does not begin with `ua-`, or contains other characters
    /// than letters, digits, `_` and `-`. The names that libvirt gives running guests, such as `virtio-disk0`, are not
    /// reported.
    ///
    /// ## Why it matters
    /// libvirt defines the guest without a message and without the alias. Scripts that look for the device by that name,
    /// in the monitor of QEMU or in `virsh dumpxml`, do not find it.
    ///
    /// ## Use instead
    /// Begin the name with `ua-`: libvirt keeps it, and QEMU gets it as the id of the device.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <alias name='data'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <alias name='ua-data'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <alias name='ua-data'/>
    /// </disk>
    /// ```
    /// The name that libvirt gives the disk of a running guest:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <alias name='virtio-disk0'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <alias name=''/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "alias-dropped",
    group: Group::Clarity,
    severity: Severity::Advice,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`<alias name='data'/>` is not in the definition that libvirt keeps", "virsh define and dumpxml of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs"),
        Evidence::Source("libvirt src/conf/domain_conf.c, virDomainDeviceInfoParseXML; docs/formatdomain.rst: the alias must begin with ua-"),
    ],
    check: Model(check),
}

/// The names that libvirt gives the devices of running guests, without their numbers.
const OF_LIBVIRT: &[&str] = &[
    "fdc",
    "ide",
    "nvme",
    "nvme-disk",
    "sata",
    "scsi",
    "sd-disk",
    "usb",
    "usb-disk",
    "virtio-disk",
];

fn is_of_libvirt(alias: &str) -> bool {
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-');
    OF_LIBVIRT.contains(&alias.trim_end_matches(is_number))
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_dropped = |alias: &str| !is_kept(alias) && !is_of_libvirt(alias);
    for (at, alias, owner) in aliases(context).filter(|(_, alias, _)| is_dropped(alias)) {
        let finding = report.finding(
            at,
            phrase!(
                "libvirt drops the alias {alias} of {owner}",
                alias = quoted(alias.to_owned()),
                owner
            ),
        );
        finding.label("is not in the guest that libvirt defines");
        if is_plain(alias) {
            finding.remedy(Fix::safe([Change::set(at, format!("{PREFIX}{alias}"))]));
        } else {
            finding.help("use a name of letters, digits, `_` and `-` that begins with `ua-`");
        }
    }
}
