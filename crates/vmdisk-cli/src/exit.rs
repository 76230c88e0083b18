//! Exit codes: the contract with scripts.

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was done, and nothing at or above the threshold was found.
    #[default]
    Clean,
    /// Something at or above the threshold was found, or `--diff` would change something.
    Findings,
    /// The tool could not do its job for some input; this wins over findings.
    CouldNot,
}

impl Exit {
    /// Clean, or with findings.
    pub(crate) const fn clean_if(is_clean: bool) -> Self {
        match is_clean {
            true => Exit::Clean,
            false => Exit::Findings,
        }
    }

    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::CouldNot => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_done_wins_over_findings() {
        assert_eq!(Exit::Findings.max(Exit::CouldNot).code(), 2);
        assert_eq!(Exit::Findings.max(Exit::Clean).code(), 1);
    }
}
