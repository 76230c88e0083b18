//! Problems that prevent a guest from being written as a command line.

use std::fmt;

use vmdisk_model::FieldPath;

/// A setting that a QEMU command line cannot express, or that makes QEMU crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteProblem {
    /// The field with the setting.
    pub at: FieldPath,
    /// The disk by its name, if the field belongs to one.
    pub disk: Option<String>,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl fmt::Display for WriteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(disk) = &self.disk {
            write!(f, "disk {disk}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WriteProblem {}

/// All problems that prevent a guest from being written, in the order of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteProblems(pub Vec<WriteProblem>);

impl fmt::Display for WriteProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for WriteProblems {}
