//! What the lab builds: each a script that the guest runs.

/// One stack.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Its name, in files and on the command line.
    pub(crate) name: &'static str,
    /// How it is built, asked about and taken down.
    pub(crate) script: &'static str,
    /// What is done with it.
    pub(crate) purpose: Purpose,
}

/// What is done with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its facts, as root and as nobody, are held to the files that say what they have to be.
    Facts,
    /// What O_DIRECT does on each file system is held to the verdict that facts lead to.
    DirectIo,
    /// What a new thin volume shows of a deleted one is held to whether its pool zeroes.
    ThinStale,
    /// Devices that hold data are held to being refused as scratch devices, by the checks that see it.
    BenchDevices,
    /// Presets of the benchmark that need root are held to running, and to leaving nothing.
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
    "loop-partition": Facts,
    "multipath": Facts,
    "luks": Facts,
    "md-raid1": Facts,
    "md-raid1-degraded": Facts,
    "md-raid5": Facts,
    "bcache": Facts,
    "cgroup-limits": Facts,
    "btrfs-raid1": Facts,
    "lvm-thin-4m-nozero": Facts,
    "lvm-thin-64k-zero": Facts,
    "thin-on-crypt-on-md": Facts,
    "trial-direct-io": DirectIo,
    "trial-thin-stale": ThinStale,
    "trial-bench-devices": BenchDevices,
    "trial-bench-presets": BenchPresets,
];
