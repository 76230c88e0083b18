//! The users who share the host, which affects severities.

vmdisk_source::words! {
    /// The users who share the host.
    #[derive(Default)]
    pub enum Policy as as_str {
        /// Guests of different owners, who must not see each other's data.
        #[default]
        MultiTenant = "multi-tenant",
        /// All guests belong to one owner.
        SingleTenant = "single-tenant",
        /// Nothing on the host needs protection.
        Lab = "lab",
    }
}
