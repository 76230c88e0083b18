//! Limits that contradict each other.

use vmdisk_model::{Bytes, Iotune, LimitField};

/// The largest limit that QEMU and libvirt accept (`THROTTLE_VALUE_MAX`, `QEMU_BLOCK_IOTUNE_MAX`).
pub const LARGEST_LIMIT: u64 = 1_000_000_000_000_000;

/// Why limits are refused. 0 is not set: QEMU and libvirt look at no limit, burst or length of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitFault {
    /// The limit.
    pub at: LimitField,
    /// What it counts: `bytes` or `requests`.
    pub unit: &'static str,
    /// What is wrong.
    pub kind: LimitFaultKind,
    /// The mistake in words.
    pub what: String,
    /// The remedy.
    pub help: String,
}

/// The kind of a mistake in limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitFaultKind {
    /// A limit is above [`LARGEST_LIMIT`].
    TooLarge,
    /// Two limits contradict each other, or one needs another.
    Contradiction,
    /// A request size without a limit in requests.
    SizeWithoutLimit,
}

/// A limit, its burst, and the length of the burst.
type Kind = (&'static str, [LimitField; 3]);

const UNITS: [(&str, [Kind; 3]); 2] = {
    use LimitField::{
        ReadBytes, ReadBytesMax, ReadBytesMaxLength, ReadIops, ReadIopsMax, ReadIopsMaxLength,
        TotalBytes, TotalBytesMax, TotalBytesMaxLength, TotalIops, TotalIopsMax,
        TotalIopsMaxLength, WriteBytes, WriteBytesMax, WriteBytesMaxLength, WriteIops,
        WriteIopsMax, WriteIopsMaxLength,
    };
    [
        (
            "bytes",
            [
                ("total", [TotalBytes, TotalBytesMax, TotalBytesMaxLength]),
                ("read", [ReadBytes, ReadBytesMax, ReadBytesMaxLength]),
                ("write", [WriteBytes, WriteBytesMax, WriteBytesMaxLength]),
            ],
        ),
        (
            "requests",
            [
                ("total", [TotalIops, TotalIopsMax, TotalIopsMaxLength]),
                ("read", [ReadIops, ReadIopsMax, ReadIopsMaxLength]),
                ("write", [WriteIops, WriteIopsMax, WriteIopsMaxLength]),
            ],
        ),
    ]
};

/// Every reason for which QEMU refuses limits, in the order of the limits.
///
/// ```
/// use vmdisk_fields::limit_faults;
/// use vmdisk_model::{Iotune, IotuneLimits, LimitField};
///
/// let mut iotune = Iotune::default();
/// iotune.bytes = IotuneLimits { total: Some(0), read: Some(1_000_000), ..IotuneLimits::default() };
/// assert_eq!(limit_faults(&iotune), []);
/// iotune.bytes.total = Some(2_000_000);
/// assert_eq!(limit_faults(&iotune)[0].at, LimitField::TotalBytes);
/// ```
pub fn limit_faults(iotune: &Iotune) -> Vec<LimitFault> {
    let limits = iotune.limits();
    let set = |at: LimitField| {
        let found = limits.iter().find(|(field, _)| *field == at);
        found.and_then(|(_, limit)| limit.filter(|limit| *limit > 0))
    };
    let mut faults = Vec::new();
    for (unit, kinds) in UNITS {
        let mut add = |at, kind, what: String, help: String| {
            faults.push(LimitFault {
                at,
                unit,
                kind,
                what,
                help,
            });
        };
        for (_, [limit, burst, _]) in kinds {
            for at in [limit, burst] {
                if let Some(limit) = set(at).filter(|limit| *limit > LARGEST_LIMIT) {
                    let what = format!("a limit of {limit}, above {LARGEST_LIMIT}");
                    let help = "remove the limit; an unset limit means unlimited";
                    add(at, LimitFaultKind::TooLarge, what, help.to_owned());
                }
            }
        }
        let wrong = LimitFaultKind::Contradiction;
        for (nth, one, several) in [(0, "limit", "limits"), (1, "burst", "bursts")] {
            let [total, read, write] = kinds.map(|(_, fields)| fields[nth]);
            if set(total).is_some() && (set(read).is_some() || set(write).is_some()) {
                let what = format!("a total {one} and a {one} for reads or writes");
                let help =
                    format!("keep either the total {one}, or the {several} for reads and writes");
                add(total, wrong, what, help);
            }
        }
        for (kind, [limit, burst, length]) in kinds {
            match (set(limit), set(burst)) {
                (None, Some(most)) => {
                    let what = format!("a {kind} burst of {most} without a {kind} limit");
                    let help = "set the limit too, or remove the burst".to_owned();
                    add(burst, wrong, what, help);
                }
                (Some(limit), Some(most)) if most < limit => {
                    let what = format!("the {kind} burst is {most}, below the limit of {limit}");
                    let help = format!("use a burst above {limit}, or remove it");
                    add(burst, wrong, what, help);
                }
                (_, None) if set(length).is_some_and(|length| length > 1) => {
                    let what = format!("a {kind} burst has a length, but no rate");
                    let help = "set the burst too, or remove the length".to_owned();
                    add(length, wrong, what, help);
                }
                (_, Some(_) | None) => {}
            }
        }
    }
    let in_requests = [
        LimitField::TotalIops,
        LimitField::ReadIops,
        LimitField::WriteIops,
    ];
    if let Some(size) = set(LimitField::SizeIops)
        && !in_requests.into_iter().any(|at| set(at).is_some())
    {
        faults.push(LimitFault {
            at: LimitField::SizeIops,
            unit: "requests",
            kind: LimitFaultKind::SizeWithoutLimit,
            what: format!(
                "a request size of {}, but no limit in requests",
                Bytes(size)
            ),
            help: "set a limit in requests too, or remove the request size".to_owned(),
        });
    }
    faults
}

/// True if there is a limit, and not only the name of a group.
pub fn has_limits(iotune: &Iotune) -> bool {
    iotune
        .limits()
        .iter()
        .any(|(_, limit)| limit.is_some_and(|limit| limit > 0))
}
