//! The table of an element that depends on a type.

use super::controller::controller_of;
use super::disk::BACKING_STORE;
use super::source::source_of;
use super::{ElementSpec, Pick};

impl Pick {
    /// The table, given the types of the parent and of the child.
    pub fn element(self, parent_type: &str, own_type: Option<&str>) -> &'static ElementSpec {
        match self {
            Pick::Element(element) => element,
            Pick::BackingStore => &BACKING_STORE,
            Pick::SourceOfType => source_of(parent_type),
            Pick::ControllerOfType => controller_of(own_type),
        }
    }
}
