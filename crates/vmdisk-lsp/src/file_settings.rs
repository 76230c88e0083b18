//! The questions of the server to its caller.

use std::path::Path;

use vmdisk::{Document, LintReport, Target};

/// Settings of files, which the caller knows.
///
/// A path is absolute; for a text without a file it is the URI.
pub trait FileSettings {
    /// Checks a document as `vmdisk lint` checks the file: `None` if the settings exclude the file.
    ///
    /// The returned document is the checked one; of a spec, with the guest that is planned for the host.
    ///
    /// # Errors
    /// If the settings of the file are wrong.
    fn lint(
        &mut self,
        path: &Path,
        document: Document,
    ) -> Result<Option<(Document, LintReport)>, SettingsError>;

    /// Returns the text after all safe fixes; `None` if it cannot be read or the settings are wrong.
    fn fix(&mut self, path: &Path, text: &str) -> Option<String>;

    /// Returns the versions that will run the file.
    fn target(&mut self, path: &Path) -> Target;
}

/// A mistake in the settings of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The mistake, with its place.
    pub message: String,
}
