//! Patterns of paths, as in a .gitignore file.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use vmdisk_source::Span;

/// The directory of the patterns: paths are given from it.
const ROOT: &str = "/";

/// Patterns of paths below a directory, as in a .gitignore file in it.
#[derive(Clone, Debug)]
pub struct Patterns(Gitignore);

impl Default for Patterns {
    /// No patterns.
    fn default() -> Self {
        Patterns(Gitignore::empty())
    }
}

impl Patterns {
    /// True if they match a path from their directory, or a directory above it.
    pub fn has(&self, path: &Path) -> bool {
        !self.0.is_empty() && {
            let path = Path::new(ROOT).join(path);
            self.0.matched_path_or_any_parents(path, false).is_ignore()
        }
    }

    /// These patterns, and the mistakes in them with their places; `whole` is the place of all of them.
    pub(super) fn new(patterns: &[(String, Span)], whole: Span) -> (Self, Vec<(Span, String)>) {
        let mut builder = GitignoreBuilder::new(ROOT);
        let mut mistakes = Vec::new();
        for (pattern, span) in patterns {
            if let Err(error) = builder.add_line(None, pattern) {
                mistakes.push((*span, error.to_string()));
            }
        }
        let matcher = builder.build().unwrap_or_else(|error| {
            mistakes.push((whole, error.to_string()));
            Gitignore::empty()
        });
        (Patterns(matcher), mistakes)
    }
}
