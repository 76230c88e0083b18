//! The kind of a document, determined by its root element.

/// The kind of a document according to its root element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    /// A guest: `<domain>`.
    Domain,
    /// The state file of a running guest: `<domstatus>`, with a `<domain>` inside.
    DomainStatus,
    /// Several disks of a guest: `<devices>`.
    Devices,
    /// One disk: `<disk>`.
    Disk,
    /// A storage pool, which contains volumes for disks: `<pool>`.
    Pool,
    /// A volume of a storage pool: `<volume>`.
    Volume,
    /// A snapshot of a guest: `<domainsnapshot>`, with the guest inside if libvirt wrote it.
    DomainSnapshot,
    /// A checkpoint of a guest's disks: `<domaincheckpoint>`, likewise.
    DomainCheckpoint,
    /// A backup of a guest's disks: `<domainbackup>`.
    DomainBackup,
    /// Another kind of libvirt document, by its root element (`network`, `secret`, …).
    OtherLibvirt(&'static str),
    /// XML that does not belong to libvirt.
    Foreign,
    /// No XML element at all.
    NotXml,
}

/// Root elements of libvirt's other documents.
const OTHERS: [&str; 17] = [
    "capabilities",
    "cpu",
    "cpudata",
    "cpuTest",
    "device",
    "domainCapabilities",
    "filter",
    "filterbinding",
    "hostdev",
    "interface",
    "network",
    "networkport",
    "networkstatus",
    "nodedev",
    "poolCapabilities",
    "secret",
    "storagepoolCapabilities",
];

impl RootKind {
    /// The kind of document that the name of a root element identifies.
    pub fn of_name(name: &str) -> Self {
        match name {
            "domain" => RootKind::Domain,
            "domstatus" => RootKind::DomainStatus,
            "devices" => RootKind::Devices,
            "disk" => RootKind::Disk,
            "pool" => RootKind::Pool,
            "volume" => RootKind::Volume,
            "domainsnapshot" => RootKind::DomainSnapshot,
            "domaincheckpoint" => RootKind::DomainCheckpoint,
            "domainbackup" => RootKind::DomainBackup,
            other => OTHERS
                .iter()
                .find(|known| **known == other)
                .map_or(RootKind::Foreign, |known| RootKind::OtherLibvirt(known)),
        }
    }

    /// True if [`read`](crate::read) accepts such a document.
    pub const fn is_readable(self) -> bool {
        !matches!(
            self,
            RootKind::OtherLibvirt(_) | RootKind::Foreign | RootKind::NotXml
        )
    }
}

/// The kind of document of `text`, from its first element alone.
///
/// Cheap: it reads past the declaration, comments and a document type, and no further. The rest of the text need not be
/// valid.
///
/// ```
/// use vmdisk_libvirt::{RootKind, sniff};
/// assert_eq!(sniff("<?xml version='1.0'?><!-- web --><domain type='kvm'>"), RootKind::Domain);
/// assert_eq!(sniff("<pool type='dir'/>"), RootKind::Pool);
/// assert_eq!(sniff("<network/>"), RootKind::OtherLibvirt("network"));
/// assert_eq!(sniff("<html/>"), RootKind::Foreign);
/// assert_eq!(sniff("name: web1"), RootKind::NotXml);
/// ```
pub fn sniff(text: &str) -> RootKind {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let after = if let Some(inside) = rest.strip_prefix("<!--") {
            inside.split_once("-->")
        } else if let Some(inside) = rest.strip_prefix("<?") {
            inside.split_once("?>")
        } else if let Some(inside) = rest.strip_prefix("<!DOCTYPE") {
            skip_document_type(inside)
        } else {
            break;
        };
        match after {
            Some((_, after)) => rest = after,
            None => return RootKind::NotXml,
        }
    }
    let Some(tag) = rest.strip_prefix('<') else {
        return RootKind::NotXml;
    };
    let name = tag
        .split(['>', '/', ' ', '\t', '\r', '\n', '<', '=', '\'', '"'])
        .next()
        .unwrap_or_default();
    match name.chars().next() {
        Some(first) if first.is_alphabetic() || first == '_' || first == ':' => {
            RootKind::of_name(name)
        }
        Some(_) | None => RootKind::NotXml,
    }
}

/// The text after a document type, whose internal subset may contain `>`.
fn skip_document_type(inside: &str) -> Option<(&str, &str)> {
    let end = inside.find(['>', '['])?;
    if inside.as_bytes()[end] == b'>' {
        return Some((&inside[..end], &inside[end + 1..]));
    }
    let (_, after) = inside.split_once(']')?;
    after.split_once('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_found_behind_everything_that_may_stand_before_it() {
        for (text, kind) in [
            ("\u{feff}\n<disk/>", RootKind::Disk),
            ("<!-- <pool> -->\n<?pi?><devices>", RootKind::Devices),
            (
                "<!DOCTYPE domain [<!ENTITY a 'b>'>]><domain/>",
                RootKind::Domain,
            ),
            ("<domstatus state='running'>", RootKind::DomainStatus),
            ("<domainsnapshot>", RootKind::DomainSnapshot),
            ("<network>", RootKind::OtherLibvirt("network")),
            ("<x:domain>", RootKind::Foreign),
            ("", RootKind::NotXml),
            ("<", RootKind::NotXml),
            ("<!-- never closed", RootKind::NotXml),
            ("< domain>", RootKind::NotXml),
            ("</domain>", RootKind::NotXml),
            ("<domain", RootKind::Domain),
        ] {
            assert_eq!(sniff(text), kind, "{text}");
        }
    }

    #[test]
    fn no_other_root_is_listed_twice_or_shadows_a_readable_one() {
        for (at, name) in OTHERS.iter().enumerate() {
            assert!(!OTHERS[..at].contains(name), "{name}");
            assert_eq!(RootKind::of_name(name), RootKind::OtherLibvirt(name));
        }
    }
}
