//! `throttle-group-refused`

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::Version;
use vmdisk_model::{Device, Disk, DiskField, FieldPath, Iotune, LimitField, Scope};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Limits that disks share are not defined, or are defined differently.
    ///
    /// ## What it does
    /// Reports throttle groups without a name or with that of another one, filters whose group is not defined, beside `<iotune>`, or on a CD drive; groups in
    /// `<iotune>` without any limit, and with other limits on another disk; and limits above 1000000000000000.
    ///
    /// ## Why it matters
    /// All disks of a group have one set of limits. libvirt refuses the guest.
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
    pub(super) static RULE = {
        name: "throttle-group-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("block 'throttlefilters' can't be used together with 'iotune' for disk '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateThrottleFilters"),
            Evidence::refused_by_libvirt("cdrom device with throttle filters isn't supported", "src/conf/domain_validate.c, virDomainDiskDefValidateThrottleFilters"),
            Evidence::refused_by_libvirt("missing group name", "src/conf/domain_conf.c, virDomainThrottleGroupParseXML"),
            Evidence::refused_by_libvirt("duplicate group name '…' found", "src/conf/domain_conf.c, virDomainDefThrottleGroupsParse"),
            Evidence::refused_by_libvirt("throttle group '…' not found", "src/conf/domain_validate.c, virDomainDiskDefValidateThrottleFilters"),
            Evidence::refused_by_libvirt("group_name can be configured only together with settings", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
            Evidence::refused_by_libvirt("different iotunes for disks … and …", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
            Evidence::refused_by_libvirt("block I/O throttle limit must be no more than 1000000000000000 using QEMU", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

/// What libvirt takes as the largest limit (`QEMU_BLOCK_IOTUNE_MAX`).
const LARGEST: u64 = 1_000_000_000_000_000;

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
        .filter(|iotune| limits(iotune).any(|limit| limit > 0))
        .filter_map(|iotune| iotune.group.as_deref())
        .collect();
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, disk) in context.disks() {
        check_filters(context, report, index, disk, &groups);
        let Some(iotune) = &disk.backend.iotune else {
            continue;
        };
        let name = disk.name();
        if limits(iotune).any(|limit| limit > LARGEST) {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Iotune),
                    format!("a limit of `{name}` is above {LARGEST}"),
                )
                .label("libvirt takes nothing larger")
                .help("leave the limit out: none is as good");
        }
        let Some(group) = iotune.group.as_deref() else {
            continue;
        };
        if limits(iotune).all(|limit| limit == 0) {
            // It takes the limits of a disk that has them.
            if with_limits.contains(group) {
                continue;
            }
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Iotune),
                    format!("`{name}` shares the limits of group `{group}`, which no disk has"),
                )
                .label("a group without limits")
                .note("libvirt refuses the guest for it")
                .help("write the group's limits here");
            continue;
        }
        if let Some(first) = shared.get(group)
            && context.domain.disks[*first].backend.iotune.as_ref() != Some(iotune)
        {
            let other = context.domain.disks[*first].name();
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Iotune),
                    format!("`{name}` and `{other}` share group `{group}` with different limits"),
                )
                .label("other limits")
                .related(
                    FieldPath::Disk(*first, DiskField::Iotune),
                    format!("the limits of `{other}`"),
                )
                .note("libvirt refuses the guest for it")
                .help("write the same limits on both, or name another group");
        }
        shared.entry(group).or_insert(index);
    }
}

/// Groups without a name, and with that of another one.
fn check_names(context: &Context<'_>, report: &mut Report) {
    // Older ones drop the element.
    if context.libvirt_is_before(Version(11, 2, 0)) == Some(true) {
        return;
    }
    let mut names = BTreeSet::new();
    for (nth, group) in context.domain.throttle_groups.iter().enumerate() {
        let (field, what) = match group.group.as_deref() {
            None => (
                LimitField::Limits,
                "a throttle group has no name".to_owned(),
            ),
            Some(name) if !names.insert(name) => (
                LimitField::Group,
                format!("two throttle groups are called `{name}`"),
            ),
            Some(_) => continue,
        };
        report
            .finding(FieldPath::ThrottleGroup(nth, field), what)
            .label("disks name a group by its name")
            .note("libvirt refuses the guest for it")
            .help("write a <group_name> of its own");
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
    if context.libvirt_is_before(Version(11, 2, 0)) == Some(true) {
        return;
    }
    let filters = &disk.backend.throttle_filters;
    let at = FieldPath::Disk(index, DiskField::ThrottleFilters);
    let missing = filters
        .iter()
        .find(|filter| !groups.contains(filter.as_str()));
    let (what, help) = if filters.is_empty() {
        return;
    } else if disk.backend.iotune.is_some() {
        (
            "has limits of its own beside those of groups".to_owned(),
            "keep <iotune> or <throttlefilters>",
        )
    } else if disk.frontend.effective_device() == Device::Cdrom {
        (
            "is a CD drive, which takes no throttle filters".to_owned(),
            "leave <throttlefilters> out",
        )
    } else if let (Some(missing), Scope::WholeGuest) = (missing, context.domain.scope) {
        (
            format!("is limited by group `{missing}`, which is not defined"),
            "define it in <throttlegroups>",
        )
    } else {
        return;
    };
    report
        .finding(at, format!("`{}` {what}", disk.name()))
        .label("these limits cannot hold")
        .note("libvirt refuses the guest for it")
        .help(help);
}

/// All limits that are set.
fn limits(iotune: &Iotune) -> impl Iterator<Item = u64> + use<> {
    iotune.limits().into_iter().filter_map(|(_, limit)| limit)
}
