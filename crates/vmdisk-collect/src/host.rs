//! The host as a whole: kernel, processors, memory, limits, maintenance; all from small files.

use std::collections::BTreeMap;

use vmdisk_facts::host::{Cpu, HugePages, Kernel, Kvm, Limits, Memory};
use vmdisk_facts::{Fact, Reason, Version};

use crate::obstacle::{fact_of, missing, obstacle};
use crate::root::Root;

/// Boot parameters that rules ask about; any other may hold a secret.
const BOOT_PARAMETERS: [&str; 8] = [
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "transparent_hugepage",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "isolcpus",
];

pub(crate) fn kernel(root: &Root) -> Kernel {
    let release = fact_of(
        "/proc/sys/kernel/osrelease",
        root.text("/proc/sys/kernel/osrelease"),
        |text| (!text.is_empty()).then(|| text.to_owned()),
    );
    // Releases such as 6.8.0-45 and 6.1.0-28 name no stable release; Ubuntu and Debian tell it elsewhere.
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
        Fact::Known(release) => match vendor(release, signature.is_some(), distribution.as_deref())
        {
            Some(vendor) => Fact::Known(vendor),
            // Whoever built it, it carries no vendor's mark.
            None => Fact::Absent,
        },
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

/// The upstream version in Debian's build (`#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)`).
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

/// Who built the kernel, by the mark each vendor leaves in its release; the distribution alone is no proof.
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
        // Every rebuild of RHEL has its mark; the distribution says which one it is.
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

/// Debian before 13: the version, a small number, and a flavour (`6.1.0-28-amd64`).
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
                // Given several times, as sizes of huge pages are, each counts.
                if values.is_empty() {
                    Fact::Absent
                } else {
                    Fact::Known(values.join(","))
                }
            }
            Err(error) => Fact::Unknown(obstacle("/proc/cmdline", error)),
        };
        ((*wanted).to_owned(), fact)
    });
    parameters.collect()
}

pub(crate) fn cpu(root: &Root) -> Cpu {
    let arch = fact_of(
        "/proc/sys/kernel/arch",
        root.text("/proc/sys/kernel/arch"),
        |text| Some(text.to_owned()),
    );
    // The file came with Linux 6.1. What this program was built for runs here, and is nearly always the same.
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
            // Other architectures do not announce it there.
            None => Fact::Absent,
        },
        Err(error) => Fact::Unknown(obstacle("/proc/cpuinfo", &error)),
    };
    let counted = |path: &str| fact_of(path, root.text(path), count);
    Cpu {
        arch,
        virt,
        count: counted("/sys/devices/system/cpu/online"),
        numa_nodes: counted("/sys/devices/system/node/online"),
    }
}

/// How many numbers a list such as `0-3,8` holds.
fn count(list: &str) -> Option<u32> {
    let mut total = 0_u32;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        total = total.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(total)
}

pub(crate) fn kvm(root: &Root) -> Kvm {
    let dev_kvm = root.exists("/dev/kvm");
    let access = if !root.is_live() {
        match root.answers().kvm_access {
            Some(allowed) => Fact::Known(allowed),
            // A recording that asked leaves it out only if there is nothing to ask about.
            None if root.answers().privileged.is_some() => Fact::Absent,
            None => Fact::NotCollected,
        }
    } else if !dev_kvm {
        Fact::Absent
    } else {
        let wanted = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
        let allowed = rustix::fs::access("/dev/kvm", wanted).is_ok();
        if let Some(recorder) = root.recorder() {
            recorder.answer(|answers| answers.kvm_access = Some(allowed));
        }
        Fact::Known(allowed)
    };
    let parameter = |module: &str| {
        let path = format!("/sys/module/{module}/parameters/nested");
        fact_of(&path, root.text(&path), |text| match text {
            "Y" | "1" => Some(true),
            "N" | "0" => Some(false),
            _ => None,
        })
    };
    // Only one of the two modules can be there; a kernel may also have KVM built in without either.
    let nested = match parameter("kvm_intel") {
        Fact::Absent => parameter("kvm_amd"),
        settled @ (Fact::Known(_) | Fact::Unknown(_) | Fact::NotCollected) => settled,
    };
    Kvm {
        dev_kvm: Fact::Known(dev_kvm),
        access,
        proven: Fact::NotCollected,
        nested,
    }
}

pub(crate) fn limits(root: &Root) -> Limits {
    let sysctl = |name: &str| format!("/proc/sys/{name}");
    let memlock = "/proc/self/limits";
    Limits {
        io_uring_disabled: fact_of(
            "kernel.io_uring_disabled",
            root.text(sysctl("kernel/io_uring_disabled")),
            |text| text.parse().ok(),
        ),
        io_uring_group: fact_of(
            "kernel.io_uring_group",
            root.text(sysctl("kernel/io_uring_group")),
            |text| text.parse().ok(),
        ),
        aio_max_nr: fact_of(
            "fs.aio-max-nr",
            root.text(sysctl("fs/aio-max-nr")),
            |text| text.parse().ok(),
        ),
        aio_nr: fact_of("fs.aio-nr", root.text(sysctl("fs/aio-nr")), |text| {
            text.parse().ok()
        }),
        memlock_bytes: match root.text(memlock) {
            Ok(text) => {
                let soft = text
                    .lines()
                    .find_map(|line| line.strip_prefix("Max locked memory"))
                    .and_then(|rest| rest.split_whitespace().next());
                match soft {
                    Some("unlimited") => Fact::Absent,
                    Some(bytes) => match bytes.parse() {
                        Ok(bytes) => Fact::Known(bytes),
                        Err(_) => Fact::unknown(Reason::Parse, format!("{memlock}: '{bytes}'")),
                    },
                    None => Fact::unknown(
                        Reason::Parse,
                        format!("{memlock}: no line 'Max locked memory'"),
                    ),
                }
            }
            Err(error) => Fact::Unknown(obstacle(memlock, &error)),
        },
    }
}

pub(crate) fn memory(root: &Root) -> Memory {
    let meminfo = root.text("/proc/meminfo");
    let kilobytes = |name: &str| match &meminfo {
        Ok(text) => {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let number = value
                .and_then(|value| value.trim().strip_suffix(" kB"))
                .and_then(|kb| kb.parse::<u64>().ok());
            match number.and_then(|kb| kb.checked_mul(1024)) {
                Some(bytes) => Fact::Known(bytes),
                None => Fact::unknown(Reason::Parse, format!("/proc/meminfo: {name}")),
            }
        }
        Err(error) => Fact::Unknown(obstacle("/proc/meminfo", error)),
    };
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    Memory {
        total_bytes: kilobytes("MemTotal"),
        available_bytes: kilobytes("MemAvailable"),
        thp: fact_of(thp, root.text(thp), |text| {
            let (chosen, _) = text.split_once('[')?.1.split_once(']')?;
            Some(chosen.to_owned())
        }),
        hugepages: hugepages(root),
    }
}

fn hugepages(root: &Root) -> BTreeMap<u64, HugePages> {
    let at = "/sys/kernel/mm/hugepages";
    let sizes = root.names(at).unwrap_or_default();
    let pages = sizes.into_iter().filter_map(|name| {
        let kib = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let number = |file: &str| {
            let path = format!("{at}/{name}/{file}");
            fact_of(&path, root.text(&path), |text| text.parse().ok())
        };
        let pages = HugePages {
            nr: number("nr_hugepages"),
            free: number("free_hugepages"),
            reserved: number("resv_hugepages"),
        };
        Some((kib, pages))
    });
    pages.collect()
}

pub(crate) fn security_modules(root: &Root) -> Fact<Vec<String>> {
    let path = "/sys/kernel/security/lsm";
    match root.text(path) {
        Ok(text) => Fact::Known(
            text.trim()
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        ),
        Err(error) if missing(&error) => Fact::unknown(
            Reason::Namespace,
            format!("{path} does not exist: securityfs is not mounted here"),
        ),
        Err(error) => Fact::Unknown(obstacle(path, &error)),
    }
}

/// Units that keep disks healthy.
const UNITS: [&str; 7] = [
    "fstrim.timer",
    "lvm2-monitor.service",
    "dm-event.socket",
    "mdmonitor.service",
    "mdcheck_start.timer",
    "smartmontools.service",
    "smartd.service",
];

/// Which maintenance is switched on, read from systemd's files: asking systemd would start a program.
pub(crate) fn services(root: &Root) -> BTreeMap<String, Fact<String>> {
    let installed = |unit: &str| {
        [
            "/etc/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
        ]
        .iter()
        .any(|directory| root.exists(format!("{directory}/{unit}")))
    };
    let wanted = |unit: &str| {
        [
            "/etc/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
        ]
        .iter()
        .any(|directory| {
            let wants = root.names(directory).unwrap_or_default();
            let wants = wants
                .iter()
                .filter(|name| name.ends_with(".wants") || name.ends_with(".requires"));
            wants
                .into_iter()
                .any(|name| root.is_named(format!("{directory}/{name}/{unit}")))
        })
    };
    UNITS
        .iter()
        .map(|unit| {
            let state = if wanted(unit) {
                Fact::Known("enabled".to_owned())
            } else if installed(unit) {
                Fact::Known("disabled".to_owned())
            } else {
                Fact::Absent
            };
            ((*unit).to_owned(), state)
        })
        .collect()
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
    fn debian_tells_the_stable_release_in_its_build() {
        let build = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)";
        assert_eq!(debian_build(build), Some(Version(6, 1, 119)));
        assert_eq!(debian_build("#1 SMP PREEMPT_DYNAMIC @0"), None);
    }

    #[test]
    fn a_vendor_is_told_by_the_mark_in_the_release() {
        let told = |release: &str, distribution: &str| vendor(release, false, Some(distribution));
        assert_eq!(told("6.1.0-28-amd64", "debian").as_deref(), Some("debian"));
        assert_eq!(
            told("6.12.77+deb13-amd64", "debian").as_deref(),
            Some("debian")
        );
        assert_eq!(
            told("6.18.44-fc-v657", "debian"),
            None,
            "somebody else's kernel under Debian"
        );
        assert_eq!(
            told("5.14.0-503.el9.x86_64", "almalinux").as_deref(),
            Some("almalinux")
        );
        assert_eq!(
            told("6.11.4-301.fc41.x86_64", "fedora").as_deref(),
            Some("fedora")
        );
        assert_eq!(
            told("6.4.0-150600.23.25-default", "opensuse-leap").as_deref(),
            Some("opensuse-leap")
        );
        assert_eq!(told("6.8.12-4-pve", "debian").as_deref(), Some("proxmox"));
        assert_eq!(
            told("6.12.0-100.28.2.el9uek.x86_64", "ol").as_deref(),
            Some("ol")
        );
        assert_eq!(
            told("6.8.0-45-generic", "ubuntu"),
            None,
            "Ubuntu's own kernels have a signature"
        );
        assert_eq!(
            vendor("6.8.0-45-generic", true, Some("ubuntu")).as_deref(),
            Some("ubuntu")
        );
    }
}
