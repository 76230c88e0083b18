//! The comparisons that are ready to run, each a plan in YAML.

/// A comparison that is ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its plan, as a user could have written it.
    pub text: &'static str,
}

/// Every preset that a plan describes; `lint` is made of a guest instead.
pub const PRESETS: [Preset; 7] = [
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
];
