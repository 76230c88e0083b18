//! Kernels without io_uring: older than the table of capabilities says, or built without it by a vendor.

use std::ops::Range;

use crate::capability::Capability;
use crate::host::Kernel;
use crate::target::Target;
use crate::version::Version;

/// Kernels of vendors that are built without io_uring although their version has it upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoUringVendorRow {
    /// The vendors, as `ID` in os-release spells them.
    pub vendors: &'static [&'static str],
    /// The version that all these kernels have.
    pub version: Version,
    /// The builds: the number after the version in the release, 284 in `5.14.0-284.11.1.el9_2.x86_64`.
    pub builds: Range<u32>,
    /// Where the row comes from.
    pub source: &'static str,
}

/// The vendors' kernels without io_uring.
pub const VENDORS: &[IoUringVendorRow] = &[IoUringVendorRow {
    vendors: &["rhel", "centos", "almalinux", "rocky", "ol"],
    version: Version(5, 14, 0),
    // 9.0 has build 70, 9.2 build 284, and 9.3 build 362.
    builds: 70..362,
    source: "liburing issue 611: ENOSYS on RHEL 9.0 to 9.2; issue 989: 9.3 has io_uring and denies it by default",
}];

/// The reason why a kernel has no io_uring; `None` if it has it, or if nothing is known.
///
/// ```
/// use vmdisk_facts::{Fact, Version, host::Kernel, io_uring};
/// let kernel = |release: &str, version| Kernel {
///     release: Fact::Known(release.to_owned()),
///     version: Fact::Known(version),
///     vendor: Fact::Known("almalinux".to_owned()),
///     ..Kernel::default()
/// };
/// assert!(io_uring::lacking(&kernel("4.18.0-553.el8_10.x86_64", Version(4, 18, 0))).is_some());
/// assert!(io_uring::lacking(&kernel("5.14.0-284.11.1.el9_2.x86_64", Version(5, 14, 0))).is_some());
/// assert!(io_uring::lacking(&kernel("5.14.0-362.8.1.el9_3.x86_64", Version(5, 14, 0))).is_none());
/// ```
pub fn lacking(kernel: &Kernel) -> Option<String> {
    let version = kernel.version.value().copied()?;
    if let Some(why) = lacking_in(version) {
        return Some(why);
    }
    let vendor = kernel.vendor.value()?;
    let release = kernel.release.value()?;
    let build = Version::leading(release.split_once('-')?.1)?.0;
    let is_without = |row: &&IoUringVendorRow| {
        row.vendors.contains(&vendor.as_str())
            && row.version == version
            && row.builds.contains(&build)
    };
    VENDORS
        .iter()
        .find(is_without)
        .map(|_| format!("the kernel {release} of {vendor} is built without io_uring"))
}

/// The reason why an upstream version has no io_uring.
pub fn lacking_in(version: Version) -> Option<String> {
    let target = Target {
        kernel: Some(version),
        ..Target::default()
    };
    let row = Capability::KernelIoUring.row();
    target.can(Capability::KernelIoUring).is_no().then(|| {
        format!(
            "Linux has io_uring since {}, and this is {version}",
            row.since
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    #[test]
    fn a_vendor_lacks_it_in_its_builds_of_one_version() {
        for (vendor, version, release, expected) in [
            ("rhel", Version(5, 14, 0), "5.14.0-69.el9", false),
            ("rhel", Version(5, 14, 0), "5.14.0-70.13.1.el9_0", true),
            ("rhel", Version(5, 14, 0), "5.14.0-361.el9", true),
            ("rhel", Version(5, 14, 0), "5.14.0-362.8.1.el9_3", false),
            ("rhel", Version(5, 15, 0), "5.15.0-70.el9", false),
            ("debian", Version(5, 14, 0), "5.14.0-70-amd64", false),
            ("rhel", Version(5, 14, 0), "5.14.0", false),
        ] {
            let kernel = Kernel {
                release: Fact::Known(release.to_owned()),
                version: Fact::Known(version),
                vendor: Fact::Known(vendor.to_owned()),
                ..Kernel::default()
            };
            assert_eq!(lacking(&kernel).is_some(), expected, "{vendor} {release}");
        }
    }
}
