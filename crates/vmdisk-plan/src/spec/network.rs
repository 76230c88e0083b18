//! A disk behind a server: the `network` backend of a spec, and the same in the model.

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;
use vmdisk_model::{
    Authentication, Bytes, Fields, Format, Image, ImageField, NetworkHost, NetworkProtocol,
    NetworkSource, Protocol, Secret,
};

use super::access::DeviceAccess;
use super::node::{describe, shortened};
use super::section::{Reader, SpecValue, section};
use super::value::{Word, word_value};

section! {
    /// A disk on a server, to which QEMU connects directly.
    pub struct NetworkSpec of ImageField {
        /// The protocol of the server.
        protocol: NetworkProtocol = "protocol",
        /// Name of the disk on the server: `pool/image` on rbd, `target/unit` on iscsi, `volume/path` on gluster, the
        /// export on nbd (default: the server's own), a path on the others.
        name: Option<String> = "name" as NetworkName,
        /// The servers: exactly one; on gluster one or more; on rbd any number, and none where Ceph's configuration
        /// names them.
        hosts: Option<Vec<NetworkHostSpec>> = "hosts",
        /// Format of the image; default `raw`, never guessed. Required if the name ends in `.qcow2`, `.qcow`,
        /// `.qed`, `.vmdk`, `.vdi`, `.vhd`, `.vhdx` or `.vpc`.
        format: Option<Format> = "format",
        /// What follows the `?` of the address; http and https.
        query: Option<String> = "query" as Query,
        /// Snapshot, which is only read; rbd.
        snapshot: Option<String> = "snapshot" as Snapshot,
        /// Ceph's configuration on the host; rbd.
        config_file: Option<String> = "config-file" as ConfigFile,
        /// Initiator name of this host; iscsi.
        initiator: Option<String> = "initiator" as Initiator,
        /// Whether the connection is encrypted; nbd.
        tls: Option<bool> = "tls" as Tls,
        /// Name that the server's certificate must have; nbd with `tls` (QEMU 7.0, libvirt 8.2).
        tls_hostname: Option<String> = "tls-hostname" as TlsHostname,
        /// Whether the server's certificate is verified; https and ftps, QEMU's default is yes.
        ssl_verify: Option<bool> = "ssl-verify" as SslVerify,
        /// Read-ahead, a multiple of 512 bytes; http, https, ftp and ftps, QEMU's default is 256 KiB.
        readahead: Option<Bytes> = "readahead" as Readahead,
        /// Timeout of a request in seconds, at most 10000; http, https, ftp and ftps, QEMU's default is 5.
        timeout: Option<u64> = "timeout" as Timeout,
        /// Seconds for which QEMU tries to restore a lost connection before requests fail; nbd (libvirt 9.2), QEMU's default is 0.
        reconnect_delay: Option<u32> = "reconnect-delay" as ReconnectDelay,
        /// The user on the server; nfs and ssh.
        identity: Option<NetworkIdentitySpec> = "identity",
        /// File with the keys of known servers; ssh (libvirt 9.8).
        known_hosts: Option<String> = "known-hosts" as KnownHosts,
        /// Credentials; rbd, iscsi, http, https, ftp, ftps and ssh.
        auth: Option<AuthenticationSpec> = "auth",
        /// Whether the guest sees an emulated disk or the unit's own SCSI commands; iscsi, default `emulated`.
        access: Option<DeviceAccess> = "as",
    }
}

section! {
    /// One server: a name with a port, or a UNIX socket.
    #[derive(Default)]
    pub struct NetworkHostSpec {
        /// Name or address.
        name: Option<String> = "name",
        /// Port; default: the protocol's own.
        port: Option<u32> = "port",
        /// Absolute path of a UNIX socket on the host; nbd and gluster.
        socket: Option<String> = "socket",
    }
}

section! {
    /// The identity presented to the server.
    #[derive(Default)]
    pub struct NetworkIdentitySpec of ImageField {
        /// Owner of files on nfs: a name, or `+` and a number; QEMU without libvirt accepts only numbers.
        user: Option<String> = "user" as User,
        /// Group of files on nfs, in the same way.
        group: Option<String> = "group" as Group,
        /// User name for ssh; libvirt also requires a key or an agent.
        username: Option<String> = "username" as Username,
        /// File with the private key for ssh (libvirt 9.8).
        keyfile: Option<String> = "keyfile" as KeyFile,
        /// Socket of the ssh agent (libvirt 9.8).
        agent_socket: Option<String> = "agent-socket" as AgentSocket,
    }
}

section! {
    /// The credentials for a server.
    pub struct AuthenticationSpec {
        /// User name.
        username: String = "username",
        /// Reference to the password or key; a spec never contains the value itself.
        secret: SecretSpec = "secret",
    }
}

section! {
    /// A secret that libvirt keeps, by its number or by its usage.
    #[derive(Default)]
    pub struct SecretSpec {
        /// Its UUID.
        uuid: Option<String> = "uuid",
        /// Its usage.
        usage: Option<String> = "usage",
    }
}

/// Protocols that libvirt and QEMU still support.
pub(crate) const PROTOCOLS: [NetworkProtocol; 10] = [
    NetworkProtocol::Nbd,
    NetworkProtocol::Rbd,
    NetworkProtocol::Iscsi,
    NetworkProtocol::Gluster,
    NetworkProtocol::Nfs,
    NetworkProtocol::Ssh,
    NetworkProtocol::Http,
    NetworkProtocol::Https,
    NetworkProtocol::Ftp,
    NetworkProtocol::Ftps,
];

impl Word for NetworkProtocol {
    const ALL_WORDS: &'static [&'static str] = &{
        let mut words = [""; PROTOCOLS.len()];
        let mut nth = 0;
        while nth < words.len() {
            words[nth] = PROTOCOLS[nth].as_str();
            nth += 1;
        }
        words
    };

    fn word(self) -> &'static str {
        self.as_str()
    }

    fn from_word(word: &str) -> Option<Self> {
        NetworkProtocol::from_word(word).filter(|protocol| PROTOCOLS.contains(protocol))
    }
}

word_value!(NetworkProtocol);

impl SpecValue for Vec<NetworkHostSpec> {
    /// One text is a list of one.
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        let items = match node {
            Value::List(items) => items,
            Value::Text(_) | Value::Map(_) => vec![node.into()],
            Value::Null
            | Value::Bool(_)
            | Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_) => {
                let message = format!("expected a list of servers, found {}", describe(&node));
                reader.refuse(message).help = Some("write `[NAME:PORT]`".to_owned());
                return None;
            }
        };
        if items.is_empty() {
            reader.refuse("the list of servers is empty");
            return None;
        }
        reader.items(items, read_host)
    }

    fn write(&self) -> Value {
        Value::list(self.iter().map(SpecValue::write))
    }

    fn schema() -> Schema {
        let text = String::schema();
        let host = NetworkHostSpec::schema();
        json!({
            "anyOf": [
                text,
                host,
                { "type": "array", "items": { "anyOf": [text, host] }, "minItems": 1 }
            ]
        })
    }
}

/// Reads a server: its keys, or `NAME`, `NAME:PORT`, `[ADDRESS]:PORT` or the path of a socket.
fn read_host(node: Value, reader: &mut Reader) -> Option<NetworkHostSpec> {
    let Value::Text(text) = &node else {
        return NetworkHostSpec::read(node, reader);
    };
    if text.starts_with('/') {
        let socket = String::read(node, reader)?;
        return Some(NetworkHostSpec {
            socket: Some(socket),
            ..NetworkHostSpec::default()
        });
    }
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, rest)) if rest.starts_with(':') => (name, Some(&rest[1..])),
            Some(_) | None => {
                let message = format!("`{}` is not a valid server", shortened(text));
                reader.refuse(message).help = Some("write `[ADDRESS]:PORT`".to_owned());
                return None;
            }
        },
        None => match text.split_once(':') {
            // With more than one colon it is an IPv6 address.
            Some((name, port)) if !port.contains(':') => (name, Some(port)),
            Some(_) | None => (text.as_str(), None),
        },
    };
    let port = match port {
        Some(port) => Some(u32::read(Value::Text(port.to_owned()), reader)?),
        None => None,
    };
    let name = String::read(Value::Text(name.to_owned()), reader)?;
    Some(NetworkHostSpec {
        name: Some(name),
        port,
        ..NetworkHostSpec::default()
    })
}

/// Copies the fields that are set.
pub(super) fn copy<F: Copy>(
    fields: &[F],
    from: &impl Fields<Field = F>,
    to: &mut impl Fields<Field = F>,
) {
    for field in fields {
        if let Some(value) = from.get(*field) {
            to.set(*field, value);
        }
    }
}

impl NetworkSpec {
    /// A disk behind a server with every option left open.
    pub fn new(protocol: NetworkProtocol) -> Self {
        NetworkSpec {
            protocol,
            name: None,
            hosts: None,
            format: None,
            query: None,
            snapshot: None,
            config_file: None,
            initiator: None,
            tls: None,
            tls_hostname: None,
            ssl_verify: None,
            readahead: None,
            timeout: None,
            reconnect_delay: None,
            identity: None,
            known_hosts: None,
            auth: None,
            access: None,
        }
    }

    /// Why nothing can be written to it, if nothing can.
    pub(crate) fn only_read_because(&self) -> Option<String> {
        let protocol = self.protocol;
        if protocol.is_curl() {
            return Some(format!("QEMU cannot write over {protocol}"));
        }
        let is_snapshot = self.snapshot.is_some();
        is_snapshot.then(|| "a snapshot cannot be written".to_owned())
    }

    /// A name for what it opens: equal names are the same storage.
    pub(crate) fn storage(&self) -> String {
        format!(
            "{}:{:?}{:?}{:?}{:?}",
            self.protocol, self.hosts, self.name, self.query, self.snapshot
        )
    }

    /// The image, in this format.
    pub(crate) fn to_image(&self, format: Format) -> Image {
        let hosts = self.hosts.iter().flatten().map(NetworkHostSpec::to_model);
        let mut source = NetworkSource::new(self.protocol, None, hosts.collect());
        copy(Self::FIELDS, self, &mut source);
        if let Some(identity) = &self.identity {
            copy(NetworkIdentitySpec::FIELDS, identity, &mut source);
        }
        let mut image = Image::new(Some(format), Protocol::Network(Box::new(source)));
        let authentication = self.auth.as_ref().map(|auth| auth.to_model(self.protocol));
        image.authentication = authentication.map(Box::new);
        image
    }
}

impl NetworkHostSpec {
    fn to_model(&self) -> NetworkHost {
        let NetworkHostSpec { name, port, socket } = self;
        match socket {
            Some(socket) => NetworkHost::unix(socket),
            None => NetworkHost {
                name: name.clone(),
                port: *port,
                ..NetworkHost::default()
            },
        }
    }
}

/// The kind of secret that a protocol logs in with, in libvirt's words; a name and a password are those of iscsi.
pub(super) const fn secret_type(protocol: NetworkProtocol) -> &'static str {
    match protocol {
        NetworkProtocol::Rbd => "ceph",
        _ => "iscsi",
    }
}

impl AuthenticationSpec {
    fn to_model(&self, protocol: NetworkProtocol) -> Authentication {
        let AuthenticationSpec { username, secret } = self;
        Authentication {
            username: Some(username.clone()),
            secret: Some(Secret {
                secret_type: Some(secret_type(protocol).to_owned()),
                reference: secret.to_model(),
            }),
        }
    }
}
