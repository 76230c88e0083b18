//! Names and paths as tokens.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use vmdisk_facts::known_bad::virtio_win_version;
use vmdisk_facts::{NamedFile, named_file};
use vmdisk_model::{DevicePath, DevicePathKind, Format};

vmdisk_source::words! {
    /// How much is taken out.
    #[derive(Default)]
    pub enum Level as as_str {
        /// Only credentials.
        Full = "full",
        /// Also every name that somebody chose.
        #[default]
        Shareable = "shareable",
        /// Also what no rule needs.
        Minimal = "minimal",
    }
}

/// Hexadecimal digits of a token: among a million names two are given the same one with a chance of 1 in 500.
const DIGITS: usize = 12;

/// Directories, device directories, file systems and seed images that say nothing of whose they are.
const STANDARD: &[&str] = &[
    "",
    ".",
    "..",
    ".local",
    "bin",
    "block",
    "boot",
    "bus",
    "by-id",
    "by-label",
    "by-partlabel",
    "by-partuuid",
    "by-path",
    "by-uuid",
    "char",
    "cidata.iso",
    "cloud-init.iso",
    "configdrive.iso",
    "data",
    "dev",
    "disk",
    "etc",
    "export",
    "fd",
    "home",
    "hugepages",
    "images",
    "img",
    "input",
    "kubevirt-private",
    "lib",
    "libexec",
    "libvirt",
    "local",
    "mapper",
    "md",
    "media",
    "mnt",
    "noCloud.iso",
    "none",
    "nvram",
    "opt",
    "overlay",
    "proc",
    "pts",
    "qemu",
    "ram",
    "ramfs",
    "root",
    "run",
    "sbin",
    "seed.iso",
    "share",
    "shm",
    "srv",
    "storage",
    "sys",
    "tmp",
    "tmpfs",
    "usr",
    "var",
    "vm",
    "vms",
    "zvol",
];

/// What links in /dev/disk/by-id begin with: it says what kind of name it is, and rules prefer some to others.
const LINKS: &[&str] = &[
    "ata-",
    "dm-",
    "lvm-",
    "md-",
    "nvme-eui.",
    "nvme-",
    "scsi-",
    "usb-",
    "virtio-",
    "wwn-",
];

/// Makes tokens with one salt.
#[derive(Clone)]
pub struct Redactor {
    key: Hmac<Sha256>,
    level: Level,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the key, which would undo what it is for.
        f.debug_struct("Redactor")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor with this salt, which must be stored apart from the redacted files.
    pub fn new(salt: &[u8], level: Level) -> Self {
        Redactor {
            key: Hmac::new_from_slice(salt).expect("HMAC takes keys of any length"),
            level,
        }
    }

    /// How much it takes out.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// A name that distinguishes two salts and reveals neither.
    pub fn salt_id(&self) -> String {
        self.digits("salt", "id", DIGITS)
    }

    /// The token of a name.
    pub fn name(&self, name: &str) -> String {
        match self.level {
            Level::Full => name.to_owned(),
            Level::Shareable | Level::Minimal if STANDARD.contains(&name) => name.to_owned(),
            Level::Shareable | Level::Minimal => format!("x{}", self.digits("name", name, DIGITS)),
        }
    }

    /// A path with its parts as tokens, those of standard directories and devices excepted.
    ///
    /// Each part alone decides on its token, so that a relative path stays relative to the same directory.
    pub fn path(&self, path: &str) -> String {
        let parts: Vec<String> = path.split('/').map(|part| self.part(part)).collect();
        parts.join("/")
    }

    /// The name of a backing or data file as an image has it.
    pub fn image_name(&self, name: &str) -> String {
        match named_file("/", name) {
            NamedFile::Json if self.level == Level::Full && !has_credentials(name) => {
                name.to_owned()
            }
            NamedFile::Json => "json:redacted".to_owned(),
            NamedFile::Protocol(_) if self.level == Level::Full && !has_credentials(name) => {
                name.to_owned()
            }
            NamedFile::Protocol(scheme) => format!("{scheme}:redacted"),
            NamedFile::Path(_) => match name.strip_prefix("file:") {
                Some(path) => format!("file:{}", self.path(path)),
                None => self.path(name),
            },
            // A broken link stays broken.
            NamedFile::Unresolvable if name.starts_with("file:") => "file:redacted".to_owned(),
            NamedFile::Unresolvable if name.is_empty() => String::new(),
            NamedFile::Unresolvable => '\u{fffd}'.to_string(),
        }
    }

    /// As many hexadecimal digits of a value as wanted, at most 64.
    pub(super) fn digits(&self, kind: &str, value: &str, count: usize) -> String {
        let mut mac = self.key.clone();
        mac.update(kind.as_bytes());
        mac.update(&[0]);
        mac.update(value.as_bytes());
        let bytes = mac.finalize().into_bytes();
        let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.truncate(count);
        text
    }

    fn part(&self, part: &str) -> String {
        // `known-bad-build` reads the version of a driver image.
        let is_driver_image = virtio_win_version(part).is_some();
        let is_public = STANDARD.contains(&part) || is_kernel_name(part) || is_driver_image;
        if self.level == Level::Full || is_public {
            return part.to_owned();
        }
        let prefix = LINKS
            .iter()
            .find(|prefix| part.starts_with(*prefix))
            .unwrap_or(&"");
        let ending = part.rsplit_once('.').map_or("", |(_, ending)| ending);
        let ending = if ending == "img" || Format::from_word(ending).is_some() {
            format!(".{ending}")
        } else {
            partition(part).map_or_else(String::new, |number| format!("-part{number}"))
        };
        format!("{prefix}{}{ending}", self.name(part))
    }
}

fn has_credentials(name: &str) -> bool {
    ["@", "?", "key", "password", "cookie", "secret", "token"]
        .iter()
        .any(|word| name.contains(word))
}

fn is_kernel_name(part: &str) -> bool {
    let path = DevicePath::new(format!("/dev/{part}"));
    matches!(path.kind(), DevicePathKind::KernelName(_))
}

fn partition(part: &str) -> Option<u32> {
    part.rsplit_once("-part")
        .and_then(|(_, number)| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        Redactor::new(b"a salt for tests", Level::Shareable)
    }

    #[test]
    fn what_the_rules_go_by_stays() {
        let redactor = redactor();
        for kept in [
            "/dev/sda1",
            "/dev/nvme0n1p2",
            "/var/lib/libvirt/images",
            "../images",
            "/dev/mapper",
        ] {
            assert_eq!(redactor.path(kept), kept);
        }
        let link = redactor.path("/dev/disk/by-id/wwn-0x5000c500a0b1c2d3-part2");
        assert!(link.starts_with("/dev/disk/by-id/wwn-x"), "{link}");
        assert!(
            link.ends_with("-part2") && !link.contains("5000c5"),
            "{link}"
        );
        assert_eq!(redactor.image_name("nbd://joe@host/a"), "nbd:redacted");
        assert_eq!(redactor.image_name("json:{\"a\":1}"), "json:redacted");
    }

    #[test]
    fn another_salt_makes_other_tokens() {
        let other = Redactor::new(b"another salt for tests", Level::Shareable);
        assert_ne!(redactor().name("web1"), other.name("web1"));
        assert_ne!(redactor().salt_id(), other.salt_id());
        assert!(!format!("{other:?}").contains("salt"));
    }

    proptest! {
        #[test]
        fn a_relative_name_stays_relative_to_its_directory(
            directory in "(/[a-z.]{1,6}){1,4}",
            name in "(\\.\\./)?[a-z]{1,5}(/[a-z]{1,5})?(\\.qcow2)?",
        ) {
            let redactor = redactor();
            let joined = redactor.path(&format!("{directory}/{name}"));
            prop_assert_eq!(joined, format!("{}/{}", redactor.path(&directory), redactor.path(&name)));
        }

        #[test]
        fn paths_are_equal_afterwards_only_if_they_were(one in "/[a-c]{1,2}/[a-c.]{1,3}", other in "/[a-c]{1,2}/[a-c.]{1,3}") {
            let redactor = redactor();
            prop_assert_eq!(one == other, redactor.path(&one) == redactor.path(&other));
        }
    }
}
