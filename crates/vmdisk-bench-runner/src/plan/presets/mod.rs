//! The built-in comparisons, each a plan in YAML.

/// A built-in comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its plan, as a user could write it.
    pub text: &'static str,
}

/// Every preset with a fixed plan; the preset `lint` is built from a guest instead.
pub const PRESETS: [Preset; 15] = [
    Preset {
        name: "five-backends",
        text: include_str!("five-backends.yaml"),
    },
    Preset {
        name: "cache-modes",
        text: include_str!("cache-modes.yaml"),
    },
    Preset {
        name: "crystaldiskmark",
        text: include_str!("crystaldiskmark.yaml"),
    },
    Preset {
        name: "dd-direct",
        text: include_str!("dd-direct.yaml"),
    },
    Preset {
        name: "thin-chunk",
        text: include_str!("thin-chunk.yaml"),
    },
    Preset {
        name: "schedulers",
        text: include_str!("schedulers.yaml"),
    },
    Preset {
        name: "raid1-read",
        text: include_str!("raid1-read.yaml"),
    },
    Preset {
        name: "preallocation",
        text: include_str!("preallocation.yaml"),
    },
    Preset {
        name: "buffered",
        text: include_str!("buffered.yaml"),
    },
    Preset {
        name: "queue-depth",
        text: include_str!("queue-depth.yaml"),
    },
    Preset {
        name: "latency-at-rate",
        text: include_str!("latency-at-rate.yaml"),
    },
    Preset {
        name: "iothread-queues",
        text: include_str!("iothread-queues.yaml"),
    },
    Preset {
        name: "huge-pages",
        text: include_str!("huge-pages.yaml"),
    },
    Preset {
        name: "volumes",
        text: include_str!("volumes.yaml"),
    },
    Preset {
        name: "raid1-write",
        text: include_str!("raid1-write.yaml"),
    },
];
