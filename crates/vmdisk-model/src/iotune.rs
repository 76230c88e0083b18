//! Throttling of one disk.

use crate::LimitField;

/// Limits for one kind of request, in bytes or operations; unset means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IotuneLimits {
    /// Reads and writes together, per second.
    pub total: Option<u64>,
    /// Reads, per second.
    pub read: Option<u64>,
    /// Writes, per second.
    pub write: Option<u64>,
    /// Burst of reads and writes together, per second (libvirt 1.2.11).
    pub total_max: Option<u64>,
    /// Burst of reads, per second.
    pub read_max: Option<u64>,
    /// Burst of writes, per second.
    pub write_max: Option<u64>,
    /// How long the burst of both may last, in seconds (libvirt 2.4.0).
    pub total_max_length: Option<u64>,
    /// How long the burst of reads may last, in seconds.
    pub read_max_length: Option<u64>,
    /// How long the burst of writes may last, in seconds.
    pub write_max_length: Option<u64>,
}

/// Throttling; libvirt `<iotune>`, set over QMP and not on the command line (QEMU `throttle-group`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iotune {
    /// Limits in bytes.
    pub bytes: IotuneLimits,
    /// Limits in requests.
    pub iops: IotuneLimits,
    /// Size of a request in bytes, above which it counts as several.
    pub size_iops: Option<u64>,
    /// Name of a group that shares these limits (libvirt 3.0.0).
    pub group: Option<String>,
}

impl Iotune {
    /// Every limit by its name, in QEMU's order; the group's name is no limit.
    ///
    /// ```
    /// use vmdisk_model::{Iotune, LimitField};
    ///
    /// let iotune = Iotune { size_iops: Some(4096), ..Iotune::default() };
    /// let set: Vec<_> = iotune.limits().into_iter().filter(|(_, limit)| limit.is_some()).collect();
    /// assert_eq!(set, [(LimitField::SizeIops, Some(4096))]);
    /// ```
    pub fn limits(&self) -> [(LimitField, Option<u64>); 19] {
        let mut copy = Iotune {
            group: None,
            ..*self
        };
        copy.limits_mut().map(|(name, limit)| (name, *limit))
    }

    /// The same, to be written to.
    pub const fn limits_mut(&mut self) -> [(LimitField, &mut Option<u64>); 19] {
        let Iotune {
            bytes,
            iops,
            size_iops,
            group: _, // a name, not a number
        } = self;
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
        } = bytes;
        let IotuneLimits {
            total: iops_total,
            read: iops_read,
            write: iops_write,
            total_max: iops_total_max,
            read_max: iops_read_max,
            write_max: iops_write_max,
            total_max_length: iops_total_max_length,
            read_max_length: iops_read_max_length,
            write_max_length: iops_write_max_length,
        } = iops;
        [
            (LimitField::TotalBytes, total),
            (LimitField::ReadBytes, read),
            (LimitField::WriteBytes, write),
            (LimitField::TotalBytesMax, total_max),
            (LimitField::ReadBytesMax, read_max),
            (LimitField::WriteBytesMax, write_max),
            (LimitField::TotalBytesMaxLength, total_max_length),
            (LimitField::ReadBytesMaxLength, read_max_length),
            (LimitField::WriteBytesMaxLength, write_max_length),
            (LimitField::TotalIops, iops_total),
            (LimitField::ReadIops, iops_read),
            (LimitField::WriteIops, iops_write),
            (LimitField::TotalIopsMax, iops_total_max),
            (LimitField::ReadIopsMax, iops_read_max),
            (LimitField::WriteIopsMax, iops_write_max),
            (LimitField::TotalIopsMaxLength, iops_total_max_length),
            (LimitField::ReadIopsMaxLength, iops_read_max_length),
            (LimitField::WriteIopsMaxLength, iops_write_max_length),
            (LimitField::SizeIops, size_iops),
        ]
    }
}
