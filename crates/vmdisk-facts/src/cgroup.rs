//! Control groups: limits on I/O that hold whatever a guest's own `<iotune>` says.

use crate::blockdev::DeviceNumber;
use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// Control groups.
    pub struct Cgroups {
        /// The interface that limits I/O: 2, or 1 where the `blkio` controller is still mounted separately.
        pub version: Fact<u32>,
        /// The group the collector is in, with the limits of all groups above it.
        pub own: Fact<Cgroup>,
        /// `machine.slice`, below which libvirt starts guests; absent where it does not exist.
        pub machine: Fact<Cgroup>,
    }
}

facts! {
    /// One control group.
    pub struct Cgroup {
        /// Its path below the root of its hierarchy.
        pub path: Fact<String>,
        /// Limits by device (`io.max`, or `blkio.throttle.*`); empty when there are none, absent when the controller is not
        /// switched on there, so that nothing can be limited.
        pub io_max: Fact<Vec<IoMax>>,
    }
}

facts! {
    /// The limits on one device; an absent limit is unlimited.
    pub struct IoMax {
        /// The device's number.
        pub dev: Fact<DeviceNumber>,
        /// Bytes read in a second.
        pub read_bytes: Fact<u64>,
        /// Bytes written in a second.
        pub write_bytes: Fact<u64>,
        /// Reads in a second.
        pub read_requests: Fact<u64>,
        /// Writes in a second.
        pub write_requests: Fact<u64>,
    }
}
