//! The part of a source's address that the model cannot hold.

use vmdisk_model::NetworkProtocol;

use super::read_network::rbd_parts;
use super::url::WrittenUrl;

/// Why no image is read from an address such as `ftp://user:password@host/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameObstacle {
    /// It contains a password.
    Password,
    /// It has this option.
    Option(String),
}

impl NameObstacle {
    /// The obstacle in a file name of a `-drive`; `None` if there is none, or it is of another kind.
    ///
    /// ```
    /// use vmdisk_qemu::NameObstacle;
    ///
    /// let found = NameObstacle::in_name("nfs://server/export/a.img?uid=3");
    /// assert_eq!(found, Some(NameObstacle::Option("uid".to_owned())));
    /// ```
    pub fn in_name(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("rbd:") {
            return in_rbd(rest);
        }
        if has_iscsi_password(name) {
            return Some(NameObstacle::Password);
        }
        let url = WrittenUrl::parse(name)?;
        let (scheme, transport) = match url.scheme.split_once('+') {
            Some((scheme, transport)) => (scheme, Some(transport)),
            None => (url.scheme.as_str(), None),
        };
        let protocol = NetworkProtocol::from_word(scheme)?;
        if url.user.is_some_and(|user| user.contains([':', '%'])) {
            return Some(NameObstacle::Password);
        }
        let has_query = matches!(protocol, NetworkProtocol::Http | NetworkProtocol::Https);
        if has_query || transport == Some("unix") {
            return None;
        }
        let query = url.query?;
        let first = query.split(['&', ';', '=']).next()?;
        Some(NameObstacle::Option(first.to_owned()))
    }
}

/// True for `iscsi://user%password@…`, in which `%` does not begin an escape.
fn has_iscsi_password(name: &str) -> bool {
    let authority = name
        .strip_prefix("iscsi://")
        .and_then(|rest| rest.split('/').next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains('%'))
}

/// The first option behind `rbd:pool/image` that is not read.
fn in_rbd(rest: &str) -> Option<NameObstacle> {
    let parts = rbd_parts(rest)?;
    let unread = parts.iter().skip(1).find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let is_read = match key {
            "id" | "conf" | "mon_host" | "keyring" => part.contains('='),
            "auth_supported" => value == "none",
            _ => false,
        };
        (!is_read).then(|| key.to_owned())
    });
    unread.map(|key| match key.as_str() {
        "key" => NameObstacle::Password,
        _ => NameObstacle::Option(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_or_the_option_is_found() {
        let option = |name: &str| Some(NameObstacle::Option(name.to_owned()));
        let password = Some(NameObstacle::Password);
        for (name, expected) in [
            ("ftp://u:p@h/a.img", password.clone()),
            ("iscsi://user%pw@h/iqn.2001-04.a:b/0", password.clone()),
            ("nfs://h/a.img?uid=3", option("uid")),
            (
                "ssh://u@h/a.img?host_key_check=no",
                option("host_key_check"),
            ),
            (
                "rbd:p/i:id=a:auth_supported=cephx",
                option("auth_supported"),
            ),
            ("rbd:p/i:id=a:key=c2VjcmV0", password),
            ("rbd:p/i:mon_host=a", None),
            ("http://h/a?x=1", None),
            ("ssh://h/a", None),
            ("/srv/a.img", None),
        ] {
            assert_eq!(NameObstacle::in_name(name), expected, "{name}");
        }
    }
}
