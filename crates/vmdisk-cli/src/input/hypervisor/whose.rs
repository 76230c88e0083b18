//! The host that the guests of a libvirt run on.

use std::path::Path;

use vmdisk::Facts;

use super::stop;
use super::virsh::Virsh;
use crate::input::bounded;
use crate::stop::Stop;

/// The limit of a name of Linux.
const MAX_NAME: u64 = 256;

/// The host of a libvirt.
#[derive(Debug)]
pub(crate) struct LibvirtHost {
    uri: String,
    /// The name that libvirt gives, otherwise the host in the URI; none if neither is known.
    name: Option<String>,
    is_here: bool,
}

impl LibvirtHost {
    /// Asks libvirt.
    pub(crate) fn ask(virsh: &Virsh) -> Result<Self, Stop> {
        let uri = virsh.uri().map_err(|error| stop(&error))?;
        let named = host_of(&uri);
        // Not every driver knows it.
        let said = virsh.host_name().ok().filter(|name| !is_loopback(name));
        let is_here = match (&said, &named) {
            (Some(name), _) => {
                let here = bounded::regular(Path::new("/proc/sys/kernel/hostname"), MAX_NAME);
                here.is_ok_and(|here| is_same(name, String::from_utf8_lossy(&here).trim()))
            }
            (None, named) => named.is_none(),
        };
        let name = said.or(named);
        Ok(LibvirtHost { uri, name, is_here })
    }

    /// Refuses the facts of the host that this runs on for guests of another one.
    pub(crate) fn refuse_live(&self) -> Result<(), Stop> {
        if self.is_here {
            return Ok(());
        }
        let LibvirtHost { uri, .. } = self;
        let name = self.name.as_deref().unwrap_or("another host");
        let title =
            format!("--live collects the facts of this host, but {uri} is libvirt on {name}");
        Err(Stop::new(title).help(format!(
            "run the command there, such as `ssh {name} vmdisk lint --all-domains --live`, or use its facts: \
             `virsh -c {uri} dumpxml GUEST | ssh {name} vmdisk facts --for - > {name}.json`, then --facts {name}.json"
        )))
    }

    /// Refuses facts that name another host.
    pub(crate) fn refuse_facts(&self, facts: &Facts) -> Result<(), Stop> {
        let (Some(name), Some(of)) = (&self.name, facts.host.id.as_ref().known()) else {
            return Ok(());
        };
        if is_same(name, of) {
            return Ok(());
        }
        let title = format!(
            "the facts are those of {of}, but {} is libvirt on {name}",
            self.uri
        );
        Err(Stop::new(title).help(format!(
            "use the facts of {name}; `--host NAME='<domain *>'`, with the name of the facts file, says that the guests \
             are to run on its host"
        )))
    }
}

/// The host that a URI of libvirt names, unless it is this one.
fn host_of(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    (!host.is_empty() && !is_loopback(host)).then(|| host.to_owned())
}

fn is_loopback(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    first == "localhost" || name == "::1" || name.starts_with("127.")
}

/// True for two names of a host, of which one may lack the domain.
fn is_same(one: &str, other: &str) -> bool {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    match one.contains('.') && other.contains('.') {
        true => one.eq_ignore_ascii_case(other),
        false => first(one) == first(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_another_host_or_none() {
        for (uri, host) in [
            ("qemu:///system", None),
            ("qemu+unix:///system?socket=/run/a", None),
            ("qemu:///embed?root=/srv/a@b", None),
            ("qemu+ssh://root@kvm2/system", Some("kvm2")),
            (
                "qemu+tls://kvm2.example.com:16514/system",
                Some("kvm2.example.com"),
            ),
            ("qemu+tcp://[fe80::1]:16509/system", Some("fe80::1")),
            ("qemu+tcp://localhost/system", None),
            ("qemu+tcp://127.0.0.1:1/system", None),
            ("qemu+tcp://[::1]/system", None),
            ("test:///default", None),
        ] {
            assert_eq!(host_of(uri).as_deref(), host, "{uri}");
        }
    }

    #[test]
    fn a_host_is_the_same_with_and_without_its_domain() {
        assert!(is_same("kvm2", "kvm2.example.com"));
        assert!(is_same("KVM2.example.com", "kvm2.example.com"));
        assert!(!is_same("kvm2.a.com", "kvm2.b.com"));
        assert!(!is_same("kvm2", "kvm1"));
    }
}
