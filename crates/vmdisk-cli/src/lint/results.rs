//! The result of one input.

use vmdisk::GuestNeeds;

use crate::input::inputs::Input;
use crate::render::document::{Items, Renderer};
use crate::report::input::{DocumentReport, InputReport};

/// One input that is done.
pub(crate) struct Done {
    pub(crate) checked: InputReport,
    /// The files that it names, and that were read with it.
    pub(crate) named: Vec<InputReport>,
    /// For it and for each of these files, the items of each report.
    pub(crate) items: Vec<Vec<Items>>,
    /// True for a file that was found, and that is reported with the command line that names it.
    pub(crate) is_named_elsewhere: bool,
    /// The fixed text, as a diff; empty without changes.
    pub(crate) diff: String,
    /// Standard input after fixing.
    pub(crate) fixed: Option<String>,
    /// True if it is a guest that QEMU runs.
    pub(crate) is_guest: bool,
    /// What its guest uses of its host, where guests are compared.
    pub(crate) needs: Option<Box<GuestNeeds>>,
}

impl Done {
    pub(crate) fn new(input: &Input) -> Self {
        Done {
            checked: InputReport {
                path: input.path(),
                file: input.file.clone(),
                outcome: Ok(DocumentReport::empty()),
            },
            named: Vec::new(),
            items: Vec::new(),
            is_named_elsewhere: false,
            diff: String::new(),
            fixed: None,
            is_guest: false,
            needs: None,
        }
    }

    /// The input and the files that it names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &InputReport> {
        std::iter::once(&self.checked).chain(&self.named)
    }

    /// Makes the items of all reports.
    pub(crate) fn render(&mut self, renderers: &[Renderer<'_>]) {
        let items = |checked| renderers.iter().map(|one| one.items(checked)).collect();
        self.items = self.all().map(items).collect();
    }
}
