//! `throttle-limits-refused`

use vmdisk_fields::{DiskName, Phrase, Piece, phrase, quoted};
use vmdisk_model::{Bytes, DiskField, FieldPath, Iotune, IotuneLimits, LimitField};
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
    for (unit, limits) in [("bytes", &iotune.bytes), ("requests", &iotune.iops)] {
        // For libvirt, `throttle-group-refused` reports large limits, and a length of 0 is unset.
        if context.consumer == Consumer::Qemu
            && let Some((what, help)) = out_of_range(limits)
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
        if let Some((what, help)) = contradiction(limits) {
            let title = phrase!(
                "the limits of {owner} in {unit} contradict each other: {what}",
                owner = owner.clone(),
                unit,
                what,
            );
            let finding = report.finding(at, title);
            finding.label("these limits are refused").help(help);
        }
    }
    let IotuneLimits {
        total, read, write, ..
    } = iotune.iops;
    let size = iotune.size_iops.filter(|size| *size > 0);
    let is_limited = [total, read, write]
        .into_iter()
        .flatten()
        .any(|limit| limit > 0);
    if let Some(size) = size.filter(|_| !is_limited) {
        let title = phrase!(
            "{owner} has a request size of {size}, but no limit in requests",
            owner = owner.clone(),
            size = Bytes(size),
        );
        report
            .finding(at, title)
            .label("QEMU refuses these limits")
            .help("set a limit in requests too, or remove the request size");
    }
}

/// QEMU's `THROTTLE_VALUE_MAX`.
const LARGEST: u64 = 1_000_000_000_000_000;

/// A kind of request, with its limit, its burst and the length of the burst.
type Kind = (&'static str, Option<u64>, Option<u64>, Option<u64>);

fn kinds(limits: &IotuneLimits) -> [Kind; 3] {
    let IotuneLimits {
        total,
        read,
        write,
        total_max,
        read_max,
        write_max,
        total_max_length,
        read_max_length,
        write_max_length,
    } = *limits;
    [
        ("total", total, total_max, total_max_length),
        ("read", read, read_max, read_max_length),
        ("write", write, write_max, write_max_length),
    ]
}

/// A limit or length that QEMU does not accept, and the remedy.
fn out_of_range(limits: &IotuneLimits) -> Option<(Phrase, Phrase)> {
    let kinds = kinds(limits);
    let bursts = kinds.iter().map(|(_, _, burst, _)| burst);
    let mut all = kinds.iter().map(|(_, limit, ..)| limit).chain(bursts);
    if let Some(limit) = all.find_map(|limit| limit.filter(|limit| *limit > LARGEST)) {
        return Some((
            phrase!(
                "a limit of {limit}, above {largest}",
                limit,
                largest = LARGEST
            ),
            "remove the limit; an unset limit means unlimited".into(),
        ));
    }
    let mut lengths = kinds.iter().map(|(.., length)| *length);
    lengths.any(|length| length == Some(0)).then(|| {
        (
            "a burst of 0 seconds".into(),
            "use a length of at least 1, or remove it".into(),
        )
    })
}

/// The first contradiction, and the remedy.
fn contradiction(limits: &IotuneLimits) -> Option<(Phrase, Phrase)> {
    let kinds = kinds(limits);
    let is_set = |limit: Option<u64>| limit.is_some_and(|limit| limit > 0);
    let [total, read, write] = kinds.map(|(_, limit, ..)| is_set(limit));
    if total && (read || write) {
        return Some((
            "a total limit and a limit for reads or writes".into(),
            "keep either the total limit, or the limits for reads and writes".into(),
        ));
    }
    let [total, read, write] = kinds.map(|(_, _, burst, _)| is_set(burst));
    if total && (read || write) {
        return Some((
            "a total burst and a burst for reads or writes".into(),
            "keep either the total burst, or the bursts for reads and writes".into(),
        ));
    }
    for (kind, limit, burst, length) in kinds {
        let limit = limit.filter(|limit| *limit > 0);
        let burst = burst.filter(|burst| *burst > 0);
        match (limit, burst) {
            (None, Some(burst)) => {
                return Some((
                    phrase!(
                        "a {kind} burst of {burst} without a {kind} limit",
                        kind,
                        burst
                    ),
                    "set the limit too, or remove the burst".into(),
                ));
            }
            (Some(limit), Some(burst)) if burst < limit => {
                return Some((
                    phrase!(
                        "the {kind} burst is {burst}, below the limit of {limit}",
                        kind,
                        burst,
                        limit,
                    ),
                    phrase!("use a burst above {limit}, or remove it", limit),
                ));
            }
            (_, None) if length.is_some_and(|length| length > 1) => {
                return Some((
                    phrase!("a {kind} burst has a length, but no rate", kind),
                    "set the burst too, or remove the length".into(),
                ));
            }
            (_, Some(_) | None) => {}
        }
    }
    None
}
