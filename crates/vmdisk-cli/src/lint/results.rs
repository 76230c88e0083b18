//! The results of all inputs, in their order.

use crate::lint::checked::{Checked, Report};
use crate::lint::inputs::Input;

/// One input that is done.
pub(crate) struct Done {
    pub(crate) checked: Checked,
    /// The files that it names, and that were read with it.
    pub(crate) named: Vec<Checked>,
    /// Its text in the output.
    pub(crate) rendered: String,
    /// The fixed text, as a diff; empty without changes.
    pub(crate) diff: String,
    /// Standard input after fixing.
    pub(crate) fixed: Option<String>,
}

impl Done {
    pub(crate) fn new(input: &Input) -> Self {
        Done {
            checked: Checked {
                path: input.path(),
                uri: input.uri(),
                outcome: Ok(Report::empty()),
            },
            named: Vec::new(),
            rendered: String::new(),
            diff: String::new(),
            fixed: None,
        }
    }
}

/// The results of all inputs.
pub(crate) struct Results {
    /// The inputs, and messages about directories.
    pub(crate) all: Vec<Checked>,
    /// Their texts, where the output has one for each input.
    pub(crate) rendered: String,
    pub(crate) diffs: String,
    /// Standard input after fixing.
    pub(crate) fixed: Option<String>,
}
