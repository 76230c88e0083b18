//! Throttling of one disk.

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
    /// Size in bytes that counts as one request.
    pub size_iops: Option<u64>,
    /// Name of a group that shares these limits (libvirt 3.0.0).
    pub group: Option<String>,
}

impl Iotune {
    /// Every limit under its name in QEMU's `ThrottleLimits`, in QEMU's order; the group's name is no limit.
    ///
    /// ```
    /// use vmdisk_model::Iotune;
    ///
    /// let iotune = Iotune { size_iops: Some(4096), ..Iotune::default() };
    /// let set: Vec<_> = iotune.limits().into_iter().filter(|(_, limit)| limit.is_some()).collect();
    /// assert_eq!(set, [("iops-size", Some(4096))]);
    /// ```
    pub fn limits(&self) -> [(&'static str, Option<u64>); 19] {
        let mut copy = Iotune {
            group: None,
            ..*self
        };
        copy.limits_mut().map(|(name, limit)| (name, *limit))
    }

    /// The same, to be written to.
    pub const fn limits_mut(&mut self) -> [(&'static str, &mut Option<u64>); 19] {
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
            ("bps-total", total),
            ("bps-read", read),
            ("bps-write", write),
            ("bps-total-max", total_max),
            ("bps-read-max", read_max),
            ("bps-write-max", write_max),
            ("bps-total-max-length", total_max_length),
            ("bps-read-max-length", read_max_length),
            ("bps-write-max-length", write_max_length),
            ("iops-total", iops_total),
            ("iops-read", iops_read),
            ("iops-write", iops_write),
            ("iops-total-max", iops_total_max),
            ("iops-read-max", iops_read_max),
            ("iops-write-max", iops_write_max),
            ("iops-total-max-length", iops_total_max_length),
            ("iops-read-max-length", iops_read_max_length),
            ("iops-write-max-length", iops_write_max_length),
            ("iops-size", size_iops),
        ]
    }
}
