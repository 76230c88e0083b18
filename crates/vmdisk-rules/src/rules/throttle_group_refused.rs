//! `throttle-group-refused`

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::Capability;
use vmdisk_fields::{DiskName, LARGEST_LIMIT, Phrase, has_limits, phrase, quoted};
use vmdisk_model::{Device, Disk, DiskField, FieldPath, Iotune, LimitField, Scope};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A throttle group is not defined, has no limits, or has different limits on two disks.
    ///
    /// ## What it reports
    /// Reports throttle groups without a name or with the name of another one; `<throttlefilters>` with an undefined
    /// group, beside `<iotune>`, or on a CD drive; a `<group_name>` in `<iotune>` without limits on any disk, or with
    /// different limits on two disks; and limits above 1000000000000000. Filters need libvirt 11.2;
    /// `unsupported-by-target` reports older ones.
    ///
    /// ## Why it matters
    /// All disks of a group share one set of limits. libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Define each group once. With `<iotune>`, write the same limits on all disks of a group; with libvirt 11.2 and
    /// later, define the group in `<throttlegroups>`, and name it in the `<throttlefilters>` of its disks. Remove
    /// limits that are too large, because an unset limit means unlimited.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <group_name>shared</group_name>
    ///   </iotune>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,libvirt-11.3
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <throttlefilters>
    ///         <throttlefilter group='a'/>
    ///       </throttlefilters>
    ///     </disk>
    ///   </devices>
    ///   <throttlegroups>
    ///     <throttlegroup>
    ///       <total_iops_sec>100</total_iops_sec>
    ///       <group_name>a</group_name>
    ///     </throttlegroup>
    ///     <throttlegroup>
    ///       <total_iops_sec>100</total_iops_sec>
    ///       <group_name>a</group_name>
    ///     </throttlegroup>
    ///   </throttlegroups>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-11.3
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <throttlefilters>
    ///         <throttlefilter group='a'/>
    ///       </throttlefilters>
    ///     </disk>
    ///   </devices>
    ///   <throttlegroups>
    ///     <throttlegroup>
    ///       <total_iops_sec>100</total_iops_sec>
    ///       <group_name>b</group_name>
    ///     </throttlegroup>
    ///   </throttlegroups>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-11.3
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <throttlefilters>
    ///         <throttlefilter group='a'/>
    ///       </throttlefilters>
    ///       <iotune>
    ///         <total_iops_sec>100</total_iops_sec>
    ///       </iotune>
    ///     </disk>
    ///   </devices>
    ///   <throttlegroups>
    ///     <throttlegroup>
    ///       <total_iops_sec>100</total_iops_sec>
    ///       <group_name>a</group_name>
    ///     </throttlegroup>
    ///   </throttlegroups>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-11.3
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='sata'/>
    ///       <throttlefilters>
    ///         <throttlefilter group='a'/>
    ///       </throttlefilters>
    ///     </disk>
    ///   </devices>
    ///   <throttlegroups>
    ///     <throttlegroup>
    ///       <total_iops_sec>100</total_iops_sec>
    ///       <group_name>a</group_name>
    ///     </throttlegroup>
    ///   </throttlegroups>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <total_iops_sec>500</total_iops_sec>
    ///     <group_name>shared</group_name>
    ///   </iotune>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden
    /// <devices>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/a.img'/>
    ///     <target dev='vda' bus='virtio'/>
    ///     <iotune>
    ///       <total_iops_sec>500</total_iops_sec>
    ///       <group_name>shared</group_name>
    ///     </iotune>
    ///   </disk>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/b.img'/>
    ///     <target dev='vdb' bus='virtio'/>
    ///     <iotune><group_name>shared</group_name></iotune>
    ///   </disk>
    /// </devices>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune><total_bytes_sec>1000000000000001</total_bytes_sec></iotune>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <devices>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/a.img'/>
    ///     <target dev='vda' bus='virtio'/>
    ///     <iotune>
    ///       <total_iops_sec>500</total_iops_sec>
    ///       <group_name>shared</group_name>
    ///     </iotune>
    ///   </disk>
    ///   <disk type='file' device='disk'>
    ///     <driver name='qemu' type='raw'/>
    ///     <source file='/srv/b.img'/>
    ///     <target dev='vdb' bus='virtio'/>
    ///     <iotune>
    ///       <total_iops_sec>600</total_iops_sec>
    ///       <group_name>shared</group_name>
    ///     </iotune>
    ///   </disk>
    /// </devices>
    /// ```
    /// ```xml,not-reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune><total_bytes_sec>1000000000000000</total_bytes_sec></iotune>
    /// </disk>
    /// ```
    name: "throttle-group-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("block 'throttlefilters' can't be used together with 'iotune' for disk '…'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("cdrom device with throttle filters isn't supported", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("missing group name", "src/conf/domain_conf.c, virDomainThrottleGroupDefParseXML"),
        Evidence::refused_by_libvirt("duplicate group name '…' found", "src/conf/domain_conf.c, virDomainDefThrottleGroupsParse"),
        Evidence::refused_by_libvirt("throttle group '…' not found", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("group_name can be configured only together with settings", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
        Evidence::refused_by_libvirt("different iotunes for disks … and …", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
        Evidence::refused_by_libvirt("block I/O throttle limit must be no more than 1000000000000000 using QEMU", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    check_names(context, report);
    let groups: BTreeSet<&str> = context
        .domain
        .throttle_groups
        .iter()
        .filter_map(|group| group.group.as_deref())
        .collect();
    let with_limits: BTreeSet<&str> = context
        .disks()
        .filter_map(|(_, disk)| disk.backend.iotune.as_ref())
        .filter(|iotune| has_limits(iotune))
        .filter_map(|iotune| iotune.group.as_deref())
        .collect();
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, disk) in context.disks() {
        check_filters(context, report, index, disk, &groups);
        let Some(iotune) = &disk.backend.iotune else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::Iotune);
        if limits(iotune).any(|limit| limit > LARGEST_LIMIT) {
            let title = phrase!(
                "a limit of {disk} is above {largest}",
                largest = LARGEST_LIMIT
            );
            report
                .finding(at, title)
                .label("larger than libvirt accepts")
                .help("remove the limit; an unset limit means unlimited");
        }
        let Some(group) = iotune.group.as_deref() else {
            continue;
        };
        let quoted_group = || quoted(group.to_owned());
        if !has_limits(iotune) {
            // libvirt uses the limits of another disk of the group.
            if with_limits.contains(group) {
                continue;
            }
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} is in the throttle group {group}, which has no limits",
                        group = quoted_group()
                    ),
                )
                .label("a group without limits")
                .help("add the limits of the group");
            continue;
        }
        if let Some(first) = shared.get(group)
            && context.domain.disks[*first].backend.iotune.as_ref() != Some(iotune)
        {
            let other = DiskName(*first);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} and {other} are in the throttle group {group}, but have different limits",
                        other,
                        group = quoted_group(),
                    ),
                )
                .label("other limits")
                .related(
                    FieldPath::Disk(*first, DiskField::Iotune),
                    phrase!("the limits of {other}", other),
                )
                .help("use the same limits on both, or another group");
        }
        shared.entry(group).or_insert(index);
    }
}

/// Reports groups without a name, and with the name of another one.
fn check_names(context: &Context<'_>, report: &mut Report) {
    // Older ones drop the element.
    if context.can(Capability::LibvirtThrottleFilters).is_no() {
        return;
    }
    let mut names = BTreeSet::new();
    for (nth, group) in context.domain.throttle_groups.iter().enumerate() {
        let (field, what) = match group.group.as_deref() {
            None => (
                LimitField::Limits,
                Phrase::from("a throttle group has no name"),
            ),
            Some(name) if !names.insert(name) => (
                LimitField::Group,
                phrase!(
                    "two throttle groups have the name {name}",
                    name = quoted(name.to_owned())
                ),
            ),
            Some(_) => continue,
        };
        report
            .finding(FieldPath::ThrottleGroup(nth, field), what)
            .label("disks refer to a group by its name")
            .help("give each group a unique name");
    }
}

fn check_filters(
    context: &Context<'_>,
    report: &mut Report,
    index: usize,
    disk: &Disk,
    groups: &BTreeSet<&str>,
) {
    // Older ones drop the element.
    if context.can(Capability::LibvirtThrottleFilters).is_no() {
        return;
    }
    let filters = &disk.backend.throttle_filters;
    let at = FieldPath::Disk(index, DiskField::ThrottleFilters);
    let limits = FieldPath::Disk(index, DiskField::Iotune);
    let missing = filters
        .iter()
        .find(|filter| !groups.contains(filter.as_str()));
    let (title, help) = if filters.is_empty() {
        return;
    } else if disk.backend.iotune.is_some() {
        (
            phrase!("{disk} has its own limits in addition to throttle groups"),
            phrase!("remove {limits} or {groups}", limits, groups = at),
        )
    } else if disk.frontend.effective_device() == Device::Cdrom {
        (
            phrase!("{disk} is a CD drive, which does not support throttle groups"),
            phrase!("remove {groups}", groups = at),
        )
    } else if let (Some(missing), Scope::WholeGuest) = (missing, context.domain.scope) {
        (
            phrase!(
                "{disk} uses the throttle group {missing}, which is not defined",
                missing = quoted(missing.clone()),
            ),
            "define the group".into(),
        )
    } else {
        return;
    };
    report
        .finding(at, title)
        .label("these limits cannot be applied")
        .help(help);
}

/// All limits that are set.
fn limits(iotune: &Iotune) -> impl Iterator<Item = u64> + use<> {
    iotune.limits().into_iter().filter_map(|(_, limit)| limit)
}
