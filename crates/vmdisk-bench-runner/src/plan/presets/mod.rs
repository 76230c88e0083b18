//! The built-in comparisons, each a plan in YAML.

/// A built-in comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its plan, as a user could write it.
    pub text: &'static str,
}

/// Lists presets, whose plans are beside this file.
macro_rules! presets {
    ($($name:literal)+) => {
        &[$(Preset { name: $name, text: include_str!(concat!($name, ".yaml")) },)+]
    };
}

/// Every preset with a fixed plan; the preset `lint` is built from a guest instead.
pub const PRESETS: &[Preset] = presets! {
    "five-backends"
    "cache-modes"
    "crystaldiskmark"
    "dd-direct"
    "thin-chunk"
    "schedulers"
    "raid1-read"
    "preallocation"
    "buffered"
    "queue-depth"
    "latency-at-rate"
    "iothread-queues"
    "huge-pages"
    "volumes"
    "raid1-write"
};
