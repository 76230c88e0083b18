//! Modes of host I/O, each one word.

use crate::wire_enum::wire_enum;

wire_enum! {
    /// How requests reach the host kernel; libvirt `driver/@io`, QEMU `aio`. Default: `threads`.
    pub enum AioMode {
        /// A pool of threads issues blocking calls.
        Threads = "threads",
        /// Linux AIO; QEMU refuses it without `O_DIRECT` since 2.6.
        Native = "native",
        /// io_uring; libvirt 6.3, QEMU 5.0, Linux 5.1.
        IoUring = "io_uring",
    }
}

wire_enum! {
    /// What becomes of the guest's discard requests; libvirt `driver/@discard`, QEMU `discard`. Default: `ignore`.
    pub enum Discard {
        /// Passed on to the host.
        Unmap = "unmap",
        /// Dropped.
        Ignore = "ignore",
    }
}

wire_enum! {
    /// Whether written zeroes are turned into cheaper requests; libvirt `driver/@detect_zeroes`, QEMU `detect-zeroes`. Default: `off`.
    pub enum DetectZeroes {
        /// Zeroes are written like other data.
        Off = "off",
        /// Zeroes become efficient zero writes.
        On = "on",
        /// Zeroes are discarded; acts as `on` unless discard is `unmap`.
        Unmap = "unmap",
    }
}

wire_enum! {
    /// Effect of a failed write on the guest; libvirt `driver/@error_policy`, QEMU `werror`. Default: `enospace` (QEMU `enospc`).
    pub enum ErrorPolicy {
        /// The guest is paused.
        Stop = "stop",
        /// The guest sees the error.
        Report = "report",
        /// The error is swallowed, and the data is lost.
        Ignore = "ignore",
        /// The guest is paused if the host is out of space, and sees other errors.
        Enospace = "enospace",
    }
}

wire_enum! {
    /// Effect of a failed read on the guest; libvirt `driver/@rerror_policy`, QEMU `rerror`. Default: `report`.
    pub enum ReadErrorPolicy {
        /// The guest is paused.
        Stop = "stop",
        /// The guest sees the error.
        Report = "report",
        /// The error is swallowed.
        Ignore = "ignore",
    }
}

wire_enum! {
    /// A switch that was written; unset is `None` around it.
    pub enum Switch {
        /// On.
        On = "on",
        /// Off.
        Off = "off",
    }
}
