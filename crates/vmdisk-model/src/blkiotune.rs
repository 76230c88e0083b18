//! The share of the host's disks that a guest gets, by its cgroup.

/// Limits of a guest on one device of the host; libvirt `blkiotune/device`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlkioDevice {
    /// The device on the host.
    pub path: Option<String>,
    /// Share of the device's time against other guests, 10 to 1000.
    pub weight: Option<u32>,
    /// Reads per second.
    pub read_iops_sec: Option<u32>,
    /// Writes per second.
    pub write_iops_sec: Option<u32>,
    /// Bytes read per second.
    pub read_bytes_sec: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_sec: Option<u64>,
}

/// The share of the host's disks that a guest gets; libvirt `<blkiotune>` (0.8.8), which no QEMU hears of:
/// it is the kernel's, by cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blkiotune {
    /// Share of every device's time against other guests, 10 to 1000 (0.8.8).
    pub weight: Option<u32>,
    /// Devices with shares and limits of their own (0.9.8).
    pub devices: Vec<BlkioDevice>,
}
