//! The oldest QEMU that each libvirt accepts.

use crate::target::Target;
use crate::version::Version;

/// The first libvirt of a range, the oldest QEMU that it accepts, and the source; in order.
pub const LEAST_QEMU: &[(Version, Version, &str)] = &[
    (Version(10, 6, 0), Version(5, 2, 0), "libvirt NEWS 10.6.0"),
    (Version(11, 2, 0), Version(6, 2, 0), "libvirt NEWS 11.2.0"),
    (Version(12, 4, 0), Version(7, 2, 0), "libvirt NEWS 12.4.0"),
];

impl Target {
    /// The reason why no host can be this target; `None` if a host can.
    ///
    /// ```
    /// use vmdisk_facts::Target;
    /// let target: Target = "libvirt=12.5,qemu=6.2".parse()?;
    /// assert_eq!(target.impossible().as_deref(), Some("libvirt 12.5 requires QEMU 7.2 or later, not 6.2"));
    /// let target: Target = "libvirt=12.3,qemu=6.2".parse()?;
    /// assert_eq!(target.impossible(), None);
    /// # Ok::<(), vmdisk_facts::TargetError>(())
    /// ```
    pub fn impossible(&self) -> Option<String> {
        let (libvirt, qemu) = (self.libvirt?, self.qemu?);
        let rows = LEAST_QEMU.iter().rev();
        let (_, least, _) = rows.into_iter().find(|(since, ..)| *since <= libvirt)?;
        (qemu < *least)
            .then(|| format!("libvirt {libvirt} requires QEMU {least} or later, not {qemu}"))
    }
}
