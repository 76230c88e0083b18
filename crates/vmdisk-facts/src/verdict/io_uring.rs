//! Whether QEMU may use io_uring: by its version, the kernel's, and the kernel's settings.

use std::ops::Range;

use crate::capability::{Answer, Basis, Capability};
use crate::fact::Fact;
use crate::host::{Kernel, Limits};
use crate::index::HostIndex;
use crate::known_bad::Bug;
use crate::missing::Missing;
use crate::target::Target;
use crate::version::Version;

/// The least locked memory with which a ring is sure to be made: it needs some pages on older kernels.
const LEAST_MEMLOCK: u64 = 1 << 20;

/// Whether QEMU may use io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoUring {
    /// Kernel, QEMU and libvirt allow it.
    Allowed,
    /// QEMU gets a ring as far as is known, and this speaks against it.
    Doubtful(String),
    /// QEMU gets no ring, for this reason.
    Denied(String),
}

impl IoUring {
    /// The verdict for a target on a host.
    ///
    /// # Errors
    /// Fails if the facts do not show whether the kernel allows it.
    pub fn of(host: Result<&HostIndex<'_>, Missing>, target: &Target) -> Result<Self, Missing> {
        if let Some(why) = target.kernel.and_then(lacking_in) {
            return Ok(IoUring::Denied(why));
        }
        let host = host?;
        Ok(match denied(host)? {
            Some(why) => IoUring::Denied(why),
            None => doubt(&host.facts().limits, target).map_or(IoUring::Allowed, IoUring::Doubtful),
        })
    }

    /// The reason why QEMU gets no ring.
    pub fn denied(self) -> Option<String> {
        match self {
            IoUring::Denied(why) => Some(why),
            IoUring::Allowed | IoUring::Doubtful(_) => None,
        }
    }
}

/// What speaks against io_uring where the kernel allows it.
fn doubt(limits: &Limits, target: &Target) -> Option<String> {
    if let Fact::Known(bytes) = limits.memlock_bytes
        && bytes < LEAST_MEMLOCK
    {
        return Some(format!("RLIMIT_MEMLOCK is {bytes} bytes"));
    }
    if !target.can(Capability::AioIoUring).is_yes() {
        return Some("it is not known that this QEMU has io_uring".to_owned());
    }
    let lacks = |capability: &Capability| target.can(*capability).is_no();
    let needed = [Capability::LibvirtIoUring, Capability::KernelIoUring];
    if let Some(capability) = needed.iter().find(|it| lacks(it)) {
        return Some(format!("the target lacks {}", capability.name()));
    }
    match target.has_bug(Bug::IoUringInIothread) {
        Answer::Yes(Basis::Assumed(qemu)) => Some(format!("io_uring hangs in QEMU {qemu}")),
        _ => None,
    }
}

/// The reason why the kernel or its settings deny io_uring to QEMU; `None` if they allow it.
fn denied(host: &HostIndex<'_>) -> Result<Option<String>, Missing> {
    if let Some(why) = lacking(&host.facts().kernel) {
        return Ok(Some(why));
    }
    let limits = &host.facts().limits;
    let disabled = limits.io_uring_disabled.clone();
    match disabled.needed(|| "kernel.io_uring_disabled".to_owned())? {
        // A kernel without the switch does not restrict io_uring.
        None | Some(0) => return Ok(None),
        Some(1) => {}
        Some(2..) => {
            return Ok(Some(
                "kernel.io_uring_disabled is 2: no process gets io_uring".to_owned(),
            ));
        }
    }
    let group = limits.io_uring_group.clone();
    match group.needed(|| "kernel.io_uring_group".to_owned())? {
        None | Some(..0) => Ok(Some(
            "kernel.io_uring_disabled is 1 and kernel.io_uring_group names no group, so only privileged processes get io_uring"
                .to_owned(),
        )),
        Some(group) => outside_of(host, group),
    }
}

/// The reason why QEMU is denied io_uring where one group may use it: its user is not a member.
fn outside_of(host: &HostIndex<'_>, group: i64) -> Result<Option<String>, Missing> {
    let what =
        || format!("whether QEMU's user is in group {group}, the only group that may use io_uring");
    let libvirt = host.facts().libvirt.as_ref();
    let user = libvirt.and_then(|libvirt| libvirt.qemu_user.as_ref());
    let Some(user) = user.needed(what)? else {
        return Err(Missing::new(
            what(),
            "the user that QEMU runs as is not known",
        ));
    };
    // An account that was only assumed to be QEMU's, from its usual name, proves nothing.
    if !user.is_configured.is_settled() {
        return Err(Missing::new(
            what(),
            "libvirt's qemu.conf could not be read",
        ));
    }
    let is_in = match u32::try_from(group) {
        Ok(group) => user.is_in(group).needed(what)?.unwrap_or(false),
        Err(_) => false,
    };
    let name = user.name.as_str().needed(what)?.unwrap_or("QEMU's user");
    Ok((!is_in).then(|| {
        format!(
            "kernel.io_uring_disabled is 1, kernel.io_uring_group is {group}, and QEMU's user {name} is not in that group"
        )
    }))
}

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
