//! The severity of a finding, and the subject of a rule.

vmdisk_source::words! {
    /// The severity of a finding.
    pub enum Severity as as_str {
        /// Works as it is; a matter of taste. Reported only on request.
        Pedantic = "pedantic",
        /// Could be better.
        Advice = "advice",
        /// Probably not what was intended.
        Warning = "warning",
        /// The guest does not start, or data is lost or leaked.
        Error = "error",
    }
}

vmdisk_source::words! {
    /// The subject of a rule.
    pub enum Group as as_str {
        /// The guest does not start, or libvirt refuses the configuration.
        Startup = "startup",
        /// Data is lost or corrupted.
        DataSafety = "data-safety",
        /// Data is visible to users who must not see it.
        Security = "security",
        /// The disk is slower than it could be.
        Performance = "performance",
        /// Space is never freed.
        Space = "space",
        /// A setting has no effect, or a misleading one.
        Clarity = "clarity",
    }
}
