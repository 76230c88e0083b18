//! The first version with a field.

/// The release of libvirt or QEMU that first knew something: major, minor, micro.
pub type Since = (u32, u32, u32);
