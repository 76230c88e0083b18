//! Control groups: limits on I/O and memory that hold whatever a guest's own `<iotune>` says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blockdev::DeviceNumber;
use crate::fact::Fact;

/// Control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cgroups {
    /// The interface that limits I/O: 2, or 1 where the `blkio` controller is still mounted separately.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub version: Fact<u32>,
    /// The group the collector is in, with the limits of all groups above it.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub own: Fact<Cgroup>,
    /// `machine.slice`, below which libvirt starts guests; absent where it does not exist.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub machine: Fact<Cgroup>,
}

/// One control group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cgroup {
    /// Its path below the root of its hierarchy.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub path: Fact<String>,
    /// Limits by device (`io.max`, or `blkio.throttle.*`); empty when there are none, absent when the controller is not
    /// switched on there, so that nothing can be limited.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub io_max: Fact<Vec<IoMax>>,
    /// The weight among its siblings (`io.weight`); absent when the controller is not switched on there.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub io_weight: Fact<u32>,
    /// The most memory it may use, page cache included, in bytes (`memory.max`); absent when there is no limit.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub memory_max: Fact<u64>,
}

/// The limits on one device; an absent limit is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoMax {
    /// The device's number.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub dev: Fact<DeviceNumber>,
    /// Bytes read in a second.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub read_bytes: Fact<u64>,
    /// Bytes written in a second.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub write_bytes: Fact<u64>,
    /// Reads in a second.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub read_requests: Fact<u64>,
    /// Writes in a second.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub write_requests: Fact<u64>,
}
