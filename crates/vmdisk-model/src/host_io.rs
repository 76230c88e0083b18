//! Modes of host I/O, each one word.

use vmdisk_source::words;

words! {
    /// How requests reach the host kernel; libvirt `driver/@io`, QEMU `aio`. Default: `threads`.
    pub enum AioMode as as_str {
        /// A pool of threads issues blocking calls.
        Threads = "threads",
        /// Linux AIO; QEMU refuses it without `O_DIRECT` since 2.6.
        Native = "native",
        /// io_uring; libvirt 6.3, QEMU 5.0, Linux 5.1.
        IoUring = "io_uring",
    }
}

words! {
    /// What becomes of the guest's discard requests; libvirt `driver/@discard`, QEMU `discard`. Default: `ignore`.
    pub enum Discard as as_str {
        /// Passed on to the host.
        Unmap = "unmap",
        /// Dropped.
        Ignore = "ignore",
    }
}

words! {
    /// Whether written zeroes are turned into cheaper requests; libvirt `driver/@detect_zeroes`, QEMU `detect-zeroes`. Default: `off`.
    pub enum DetectZeroes as as_str {
        /// Zeroes are written like other data.
        Off = "off",
        /// Zeroes become efficient zero writes.
        On = "on",
        /// Zeroes are discarded; acts as `on` unless discard is `unmap`.
        Unmap = "unmap",
    }
}

words! {
    /// Effect of a failed write on the guest; libvirt `driver/@error_policy`, QEMU `werror`. Default: `enospace` (QEMU `enospc`).
    pub enum ErrorPolicy as as_str {
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

words! {
    /// Effect of a failed read on the guest; libvirt `driver/@rerror_policy`, QEMU `rerror`. Default: `report`.
    pub enum ReadErrorPolicy as as_str {
        /// The guest is paused.
        Stop = "stop",
        /// The guest sees the error.
        Report = "report",
        /// The error is swallowed.
        Ignore = "ignore",
    }
}

words! {
    /// A switch that was written; unset is `None` around it.
    pub enum Switch as as_str {
        /// On.
        On = "on",
        /// Off.
        Off = "off",
    }
}
