//! An image and what there is to say about it.

use super::finding::ImageFinding;
use super::look::Image;

/// A requested image, with its findings.
pub(super) struct Shown {
    /// The given path.
    pub(super) path: String,
    pub(super) image: Image,
    pub(super) findings: Vec<ImageFinding>,
}
