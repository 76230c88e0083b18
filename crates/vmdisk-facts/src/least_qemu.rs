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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_libvirt_requires_a_qemu_since_its_row() {
        for (since, least, _) in LEAST_QEMU {
            let target = |libvirt: Version, qemu: Version| Target {
                libvirt: Some(libvirt),
                qemu: Some(qemu),
                ..Target::default()
            };
            assert_eq!(target(*since, *least).impossible(), None);
            let older = Version(least.0 - 1, 9, 0);
            assert!(target(*since, older).impossible().is_some(), "{since}");
        }
        let oldest: Target = "libvirt=0.9,qemu=0.10".parse().unwrap();
        assert_eq!(oldest.impossible(), None);
    }
}
