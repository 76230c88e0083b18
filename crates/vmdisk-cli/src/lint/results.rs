//! The result of one input.

use vmdisk::GuestNeeds;

use crate::report::input::InputReport;

/// The result of one input.
#[derive(Default)]
pub(crate) struct InputResult {
    /// The report about it, then about the files that it names and that were read with it. None for a file that was found
    /// and is reported with the command line that names it.
    pub(crate) reports: Vec<InputReport>,
    /// The text of these reports, if it is printed during the run.
    pub(crate) text: String,
    /// The input that is no file, after fixing.
    pub(crate) fixed: Option<String>,
    /// What its guest uses of its host, where guests are compared.
    pub(crate) needs: Option<Box<GuestNeeds>>,
}

impl From<InputReport> for InputResult {
    fn from(report: InputReport) -> Self {
        InputResult {
            reports: vec![report],
            ..InputResult::default()
        }
    }
}
