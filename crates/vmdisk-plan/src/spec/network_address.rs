//! A disk behind a server as the address that people paste: `nbd://store.example:10809/web1`.

use fluent_uri::Uri;
use fluent_uri::component::Authority;
use fluent_uri::encoding::{EStr, Encoder};
use vmdisk_model::NetworkProtocol;

/// A value of the `network` backend that an address holds.
pub(super) struct AddressPart {
    /// Its keys, from the outermost.
    pub(super) path: &'static [&'static str],
    /// The value as text.
    pub(super) value: String,
    /// Where it begins in the address, in bytes.
    pub(super) begins: usize,
}

/// A mistake in an address.
pub(super) struct Fault {
    /// Where, in bytes from the beginning of the address.
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Takes an address apart: `PROTOCOL://[USER@]HOST[:PORT][/NAME][?QUERY]`, and
/// `nbd+unix:///[EXPORT]?socket=PATH`.
///
/// Names are unescaped; the query is not, since libvirt and QEMU pass it on unchanged.
pub(super) fn read(text: &str) -> Result<Vec<AddressPart>, Fault> {
    let address = Address { text };
    let uri = Uri::parse(text).map_err(|error| {
        // The text is not repeated: people paste passwords with it.
        let message = format!("this is not a valid address: {error}");
        let help = "write a character that has another meaning there as % and two digits";
        address.fault(text, message, Some(help))
    })?;
    let scheme = uri.scheme().as_str();
    let (word, is_unix) = match scheme.strip_suffix("+unix") {
        Some(word) => (word, true),
        None => (scheme, false),
    };
    let protocol = NetworkProtocol::from_word(word).filter(|protocol| match protocol {
        NetworkProtocol::Nbd => true,
        // Ceph has no such addresses.
        NetworkProtocol::Rbd => false,
        _ => !is_unix,
    });
    let Some(protocol) = protocol else {
        let message = format!("addresses cannot start with `{scheme}:`");
        let help = format!("write `{word}:NAME,hosts=SERVER`");
        return Err(address.fault(text, message, Some(&help)));
    };
    let mut said = vec![AddressPart {
        path: &["protocol"],
        value: protocol.as_str().to_owned(),
        begins: 0,
    }];
    if let Some(authority) = uri.authority() {
        said.extend(address.authority(protocol, is_unix, &authority)?);
    }
    said.extend(address.name(protocol, uri.path())?);
    if let Some(query) = uri.query() {
        said.push(address.query(protocol, is_unix, query)?);
    } else if is_unix {
        let help = "write `nbd+unix:///EXPORT?socket=PATH`";
        return Err(address.fault(text, "which UNIX socket?", Some(help)));
    }
    if let Some(fragment) = uri.fragment() {
        let message = "the address of a disk cannot have a # part";
        return Err(address.fault(fragment.as_str(), message, Some("write it as %23")));
    }
    Ok(said)
}

/// The text of an address.
struct Address<'t> {
    text: &'t str,
}

impl Address<'_> {
    /// Where a part of the text begins in it.
    fn begin_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize)
            .saturating_sub(self.text.as_ptr() as usize)
            .min(self.text.len())
    }

    fn fault(&self, part: &str, message: impl Into<String>, help: Option<&str>) -> Fault {
        Fault {
            at: self.begin_of(part),
            message: message.into(),
            help: help.map(str::to_owned),
        }
    }

    fn unescaped<E: Encoder>(&self, part: &EStr<E>) -> Result<String, Fault> {
        match part.decode().into_string() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(self.fault(part.as_str(), "this is not valid UTF-8", None)),
        }
    }

    /// Who, where and at which port.
    fn authority(
        &self,
        protocol: NetworkProtocol,
        is_unix: bool,
        authority: &Authority<'_>,
    ) -> Result<Vec<AddressPart>, Fault> {
        let mut said = Vec::new();
        if let Some(user) = authority.userinfo().filter(|user| !user.is_empty()) {
            said.push(self.user(protocol, user.as_str())?);
        }
        let host = authority.host();
        if is_unix {
            if !authority.as_str().is_empty() {
                let message = "a server has a name or a socket, not both";
                return Err(self.fault(host, message, None));
            }
            return Ok(said);
        }
        if !host.is_empty() {
            let inner = host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'));
            said.push(AddressPart {
                path: &["hosts", "0", "name"],
                value: inner.unwrap_or(host).to_owned(),
                begins: self.begin_of(host),
            });
        }
        if let Some(port) = authority.port().filter(|port| !port.is_empty()) {
            said.push(AddressPart {
                path: &["hosts", "0", "port"],
                value: port.as_str().to_owned(),
                begins: self.begin_of(port.as_str()),
            });
        }
        Ok(said)
    }

    fn user(&self, protocol: NetworkProtocol, user: &str) -> Result<AddressPart, Fault> {
        // libiscsi has a password behind a %.
        if user.contains([':', '%']) {
            let message = "a password cannot be in a spec or on a command line";
            let help = "write the name alone, and `auth.secret.usage` for a libvirt secret";
            return Err(self.fault(user, message, Some(help)));
        }
        let path: &[&str] = match protocol {
            NetworkProtocol::Ssh => &["identity", "username"],
            NetworkProtocol::Iscsi
            | NetworkProtocol::Http
            | NetworkProtocol::Https
            | NetworkProtocol::Ftp
            | NetworkProtocol::Ftps => &["auth", "username"],
            _ => {
                let message = format!("{protocol} does not support a user name");
                return Err(self.fault(user, message, Some("remove the name")));
            }
        };
        Ok(AddressPart {
            path,
            value: user.to_owned(),
            begins: self.begin_of(user),
        })
    }

    fn name<E: Encoder>(
        &self,
        protocol: NetworkProtocol,
        path: &EStr<E>,
    ) -> Result<Option<AddressPart>, Fault> {
        let name = self.unescaped(path)?;
        let (name, begins) = match protocol {
            NetworkProtocol::Ssh | NetworkProtocol::Nfs => (name, self.begin_of(path.as_str())),
            _ => {
                let inner = name.strip_prefix('/').unwrap_or(&name).to_owned();
                (inner, self.begin_of(path.as_str()) + 1)
            }
        };
        Ok((!name.is_empty()).then_some(AddressPart {
            path: &["name"],
            value: name,
            begins,
        }))
    }

    fn query<E: Encoder>(
        &self,
        protocol: NetworkProtocol,
        is_unix: bool,
        query: &EStr<E>,
    ) -> Result<AddressPart, Fault> {
        let begins = self.begin_of(query.as_str());
        if is_unix {
            let socket = match query.split_once('=') {
                Some((key, value)) if key.as_str() == "socket" => value,
                Some(_) | None => {
                    let help = "write `nbd+unix:///EXPORT?socket=PATH`";
                    return Err(self.fault(query.as_str(), "which UNIX socket?", Some(help)));
                }
            };
            return Ok(AddressPart {
                path: &["hosts", "0", "socket"],
                value: self.unescaped(socket)?,
                begins: self.begin_of(socket.as_str()),
            });
        }
        if !matches!(protocol, NetworkProtocol::Http | NetworkProtocol::Https) {
            let message = format!("an address cannot have a ? part on {protocol}");
            let help = "write it as %3F if it belongs to the name, and write options as keys after a comma";
            return Err(self.fault(query.as_str(), message, Some(help)));
        }
        Ok(AddressPart {
            path: &["query"],
            value: query.as_str().to_owned(),
            begins,
        })
    }
}
