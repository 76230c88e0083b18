//! The other guests of a run on the host of a guest.

use vmdisk_model::{Bytes, FieldPath, ImageField};

/// The facts about the other guests of a run that concern one guest on the same host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherGuests {
    /// Images of the guest that other guests open too.
    pub images: Vec<SharedImage>,
    /// Resources of the host that are used up by this guest and those before it.
    pub shortages: Vec<Shortage>,
}

/// An image that another guest opens too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedImage {
    /// The index of the guest's disk.
    pub disk: usize,
    /// The number of images above this one in the disk's chain.
    pub depth: usize,
    /// The users of the image.
    pub sharing: Sharing,
    /// The other guest.
    pub guest: String,
    /// The number of further guests that use the image like the other one.
    pub more: usize,
}

impl SharedImage {
    /// The field of the image.
    pub const fn at(&self) -> FieldPath {
        FieldPath::Image(self.disk, self.depth, ImageField::Path)
    }
}

/// The users of an image that two guests open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Both guests write it.
    BothWrite,
    /// The other guest writes it, and this one reads it.
    OtherWrites,
    /// This guest writes it, and an overlay of the other one is based on it.
    IsBacking,
}

/// A resource of the host that all guests together use up, although each guest alone does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The setting of the guest that needs the resource.
    pub at: FieldPath,
    /// The resource.
    pub resource: Resource,
    /// The number of guests, up to this one.
    pub guests: usize,
    /// The number that these guests need.
    pub needed: u64,
    /// The number that the host has.
    pub available: u64,
}

/// A resource that the guests of a host share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Huge pages of this size.
    HugePages(Bytes),
    /// Slots for Linux AIO.
    AioSlots,
    /// Bytes of the file system with this file.
    Space(String),
}
