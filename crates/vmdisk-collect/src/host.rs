//! The host: kernel, processors, limits, security, maintenance; all from small files.

use std::collections::BTreeMap;
use std::str::FromStr;

use vmdisk_facts::host::{Cpu, Kernel, Limits, Security};
use vmdisk_facts::{Fact, Reason, Version};

use crate::io_uring;
use crate::memlock;
use crate::memory;
use crate::obstacle::{fact_of, obstacle};
use crate::root::Root;

/// Kernel parameters that rules use; other parameters may hold secrets.
const BOOT_PARAMETERS: [&str; 20] = [
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "transparent_hugepage",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "isolcpus",
    "nohz_full",
    "numa_balancing",
    "mitigations",
    "kvm_intel.nested",
    "kvm_amd.nested",
    "elevator",
    "scsi_mod.use_blk_mq",
    "nvme_core.multipath",
    "nvme.poll_queues",
    "cgroup_no_v1",
    "systemd.unified_cgroup_hierarchy",
];

pub(crate) fn kernel(root: &Root) -> Kernel {
    let release = root.fact("/proc/sys/kernel/osrelease", |text| {
        (!text.is_empty()).then(|| text.to_owned())
    });
    // Releases such as 6.8.0-45 and 6.1.0-28 do not contain the stable version; Ubuntu and Debian publish it elsewhere.
    let signature = root.text("/proc/version_signature").ok();
    let build = root.text("/proc/sys/kernel/version").ok();
    let upstream = signature
        .as_deref()
        .and_then(|text| text.split_whitespace().nth(2))
        .and_then(Version::leading)
        .or_else(|| build.as_deref().and_then(debian_build));
    let version = match (upstream, &release) {
        (Some(version), _) => Fact::Known(version),
        (None, Fact::Known(release)) => match Version::leading(release) {
            Some(version) => Fact::Known(version),
            None => Fact::unknown(
                Reason::Parse,
                format!("'{release}' does not begin with a version"),
            ),
        },
        (None, unknown) => unknown.as_ref().and_then(|_| Fact::NotCollected),
    };
    let distribution = os_release_id(root);
    let vendor = match &release {
        Fact::Known(release) => Fact::or_absent(vendor(
            release,
            signature.is_some(),
            distribution.as_deref(),
        )),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => {
            release.as_ref().and_then(|_| Fact::NotCollected)
        }
    };
    Kernel {
        release,
        version,
        vendor,
        cmdline: boot_parameters(root),
    }
}

/// Parses the upstream version in Debian's build (`#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)`).
fn debian_build(build: &str) -> Option<Version> {
    let mut words = build.split_whitespace();
    words.find(|word| *word == "Debian")?;
    words.next().and_then(Version::leading)
}

fn os_release_id(root: &Root) -> Option<String> {
    let text = root
        .text("/etc/os-release")
        .or_else(|_| root.text("/usr/lib/os-release"))
        .ok()?;
    let id = text.lines().find_map(|line| line.strip_prefix("ID="))?;
    Some(id.trim().trim_matches(['"', '\'']).to_owned())
}

/// Returns the vendor of a kernel, by the mark in its release; the distribution alone is not sufficient.
fn vendor(release: &str, has_signature: bool, distribution: Option<&str>) -> Option<String> {
    if release.ends_with("-pve") {
        return Some("proxmox".to_owned());
    }
    if has_signature {
        return Some("ubuntu".to_owned());
    }
    if release.contains("uek") {
        return Some("ol".to_owned());
    }
    let marked = |mark: &str| {
        release.split(['.', '-', '_', '+']).any(|part| {
            part.strip_prefix(mark).is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
            })
        })
    };
    if marked("el") {
        // RHEL and its rebuilds share a mark; the distribution distinguishes them.
        return Some(distribution.unwrap_or("rhel").to_owned());
    }
    if marked("fc") && release.matches('.').count() >= 3 {
        return Some("fedora".to_owned());
    }
    match distribution {
        Some("debian") if marked("deb") || is_debian(release) => Some("debian".to_owned()),
        Some(suse @ ("sles" | "opensuse-leap" | "opensuse-tumbleweed"))
            if release.ends_with("-default") =>
        {
            Some(suse.to_owned())
        }
        Some("arch") if release.contains("-arch") => Some("arch".to_owned()),
        Some(_) | None => None,
    }
}

/// Matches releases of Debian before 13: version, small number and flavour (`6.1.0-28-amd64`).
fn is_debian(release: &str) -> bool {
    let mut parts = release.split('-');
    let numbered = |part: Option<&str>| {
        part.is_some_and(|part| {
            part.split('.')
                .all(|n| n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let version = parts.next();
    numbered(version)
        && numbered(parts.next())
        && parts.next().is_some_and(|flavour| flavour.ends_with("64"))
}

fn boot_parameters(root: &Root) -> BTreeMap<String, Fact<String>> {
    let line = root.text("/proc/cmdline");
    let parameters = BOOT_PARAMETERS.iter().map(|wanted| {
        let fact = match &line {
            Ok(line) => {
                let values: Vec<&str> = line
                    .split_whitespace()
                    .filter_map(|parameter| parameter.split_once('='))
                    .filter_map(|(name, value)| (name == *wanted).then_some(value))
                    .collect();
                // Each occurrence counts, as in sizes of huge pages.
                Fact::or_absent((!values.is_empty()).then(|| values.join(",")))
            }
            Err(error) => Fact::Unknown(obstacle("/proc/cmdline", error)),
        };
        ((*wanted).to_owned(), fact)
    });
    parameters.collect()
}

pub(crate) fn cpu(root: &Root) -> Cpu {
    let arch = root.word("/proc/sys/kernel/arch");
    // The file exists since Linux 6.1. Otherwise the target of this build is nearly always correct.
    let arch = match arch {
        Fact::Absent if root.is_live() => Fact::Known(std::env::consts::ARCH.to_owned()),
        Fact::Absent => Fact::NotCollected,
        settled @ (Fact::Known(_) | Fact::Unknown(_) | Fact::NotCollected) => settled,
    };
    let virt = match root.text("/proc/cpuinfo") {
        Ok(text) => match text.lines().find(|line| line.starts_with("flags")) {
            Some(flags) => Fact::Known(
                flags
                    .split_whitespace()
                    .filter(|flag| matches!(*flag, "vmx" | "svm"))
                    .map(str::to_owned)
                    .collect(),
            ),
            // Other architectures do not list virtualization flags there.
            None => Fact::Absent,
        },
        Err(error) => Fact::Unknown(obstacle("/proc/cpuinfo", &error)),
    };
    let counted = |path: &str| root.fact(path, count);
    Cpu {
        arch,
        virt,
        count: counted("/sys/devices/system/cpu/online"),
        numa_nodes: counted("/sys/devices/system/node/online"),
        nodes: memory::nodes(root),
    }
}

/// Counts the numbers in a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let mut total = 0_u32;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        total = total.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(total)
}

/// A setting of the kernel, by its path; messages have its name.
fn sysctl<T: FromStr>(root: &Root, path: &str) -> Fact<T> {
    let read = root.text(format!("/proc/sys/{path}"));
    fact_of(&path.replace('/', "."), read, |text| text.parse().ok())
}

pub(crate) fn limits(root: &Root) -> Limits {
    Limits {
        io_uring_disabled: sysctl(root, "kernel/io_uring_disabled"),
        io_uring_group: sysctl(root, "kernel/io_uring_group"),
        io_uring_setup: io_uring::setup(root),
        aio_max_nr: sysctl(root, "fs/aio-max-nr"),
        aio_nr: sysctl(root, "fs/aio-nr"),
        memlock_bytes: memlock::soft_limit(root, "/proc/self/limits"),
    }
}

/// Returns the state of security modules.
pub(crate) fn security(root: &Root) -> Security {
    let (enforce, enabled) = (
        "/sys/fs/selinux/enforce",
        "/sys/module/apparmor/parameters/enabled",
    );
    let selinux = root.fact(enforce, |text| match text {
        "0" => Some("permissive".to_owned()),
        "1" => Some("enforcing".to_owned()),
        _ => None,
    });
    Security {
        selinux_booleans: match selinux {
            Fact::Known(_) => selinux_booleans(root),
            _ => Fact::NotCollected,
        },
        selinux,
        apparmor: root.fact(enabled, |text| match text {
            "Y" => Some(true),
            "N" => Some(false),
            _ => None,
        }),
    }
}

/// Returns the booleans on which the access of guests to storage depends. A policy without one decides otherwise.
fn selinux_booleans(root: &Root) -> Fact<BTreeMap<String, bool>> {
    let mut found = BTreeMap::new();
    for name in ["virt_use_nfs", "virt_use_samba", "virt_use_fusefs"] {
        // The value, and the one that is set but not in force yet.
        let value = root.fact(
            &format!("/sys/fs/selinux/booleans/{name}"),
            |text| match text.split(' ').next() {
                Some("0") => Some(false),
                Some("1") => Some(true),
                _ => None,
            },
        );
        match value {
            Fact::Known(value) => drop(found.insert(name.to_owned(), value)),
            Fact::Absent => {}
            value => return value.and_then(|_| Fact::NotCollected),
        }
    }
    Fact::Known(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_numbers_is_counted() {
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count("0"), Some(1));
        assert_eq!(count(""), None);
        assert_eq!(count("3-1"), None);
    }

    #[test]
    fn booleans_of_an_active_selinux_are_collected() {
        let folder = tempfile::tempdir().unwrap();
        let selinux = folder.path().join("sys/fs/selinux");
        std::fs::create_dir_all(selinux.join("booleans")).unwrap();
        let root = Root::new(folder.path());
        assert_eq!(security(&root).selinux_booleans, Fact::NotCollected);
        for (name, text) in [
            ("enforce", "1"),
            ("booleans/virt_use_nfs", "0 1"),
            ("booleans/virt_use_samba", "1 1"),
        ] {
            std::fs::write(selinux.join(name), text).unwrap();
        }
        let found = [("virt_use_nfs", false), ("virt_use_samba", true)];
        let found = found.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(security(&root).selinux_booleans, Fact::Known(found));
        std::fs::write(selinux.join("booleans/virt_use_samba"), "on").unwrap();
        assert!(!security(&root).selinux_booleans.is_known());
    }

    #[test]
    fn debians_build_contains_the_stable_release() {
        let build = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)";
        assert_eq!(debian_build(build), Some(Version(6, 1, 119)));
        assert_eq!(debian_build("#1 SMP PREEMPT_DYNAMIC @0"), None);
    }

    #[test]
    fn a_vendor_is_recognized_by_the_mark_in_the_release() {
        let vendor_of =
            |release: &str, distribution: &str| vendor(release, false, Some(distribution));
        assert_eq!(
            vendor_of("6.1.0-28-amd64", "debian").as_deref(),
            Some("debian")
        );
        assert_eq!(
            vendor_of("6.12.77+deb13-amd64", "debian").as_deref(),
            Some("debian")
        );
        assert_eq!(
            vendor_of("6.18.44-fc-v657", "debian"),
            None,
            "another kernel under Debian"
        );
        assert_eq!(
            vendor_of("5.14.0-503.el9.x86_64", "almalinux").as_deref(),
            Some("almalinux")
        );
        assert_eq!(
            vendor_of("6.11.4-301.fc41.x86_64", "fedora").as_deref(),
            Some("fedora")
        );
        assert_eq!(
            vendor_of("6.4.0-150600.23.25-default", "opensuse-leap").as_deref(),
            Some("opensuse-leap")
        );
        assert_eq!(
            vendor_of("6.8.12-4-pve", "debian").as_deref(),
            Some("proxmox")
        );
        assert_eq!(
            vendor_of("6.12.0-100.28.2.el9uek.x86_64", "ol").as_deref(),
            Some("ol")
        );
        assert_eq!(
            vendor_of("6.8.0-45-generic", "ubuntu"),
            None,
            "Ubuntu's own kernels have a signature"
        );
        assert_eq!(
            vendor("6.8.0-45-generic", true, Some("ubuntu")).as_deref(),
            Some("ubuntu")
        );
    }
}
