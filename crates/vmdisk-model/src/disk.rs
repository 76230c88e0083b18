//! One disk.

use crate::{Backend, BackendSource, Frontend};

/// One disk: a guest-visible frontend on a host-side backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// What the guest sees.
    pub frontend: Frontend,
    /// What the host opens, and how.
    pub backend: Backend,
}

impl Disk {
    /// A disk with every option left open.
    pub fn new(frontend: Frontend, source: impl Into<BackendSource>) -> Self {
        Disk {
            frontend,
            backend: Backend::new(source),
        }
    }

    /// How people know the disk: its target's name, or a word that says it has none.
    pub fn name(&self) -> &str {
        self.frontend.target.as_deref().unwrap_or("(no target)")
    }

    /// True if the guest may write: neither marked read-only nor a CD drive, which libvirt forces
    /// to be read-only.
    pub fn is_writable(&self) -> bool {
        !self.backend.is_read_only && self.frontend.effective_device() != crate::Device::Cdrom
    }
}
