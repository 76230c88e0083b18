//! Mutants that no test can notice, each with the reason.

/// End of the file's path, the original, the mutant, and the reason.
pub(super) const KNOWN: &[[&str; 4]] = &[[
    "plan/decide.rs",
    "!has_those_of_its_controller(disk)",
    "true",
    "a planned SCSI disk has no iothread of its own, so that the next filter drops it, too",
]];
