//! `throttle-limits-refused`

use vmdisk_model::{DiskField, FieldPath, IotuneLimits};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The limits of a disk contradict each other.
    ///
    /// ## What it does
    /// Reports limits on reads and writes together beside limits on one of them, bursts without the limit that they
    /// exceed, bursts below it, and lengths of bursts without a burst.
    ///
    /// ## Why it matters
    /// QEMU and libvirt refuse each of them, the first they come to. A limit of 0 is no limit.
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
    pub(super) static RULE = {
        name: "throttle-limits-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("total and read/write bytes_sec cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
            Evidence::refused_by_libvirt("total and read/write iops_sec cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
            Evidence::refused_by_libvirt("total and read/write bytes_sec_max cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
            Evidence::refused_by_libvirt("total and read/write iops_sec_max cannot be set at the same time", "src/conf/domain_validate.c, virDomainDiskIoTuneValidate"),
            Evidence::Refused {
                by: "QEMU",
                text: "bps/iops/max total values and read/write values cannot be used at the same time",
                source: "util/throttle.c, throttle_is_valid",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "bps_max/iops_max cannot be lower than bps/iops",
                source: "util/throttle.c, throttle_is_valid",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "bps_max/iops_max require corresponding bps/iops values",
                source: "util/throttle.c, throttle_is_valid",
            },
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let Some(iotune) = &disk.backend.iotune else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::Iotune);
        for (unit, limits) in [("bytes", &iotune.bytes), ("requests", &iotune.iops)] {
            let Some((what, help)) = contradiction(limits) else {
                continue;
            };
            report
                .finding(
                    at,
                    format!(
                        "the limits of `{}` in {unit} contradict each other: {what}",
                        disk.name()
                    ),
                )
                .label("QEMU refuses them")
                .help(help);
        }
    }
}

/// The first contradiction, and what to write instead.
fn contradiction(limits: &IotuneLimits) -> Option<(String, String)> {
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
    let is_set = |limit: Option<u64>| limit.is_some_and(|limit| limit > 0);
    if is_set(total) && (is_set(read) || is_set(write)) {
        let what = "reads and writes are limited together and one by one".to_owned();
        return Some((
            what,
            "keep either the limit for both or those for each".to_owned(),
        ));
    }
    if is_set(total_max) && (is_set(read_max) || is_set(write_max)) {
        let what = "bursts of reads and writes are limited together and one by one".to_owned();
        return Some((
            what,
            "keep either the burst for both or those for each".to_owned(),
        ));
    }
    for (word, limit, burst, length) in [
        ("both", total, total_max, total_max_length),
        ("reads", read, read_max, read_max_length),
        ("writes", write, write_max, write_max_length),
    ] {
        let limit = limit.filter(|limit| *limit > 0);
        let burst = burst.filter(|burst| *burst > 0);
        match (limit, burst) {
            (None, Some(burst)) => {
                let what = format!("a burst of {burst} for {word} and no limit that it exceeds");
                return Some((
                    what,
                    "write the limit too, or take the burst away".to_owned(),
                ));
            }
            (Some(limit), Some(burst)) if burst < limit => {
                let what = format!("the burst for {word} is {burst}, below the limit of {limit}");
                return Some((
                    what,
                    format!("write a burst above {limit}, or take it away"),
                ));
            }
            (_, None) if length.is_some_and(|length| length > 1) => {
                let what = format!("a burst for {word} has a length and no rate");
                return Some((
                    what,
                    "write the burst too, or take the length away".to_owned(),
                ));
            }
            (_, Some(_) | None) => {}
        }
    }
    None
}
