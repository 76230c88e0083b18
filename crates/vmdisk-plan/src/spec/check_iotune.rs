//! Limits that libvirt or QEMU refuses.

use super::SpecPath;
use super::faults::Faults;
use super::iotune::IotuneSpec;

/// Checks throttling.
pub(super) fn check_iotune(iotune: &IotuneSpec, at: &SpecPath, faults: &mut Faults) {
    // QEMU_BLOCK_IOTUNE_MAX in libvirt's src/qemu/qemu_command.h.
    const MOST: u64 = 1_000_000_000_000_000;
    let model = iotune.to_model();
    for (unit, limits) in [("bytes", &model.bytes), ("iops", &model.iops)] {
        let both = |total: Option<u64>, read: Option<u64>, write: Option<u64>| {
            total.is_some() && (read.is_some() || write.is_some())
        };
        for (is_mixed, suffix) in [
            (both(limits.total, limits.read, limits.write), ""),
            (
                both(limits.total_max, limits.read_max, limits.write_max),
                "-max",
            ),
        ] {
            let message = format!(
                "a limit for both kinds of requests excludes read-{unit}-sec{suffix} and write-{unit}-sec{suffix}"
            );
            faults.refuse_unless(
                !is_mixed,
                at.key(format!("total-{unit}-sec{suffix}")),
                message,
            );
        }
        for (kind, base, burst, length) in [
            (
                "total",
                limits.total,
                limits.total_max,
                limits.total_max_length,
            ),
            ("read", limits.read, limits.read_max, limits.read_max_length),
            (
                "write",
                limits.write,
                limits.write_max,
                limits.write_max_length,
            ),
        ] {
            let base_key = format!("{kind}-{unit}-sec");
            let burst_key = format!("{base_key}-max");
            let is_too_large = base.is_some_and(|limit| limit > MOST);
            faults.refuse_unless(!is_too_large, at.key(&*base_key), format!("at most {MOST}"));
            let is_too_large = burst.is_some_and(|limit| limit > MOST);
            faults.refuse_unless(
                !is_too_large,
                at.key(&*burst_key),
                format!("at most {MOST}"),
            );
            if let Some(burst) = burst {
                let is_above = base.is_some_and(|base| base > 0 && base <= burst);
                let message = format!("a burst needs {base_key}, and must not be below it");
                faults.refuse_unless(is_above, at.key(&*burst_key), message);
            }
            let message = format!("a burst length needs {burst_key}");
            let is_fit = length.is_none() || burst.is_some();
            faults.refuse_unless(is_fit, at.key(format!("{burst_key}-length")), message);
        }
    }
    let IotuneSpec { group_name, .. } = iotune;
    let has_limits = IotuneSpec {
        group_name: None,
        ..iotune.clone()
    } != IotuneSpec::default();
    faults.refuse_unless(
        group_name.is_none() || has_limits,
        at.key("group-name"),
        "libvirt requires a group's limits",
    );
}
