//! Statistics that QEMU keeps of a disk's requests.

/// One histogram of latencies; libvirt `statistics/latency-histogram` (12.1.0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    /// Kind of request, by libvirt's word (`read`, `write`, `zone`, `flush`); unset means all.
    pub request: Option<String>,
    /// Where its bins begin, in nanoseconds.
    pub bin_starts: Vec<u64>,
}

/// Statistics that QEMU keeps of a disk's requests; libvirt `driver/statistics` (11.9.0). Histograms are set
/// over QMP; the intervals are QEMU's `stats-intervals` (10.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Lengths of the intervals that averages are kept for, in seconds.
    pub intervals: Vec<u32>,
    /// Histograms of latencies.
    pub histograms: Vec<LatencyHistogram>,
}
