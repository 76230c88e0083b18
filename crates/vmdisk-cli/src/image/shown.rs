//! An image and what there is to say about it.

use super::finding::Finding;
use super::look::Image;

/// An image that was asked for, and what there is to say about it.
pub(super) struct Shown {
    /// The path as it was given.
    pub(super) path: String,
    pub(super) image: Image,
    pub(super) findings: Vec<Finding>,
}
