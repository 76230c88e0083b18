//! The severity of a finding, and the subject of a rule.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Works as it is; a matter of taste. Reported only on request.
    Pedantic,
    /// Could be better.
    Advice,
    /// Probably not what was intended.
    Warning,
    /// The guest does not start, or data is lost or leaked.
    Error,
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: &'static [Severity] = &[
        Severity::Pedantic,
        Severity::Advice,
        Severity::Warning,
        Severity::Error,
    ];

    /// The name in reports and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Pedantic => "pedantic",
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The guest does not start, or libvirt refuses the configuration.
    Startup,
    /// Data is lost or corrupted.
    DataSafety,
    /// Data is visible to users who must not see it.
    Security,
    /// The disk is slower than it could be.
    Performance,
    /// Space is never freed.
    Space,
    /// A setting has no effect, or a misleading one.
    Clarity,
}

impl Group {
    /// Every group.
    pub const ALL: &'static [Group] = &[
        Group::Startup,
        Group::DataSafety,
        Group::Security,
        Group::Performance,
        Group::Space,
        Group::Clarity,
    ];

    /// The name in lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::Startup => "startup",
            Group::DataSafety => "data-safety",
            Group::Security => "security",
            Group::Performance => "performance",
            Group::Space => "space",
            Group::Clarity => "clarity",
        }
    }
}
