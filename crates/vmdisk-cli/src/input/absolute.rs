//! Absolute paths of inputs.

use std::path::{Component, Path, PathBuf};

/// A path that is absolute and has no `..` in it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let is_up = |component: Component<'_>| component == Component::ParentDir;
    if path.components().any(is_up)
        && let Ok(real) = std::fs::canonicalize(path)
    {
        return real;
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
