//! The users who share the host, which affects severities.

/// The users who share the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Guests of different owners, who must not see each other's data.
    #[default]
    MultiTenant,
    /// All guests belong to one owner.
    SingleTenant,
    /// Nothing on the host needs protection.
    Lab,
}

impl Policy {
    /// Every policy.
    pub const ALL: &'static [Policy] = &[Policy::MultiTenant, Policy::SingleTenant, Policy::Lab];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Policy::MultiTenant => "multi-tenant",
            Policy::SingleTenant => "single-tenant",
            Policy::Lab => "lab",
        }
    }
}
