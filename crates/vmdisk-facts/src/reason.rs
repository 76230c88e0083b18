//! Why an answer is missing.

use std::fmt;

/// A question without an answer, and why.
/// It is one pointer, because the facts of a host are thousands of values, most of them known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unknown(Box<(Reason, String)>);

impl Unknown {
    /// An unanswered question with its reason and what exactly went wrong.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self(Box::new((reason, detail.into())))
    }

    /// The class of the obstacle, from which the remedy follows.
    pub fn reason(&self) -> &Reason {
        &self.0.0
    }

    /// What exactly went wrong, for a person; empty when there is nothing to add.
    pub fn detail(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, detail) = &*self.0;
        match detail.is_empty() {
            true => write!(f, "{reason}"),
            false => write!(f, "{reason}: {detail}"),
        }
    }
}

/// The class of obstacle that kept an answer away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The collector was not allowed to look.
    Permission,
    /// A program or interface that would answer is not installed.
    ToolMissing,
    /// The running kernel has no interface that answers this.
    UnsupportedKernel,
    /// The answer did not come in time, as on a hung network mount.
    Timeout,
    /// The answer could not be understood.
    Parse,
    /// The answer belongs to another mount namespace than the collector's.
    Namespace,
    /// Two sources contradict each other.
    Conflict,
    /// The answer was removed before the facts were shared.
    Redacted,
    /// Everything there is to see was seen, and it does not decide the question.
    Undecided,
    /// Not collected. Shown for a missing key; never written to a file.
    NotCollected,
    /// A reason that a newer collector wrote and this version has no word for.
    Other(String),
}

impl Reason {
    /// The word used in files and messages.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Permission => "permission",
            Self::ToolMissing => "tool-missing",
            Self::UnsupportedKernel => "unsupported-kernel",
            Self::Timeout => "timeout",
            Self::Parse => "parse",
            Self::Namespace => "namespace",
            Self::Conflict => "conflict",
            Self::Redacted => "redacted",
            Self::Undecided => "undecided",
            Self::NotCollected => "not-collected",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for Reason {
    fn from(word: &str) -> Self {
        match word {
            "permission" => Self::Permission,
            "tool-missing" => Self::ToolMissing,
            "unsupported-kernel" => Self::UnsupportedKernel,
            "timeout" => Self::Timeout,
            "parse" => Self::Parse,
            "namespace" => Self::Namespace,
            "conflict" => Self::Conflict,
            "redacted" => Self::Redacted,
            "undecided" => Self::Undecided,
            "not-collected" => Self::NotCollected,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_back_from_its_own_word() {
        for reason in [
            Reason::Permission,
            Reason::ToolMissing,
            Reason::UnsupportedKernel,
            Reason::Timeout,
            Reason::Parse,
            Reason::Namespace,
            Reason::Conflict,
            Reason::Redacted,
            Reason::Undecided,
            Reason::NotCollected,
        ] {
            assert_eq!(Reason::from(reason.as_str()), reason);
        }
    }
}
