//! Mutants that no test can notice, each with the reason.

/// End of the file's path, the original, the mutant, and the reason.
pub(super) const KNOWN: &[[&str; 4]] = &[];
