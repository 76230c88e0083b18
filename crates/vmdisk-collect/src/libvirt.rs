//! libvirt on this host: its version, the settings of its QEMU driver, and QEMU's user, without starting a program.

use std::path::Path;

use vmdisk_facts::libvirt::{Libvirt, QemuConf, QemuUser};
use vmdisk_facts::{Fact, Reason, Version};

use crate::accounts::Accounts;
use crate::libvirt_conf::{self, Setting};
use crate::obstacle::{missing, obstacle};
use crate::programs::{Packages, upstream};
use crate::root::Root;

/// The accounts that distributions create for QEMU: on Debian and derivatives, on Red Hat and derivatives.
const ACCOUNTS: [&str; 2] = ["libvirt-qemu", "qemu"];

/// Returns libvirt's facts, detected by its library; absent if it is not installed.
pub(crate) fn libvirt(root: &Root, packages: &Packages) -> Fact<Libvirt> {
    let mut directories = vec![
        "/usr/lib64".to_owned(),
        "/usr/lib".to_owned(),
        "/usr/local/lib".to_owned(),
    ];
    // Debian has a directory for each architecture.
    let triplets = root.names("/usr/lib").unwrap_or_default();
    directories.extend(
        triplets
            .iter()
            .filter(|name| name.contains("-linux-gnu"))
            .map(|name| format!("/usr/lib/{name}")),
    );
    let versions = directories
        .iter()
        .flat_map(|directory| root.names(directory).unwrap_or_default());
    let newest = versions.filter_map(|name| library_version(&name)).max();
    let package = packages.version_of(&["libvirt0", "libvirt"]);
    let Some(version) = newest.or_else(|| package.as_deref().and_then(upstream)) else {
        return Fact::Absent;
    };
    let qemu_conf = qemu_conf(root);
    let qemu_user = qemu_user(root, &qemu_conf);
    Fact::Known(Libvirt {
        version: Fact::Known(version),
        package: package.map_or(Fact::NotCollected, Fact::Known),
        qemu_conf,
        qemu_user,
        ..Libvirt::default()
    })
}

/// Parses a library name: `libvirt.so.0.10010.0` is 10.10.0, as libtool's number is major times 1000 plus minor, then micro.
fn library_version(name: &str) -> Option<Version> {
    let (number, micro) = name.strip_prefix("libvirt.so.0.")?.split_once('.')?;
    let number: u32 = number.parse().ok()?;
    Some(Version(number / 1000, number % 1000, micro.parse().ok()?))
}

/// Returns the settings of the QEMU driver; absent if the file does not exist.
fn qemu_conf(root: &Root) -> Fact<QemuConf> {
    let path = "/etc/libvirt/qemu.conf";
    let text = match root.text(path) {
        Ok(text) => text,
        Err(error) if missing(&error) => return Fact::Absent,
        Err(error) => return Fact::Unknown(obstacle(path, &error)),
    };
    let settings = libvirt_conf::settings(&text);
    let get = |name: &str| settings.get(name);
    let wrong = |name: &str, setting: &Setting| {
        format!(
            "{path}: {name} = {}",
            crate::obstacle::shortened(&setting.to_string())
        )
    };
    let word = |name: &str| match get(name) {
        None => Fact::Absent,
        Some(Setting::Text(text)) => Fact::Known(text.clone()),
        Some(other @ (Setting::Number(_) | Setting::List(_))) => {
            Fact::unknown(Reason::Parse, wrong(name, other))
        }
    };
    let number = |name: &str| match get(name) {
        None => Fact::Absent,
        Some(Setting::Number(number)) => Fact::Known(*number),
        Some(other @ (Setting::Text(_) | Setting::List(_))) => {
            Fact::unknown(Reason::Parse, wrong(name, other))
        }
    };
    // libvirt accepts a single string as a list.
    let list = |name: &str| match get(name) {
        None => Fact::Absent,
        Some(Setting::List(list)) => Fact::Known(list.clone()),
        Some(Setting::Text(text)) if text.is_empty() => Fact::Known(Vec::new()),
        Some(Setting::Text(text)) => Fact::Known(vec![text.clone()]),
        Some(other @ Setting::Number(_)) => Fact::unknown(Reason::Parse, wrong(name, other)),
    };
    Fact::Known(QemuConf {
        user: word("user"),
        group: word("group"),
        dynamic_ownership: number("dynamic_ownership").map(|number| number != 0),
        security_driver: list("security_driver"),
        namespaces: list("namespaces"),
        seccomp_sandbox: number("seccomp_sandbox"),
        cgroup_device_acl: list("cgroup_device_acl"),
    })
}

/// Returns the user that QEMU runs as: from the settings, otherwise the distribution's account.
fn qemu_user(root: &Root, conf: &Fact<QemuConf>) -> Fact<QemuUser> {
    let set =
        |which: fn(&QemuConf) -> &Fact<String>| conf.as_ref().and_then(|conf| which(conf).clone());
    let (user, group) = (set(|conf| &conf.user), set(|conf| &conf.group));
    let accounts = Accounts::read(root);
    let found = match user.value() {
        Some(user) => accounts.user(user),
        None => ACCOUNTS.iter().find_map(|name| accounts.user(name)),
    };
    let Some(found) = found else {
        return match user {
            Fact::Known(user) => Fact::unknown(
                Reason::Undecided,
                format!("user `{user}` is not in /etc/passwd"),
            ),
            Fact::Absent => Fact::Absent,
            unknown @ (Fact::Unknown(_) | Fact::NotCollected) => {
                unknown.and_then(|_| Fact::NotCollected)
            }
        };
    };
    let gid = match group.value() {
        Some(group) => match accounts.group(group) {
            Some(gid) => Fact::Known(gid),
            None => Fact::unknown(
                Reason::Undecided,
                format!("group `{group}` is not in /etc/group"),
            ),
        },
        None => Fact::Known(found.gid),
    };
    let groups = gid.clone().map(|gid| accounts.groups_of(&found.name, gid));
    let is_configured = match &user {
        Fact::Known(_) => Fact::Known(true),
        Fact::Absent => Fact::Known(false),
        Fact::Unknown(unknown) => Fact::Unknown(unknown.clone()),
        Fact::NotCollected => Fact::NotCollected,
    };
    Fact::Known(QemuUser {
        is_configured,
        name: Fact::Known(found.name),
        uid: Fact::Known(found.uid),
        gid,
        groups,
    })
}

/// The services that start QEMU.
const DAEMONS: [&str; 2] = ["virtqemud", "libvirtd"];

/// Returns QEMU's limit of locked memory, inherited from the daemon: the running daemon's limit, otherwise its unit's.
pub(crate) fn memlock(root: &Root) -> Fact<u64> {
    for daemon in DAEMONS {
        let Some(pid) = root
            .text(format!("/run/{daemon}.pid"))
            .ok()
            .and_then(|text| text.parse::<u32>().ok())
        else {
            continue;
        };
        // The process id may be reused by now.
        let is_it = root
            .text(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name == daemon);
        if is_it {
            return crate::memlock::soft_limit(root, &format!("/proc/{pid}/limits"));
        }
    }
    let units = DAEMONS.iter().find_map(|daemon| unit_limit(root, daemon));
    units.unwrap_or_else(|| {
        Fact::unknown(
            Reason::Undecided,
            "libvirt's daemon is not running, and its unit sets no LimitMEMLOCK",
        )
    })
}

/// Returns the limit of a unit and its drop-ins; the last value counts, as in systemd.
fn unit_limit(root: &Root, daemon: &str) -> Option<Fact<u64>> {
    let unit = format!("{daemon}.service");
    let mut files: Vec<String> = [
        "/etc/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ]
    .iter()
    .map(|directory| format!("{directory}/{unit}"))
    .filter(|path| root.exists(path))
    .take(1)
    .collect();
    for directory in ["/usr/lib/systemd/system", "/etc/systemd/system"] {
        let directory = format!("{directory}/{unit}.d");
        let names = root.names(&directory).unwrap_or_default();
        files.extend(
            names
                .iter()
                .filter(|name| name.ends_with(".conf"))
                .map(|name| format!("{directory}/{name}")),
        );
    }
    let mut found = None;
    for file in files {
        let text = root.text(Path::new(&file)).unwrap_or_default();
        for line in text.lines() {
            if let Some(value) = line.trim().strip_prefix("LimitMEMLOCK=") {
                found = Some(match size(value) {
                    Some(size) => size,
                    None => Fact::unknown(Reason::Parse, format!("{file}: LimitMEMLOCK={value}")),
                });
            }
        }
    }
    found
}

/// Parses the soft limit in the notation of systemd.exec(5); absent means unlimited.
fn size(text: &str) -> Option<Fact<u64>> {
    let soft = text.split(':').next().unwrap_or(text).trim();
    if soft == "infinity" {
        return Some(Fact::Absent);
    }
    let end = soft
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(soft.len());
    let (number, unit) = soft.split_at(end);
    let power = match unit {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(1024_u64.pow(power))
        .map(Fact::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_name_contains_the_version() {
        assert_eq!(
            library_version("libvirt.so.0.9000.0"),
            Some(Version(9, 0, 0))
        );
        assert_eq!(
            library_version("libvirt.so.0.10010.1"),
            Some(Version(10, 10, 1))
        );
        assert_eq!(library_version("libvirt.so.0"), None);
        assert_eq!(library_version("libvirt-qemu.so.0.9000.0"), None);
    }

    #[test]
    fn sizes_are_parsed_like_in_systemd() {
        assert_eq!(size("64M"), Some(Fact::Known(64 << 20)));
        assert_eq!(size("64M:infinity"), Some(Fact::Known(64 << 20)));
        assert_eq!(size("infinity"), Some(Fact::Absent));
        assert_eq!(size("4096"), Some(Fact::Known(4096)));
        assert_eq!(size("64MB"), None);
        assert_eq!(size(""), None);
    }
}
