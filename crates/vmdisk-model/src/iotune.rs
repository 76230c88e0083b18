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
