//! The stacks of the lab, each a script that runs in the guest.

/// One stack.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Its name, in files and on the command line.
    pub(crate) name: &'static str,
    /// The script that builds, inspects and removes it.
    pub(crate) script: &'static str,
    /// Its purpose.
    pub(crate) purpose: Purpose,
}

/// The purpose of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Compares its facts, as root and as nobody, with the expected files.
    Facts,
    /// Compares the effect of O_DIRECT on each file system with the verdict of its facts.
    DirectIo,
    /// Compares the exposure of deleted data in a new thin volume with the zeroing of its pool.
    ThinStale,
    /// Checks that devices with data are refused as scratch devices, by the right checks.
    BenchDevices,
    /// Checks that benchmark presets that need root succeed, and leave the host unchanged.
    BenchPresets,
}

macro_rules! stacks {
    ($($name:literal: $purpose:ident),* $(,)?) => {
        /// Every stack, in the order they are built.
        pub(crate) const STACKS: &[Stack] = &[
            $(Stack {
                name: $name,
                script: include_str!(concat!("guest/stacks/", $name, ".sh")),
                purpose: Purpose::$purpose,
            }),*
        ];
    };
}

stacks![
    "nvme-both-sectors": Facts,
    "xfs-4kn": Facts,
    "loop-nobarrier": Facts,
    "loop-partition": Facts,
    "loop-tmpfs": Facts,
    "zram": Facts,
    "multipath": Facts,
    "luks": Facts,
    "md-raid1": Facts,
    "md-raid1-degraded": Facts,
    "md-raid5": Facts,
    "bcache": Facts,
    "cgroup-limits": Facts,
    "overlay-container": Facts,
    "overlay-volatile": Facts,
    "virtiofs": Facts,
    "btrfs-raid1": Facts,
    "lvm-thin-4m-nozero": Facts,
    "lvm-thin-64k-zero": Facts,
    "thin-on-crypt-on-md": Facts,
    "trial-direct-io": DirectIo,
    "trial-thin-stale": ThinStale,
    "trial-bench-devices": BenchDevices,
    "trial-bench-presets": BenchPresets,
];
