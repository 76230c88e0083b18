//! libvirt on this host: its version, the settings of its QEMU driver, and QEMU's user, without starting a program.

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
}
