//! `throttle-limits-refused`

use vmdisk_fields::{DiskName, LimitFault, LimitFaultKind, Piece, limit_faults, phrase, quoted};
use vmdisk_model::{DiskField, FieldPath, Iotune, LimitField};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The I/O limits of a disk or throttle group contradict each other.
    ///
    /// ## What it reports
    /// Reports a total limit beside a limit for reads or writes, a burst without a limit, a burst below its limit, the
    /// length of a burst without a burst, and a request size without a limit in requests. A limit of 0 counts as unset.
    /// On command lines, it also reports limits above 1000000000000000, and bursts of 0 seconds.
    ///
    /// ## Why it matters
    /// QEMU and libvirt refuse the first of them that they find, and the guest does not start.
    ///
    /// ## Use instead
    /// Use either total limits or limits for reads and writes. Set `…_max` to more than its limit, `…_max_length`
    /// only with `…_max`, and `size_iops_sec` only with a limit in requests.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <total_bytes_sec>10485760</total_bytes_sec>
    ///     <read_bytes_sec>5242880</read_bytes_sec>
    ///   </iotune>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.iops-total=500,throttling.iops-total-max=100
    /// ```
    /// The size of a request matters only to limits in requests:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=1000000,throttling.iops-size=4096
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <iotune>
    ///     <total_iops_sec>100</total_iops_sec>
    ///     <total_iops_sec_max_length>2</total_iops_sec_max_length>
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
    ///     <read_bytes_sec>5242880</read_bytes_sec>
    ///     <write_bytes_sec>5242880</write_bytes_sec>
    ///     <total_iops_sec>500</total_iops_sec>
    ///     <total_iops_sec_max>1000</total_iops_sec_max>
    ///   </iotune>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.iops-total=500,throttling.iops-total-max=1000
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=1000000000000000
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=1000000000000001
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=5,throttling.bps-total-max=9,throttling.bps-write-max=9
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=5,throttling.bps-total-max=9,throttling.bps-read-max=9
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,throttling.bps-total=5,throttling.bps-write=5
    /// ```
    name: "throttle-limits-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("total and read/write bytes_sec cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
        Evidence::refused_by_libvirt("total and read/write iops_sec cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
        Evidence::refused_by_libvirt("total and read/write bytes_sec_max cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
        Evidence::refused_by_libvirt("total and read/write iops_sec_max cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
        Evidence::refused_by_qemu("bps/iops/max total values and read/write values cannot be used at the same time", "util/throttle.c, throttle_is_valid"),
        Evidence::refused_by_qemu("bps_max/iops_max cannot be lower than bps/iops", "util/throttle.c, throttle_is_valid"),
        Evidence::refused_by_qemu("bps_max/iops_max require corresponding bps/iops values", "util/throttle.c, throttle_is_valid"),
        Evidence::refused_by_qemu("iops size requires an iops value to be set", "util/throttle.c, throttle_is_valid"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        if let Some(iotune) = &disk.backend.iotune {
            let at = FieldPath::Disk(index, DiskField::Iotune);
            check_limits(context, report, at, &DiskName(index).into(), iotune);
        }
    }
    for (nth, group) in context.domain.throttle_groups.iter().enumerate() {
        let name = group.group.clone().unwrap_or_default();
        let owner = phrase!("throttle group {name}", name = quoted(name)).into();
        let at = FieldPath::ThrottleGroup(nth, LimitField::Limits);
        check_limits(context, report, at, &owner, group);
    }
}

fn check_limits(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    owner: &Piece,
    iotune: &Iotune,
) {
    let faults = limit_faults(iotune);
    for unit in ["bytes", "requests"] {
        let first = |kind| faults.iter().find(|it| it.unit == unit && it.kind == kind);
        // For libvirt, `throttle-group-refused` reports large limits, and a length of 0 is unset.
        if context.consumer == Consumer::Qemu
            && let Some((what, help)) = first(LimitFaultKind::TooLarge)
                .map(|fault| (fault.what.clone(), fault.help.clone()))
                .or_else(|| empty_length(iotune, unit))
        {
            let title = phrase!(
                "{owner} has {what} in {unit}",
                owner = owner.clone(),
                what,
                unit
            );
            let finding = report.finding(at, title);
            finding.label("QEMU refuses these limits").help(help);
        }
        if let Some(fault) = first(LimitFaultKind::Contradiction) {
            let title = phrase!(
                "the limits of {owner} in {unit} contradict each other: {what}",
                owner = owner.clone(),
                unit,
                what = fault.what.clone(),
            );
            let finding = report.finding(at, title);
            finding
                .label("these limits are refused")
                .help(fault.help.clone());
        }
    }
    let is_size = |fault: &&LimitFault| fault.kind == LimitFaultKind::SizeWithoutLimit;
    if let Some(fault) = faults.iter().find(is_size) {
        let title = phrase!(
            "{owner} has {what}",
            owner = owner.clone(),
            what = fault.what.clone()
        );
        report
            .finding(at, title)
            .label("QEMU refuses these limits")
            .help(fault.help.clone());
    }
}

/// A length of 0, which only libvirt takes for unset.
fn empty_length(iotune: &Iotune, unit: &str) -> Option<(String, String)> {
    let limits = match unit {
        "bytes" => &iotune.bytes,
        _ => &iotune.iops,
    };
    let lengths = [
        limits.total_max_length,
        limits.read_max_length,
        limits.write_max_length,
    ];
    lengths.contains(&Some(0)).then(|| {
        (
            "a burst of 0 seconds".to_owned(),
            "use a length of at least 1, or remove it".to_owned(),
        )
    })
}
