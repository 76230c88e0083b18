//! Protocol nodes of network storage.

use vmdisk_facts::Capability;
use vmdisk_fields::{Unused, UnusedMember, image, remove_ignored_members, unused_members};
use vmdisk_model::{
    EncryptionEngine, FieldValue, Fields, ImageField, NetworkHost, NetworkProtocol, NetworkSource,
    NetworkTransport, Switch,
};

use super::Layer;
use super::url::Url;
use crate::json::{Json, JsonObject};
use crate::writer::Writer;

impl Writer<'_> {
    /// The members of the node that are specific to the protocol; `None` after a problem.
    pub(super) fn network_node(
        &mut self,
        layer: &Layer<'_>,
        source: &NetworkSource,
    ) -> Option<JsonObject> {
        self.check_members(layer, source);
        let mut source = source.clone();
        remove_ignored_members(&mut source);
        let source = &source;
        match source.protocol {
            NetworkProtocol::Nbd => self.nbd_node(layer, source),
            NetworkProtocol::Iscsi => self.iscsi_node(layer, source),
            NetworkProtocol::Rbd => self.rbd_node(layer, source),
            NetworkProtocol::Gluster => self.gluster_node(layer, source),
            NetworkProtocol::Nfs => self.nfs_node(layer, source),
            NetworkProtocol::Ssh => self.ssh_node(layer, source),
            NetworkProtocol::Http
            | NetworkProtocol::Https
            | NetworkProtocol::Ftp
            | NetworkProtocol::Ftps => self.curl_node(layer, source),
            NetworkProtocol::Tftp => self.gone(layer, source.protocol, "2.8"),
            NetworkProtocol::Vxhs => self.gone(layer, source.protocol, "5.1"),
            NetworkProtocol::Sheepdog => self.gone(layer, source.protocol, "6.0"),
        }
    }

    fn gone(
        &mut self,
        layer: &Layer<'_>,
        protocol: NetworkProtocol,
        since: &str,
    ) -> Option<JsonObject> {
        let message = format!("QEMU has no driver '{protocol}' since {since}");
        self.problem(layer.at(ImageField::NetworkProtocol), message);
        None
    }

    /// Reports settings that the protocol does not have: libvirt refuses some, and ignores the others.
    fn check_members(&mut self, layer: &Layer<'_>, source: &NetworkSource) {
        let protocol = source.protocol;
        for member in unused_members(source) {
            let UnusedMember { field, noun, .. } = member;
            let message = format!("'{protocol}' does not support {noun}");
            match member.unused {
                Unused::Refused | Unused::RefusedAtStart => self.problem(layer.at(field), message),
                Unused::Dropped | Unused::Ignored => self.leave_out(layer.at(field), message),
            }
        }
        if layer.image.authentication.is_some()
            && !image(ImageField::Authentication).is_of(protocol)
        {
            let message = format!("'{protocol}' does not support a login");
            self.problem(layer.at(ImageField::Authentication), message);
        }
        let is_encrypted = layer.image.encryption.is_some();
        if is_encrypted
            && layer.engine() == EncryptionEngine::Librbd
            && protocol != NetworkProtocol::Rbd
        {
            let message = format!("'{protocol}' does not support decryption by librbd");
            self.problem(layer.at(ImageField::Encryption), message);
        }
        for host in &source.hosts {
            self.check_host(layer, protocol, host);
        }
    }

    /// Adds the members of a node that are fields of the source.
    fn push_members(&mut self, layer: &Layer<'_>, source: &NetworkSource, node: &mut JsonObject) {
        for field in NetworkSource::FIELDS {
            let row = image(*field);
            let Some(key) = row.node.filter(|_| source.has(*field)) else {
                continue;
            };
            match (field, source.get(*field)) {
                (ImageField::Tls, Some(FieldValue::Switch(Switch::On))) => {
                    node.push(key, self.tls_credentials(layer));
                }
                (ImageField::Tls, _) => {}
                (ImageField::Cookies, _) => node.push(key, self.cookies(layer)),
                (_, Some(FieldValue::Switch(switch))) => node.push(key, switch == Switch::On),
                (_, Some(FieldValue::Number(number))) => node.push(key, number),
                (_, Some(FieldValue::Count(count))) => node.push(key, count),
                (_, Some(FieldValue::Size(size))) => node.push(key, size.0),
                (_, value) => node.push_some(key, value.map(|value| value.to_string())),
            }
        }
    }

    /// Reports settings of a server that its transport does not support.
    fn check_host(&mut self, layer: &Layer<'_>, protocol: NetworkProtocol, host: &NetworkHost) {
        let NetworkHost {
            name,
            port,
            transport,
            socket,
        } = host;
        let at = layer.at(ImageField::Hosts);
        let is_unix = *transport == Some(NetworkTransport::Unix);
        if is_unix && (name.is_some() || port.is_some()) {
            self.leave_out(at, "a server on a UNIX socket has no name and no port");
        }
        if !is_unix && socket.is_some() {
            self.leave_out(at, "only a server on a UNIX socket has a socket path");
        }
        if protocol == NetworkProtocol::Nfs
            && let Some(port) = port.filter(|port| *port != 0)
        {
            let message = format!("QEMU asks the server for its port, and does not accept {port}");
            self.leave_out(at, message);
        }
    }

    /// The only server of a protocol that supports one.
    fn one_host<'s>(
        &mut self,
        layer: &Layer<'_>,
        source: &'s NetworkSource,
    ) -> Option<&'s NetworkHost> {
        let [host] = source.hosts.as_slice() else {
            let (protocol, count) = (source.protocol, source.hosts.len());
            let message = format!("'{protocol}' needs exactly one server, but there are {count}");
            self.problem(layer.at(ImageField::Hosts), message);
            return None;
        };
        Some(host)
    }

    /// Name and port of a server that uses TCP.
    fn inet(
        &mut self,
        layer: &Layer<'_>,
        protocol: NetworkProtocol,
        host: &NetworkHost,
    ) -> Option<(String, u32)> {
        let NetworkHost {
            name,
            port,
            transport,
            socket: _,
        } = host;
        let is_tcp = matches!(transport, None | Some(NetworkTransport::Tcp));
        let (true, Some(name)) = (is_tcp, name) else {
            let message = format!("'{protocol}' needs a server name and uses TCP");
            self.problem(layer.at(ImageField::Hosts), message);
            return None;
        };
        Some((name.clone(), port.unwrap_or(protocol.default_port())))
    }

    /// An `InetSocketAddress` without its type.
    fn inet_object(
        &mut self,
        layer: &Layer<'_>,
        protocol: NetworkProtocol,
        host: &NetworkHost,
    ) -> Option<JsonObject> {
        let (name, port) = self.inet(layer, protocol, host)?;
        Some(
            JsonObject::new()
                .with("host", name)
                .with("port", port.to_string()),
        )
    }

    /// A `SocketAddress`.
    fn address(
        &mut self,
        layer: &Layer<'_>,
        protocol: NetworkProtocol,
        host: &NetworkHost,
    ) -> Option<JsonObject> {
        match (host.transport, &host.socket) {
            (Some(NetworkTransport::Unix), Some(socket)) => Some(
                JsonObject::new()
                    .with("type", "unix")
                    .with("path", socket.as_str()),
            ),
            (Some(NetworkTransport::Unix), None) => {
                let message = "the path of the server's socket is missing";
                self.problem(layer.at(ImageField::Hosts), message);
                None
            }
            (None | Some(NetworkTransport::Tcp | NetworkTransport::Rdma), _) => {
                let (name, port) = self.inet(layer, protocol, host)?;
                Some(
                    JsonObject::new()
                        .with("type", "inet")
                        .with("host", name)
                        .with("port", port.to_string()),
                )
            }
        }
    }

    fn needs_name<'s>(
        &mut self,
        layer: &Layer<'_>,
        source: &'s NetworkSource,
        shape: &str,
    ) -> Option<&'s str> {
        let name = source.name.as_deref().filter(|name| !name.is_empty());
        if name.is_none() {
            let protocol = source.protocol;
            let message = format!("the name is missing: '{protocol}' expects {shape}");
            self.problem(layer.at(ImageField::NetworkName), message);
        }
        name
    }

    fn nbd_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let host = self.one_host(layer, source)?;
        let mut node = JsonObject::new()
            .with("driver", "nbd")
            .with("server", self.address(layer, source.protocol, host)?);
        node.push_some("export", source.name.as_deref());
        self.push_members(layer, source, &mut node);
        Some(node)
    }

    fn iscsi_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let host = self.one_host(layer, source)?;
        let (host, port) = self.inet(layer, source.protocol, host)?;
        let name = self.needs_name(layer, source, "target/unit")?;
        let (target, unit) = name.split_once('/').unwrap_or((name, "0"));
        let Ok(unit) = unit.parse::<u32>() else {
            let message = format!("expected a number as the unit of an iSCSI target, not '{unit}'");
            self.problem(layer.at(ImageField::NetworkName), message);
            return None;
        };
        let portal = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        let mut node = JsonObject::new()
            .with("driver", "iscsi")
            .with("portal", portal)
            .with("target", target)
            .with("lun", unit)
            .with("transport", "tcp");
        if let Some((user, secret)) = self.login(layer) {
            node.push_some("user", user);
            node.push_some("password-secret", secret);
        }
        self.push_members(layer, source, &mut node);
        Some(node)
    }

    fn rbd_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let name = self.needs_name(layer, source, "pool/image")?;
        let Some((pool, image)) = name.split_once('/') else {
            let message = format!("expected pool/image as the name of an rbd image, not '{name}'");
            self.problem(layer.at(ImageField::NetworkName), message);
            return None;
        };
        let (namespace, image) = match image.split_once('/') {
            Some((namespace, image)) => (Some(namespace), image),
            None => (None, image),
        };
        let mut servers: Vec<Json> = Vec::new();
        for host in &source.hosts {
            servers.push(self.inet_object(layer, source.protocol, host)?.into());
        }
        let mut node = JsonObject::new().with("driver", "rbd").with("pool", pool);
        node.push_some("namespace", namespace);
        node.push("image", image);
        self.push_members(layer, source, &mut node);
        if !servers.is_empty() {
            node.push("server", servers);
        }
        node.push_some("encrypt", self.librbd_encryption(layer));
        if let Some((user, secret)) = self.login(layer) {
            node.push_some("user", user);
            let modes: Vec<Json> = vec!["cephx".into(), "none".into()];
            node.push("auth-client-required", modes);
            node.push_some("key-secret", secret);
        }
        Some(node)
    }

    fn gluster_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        if !self.can(Capability::Gluster) {
            self.gone(layer, source.protocol, "11.1");
            return None;
        }
        let name = self.needs_name(layer, source, "volume/path")?;
        let Some((volume, path)) = name.split_once('/') else {
            let message =
                format!("expected volume/path as the name of a gluster file, not '{name}'");
            self.problem(layer.at(ImageField::NetworkName), message);
            return None;
        };
        let mut servers: Vec<Json> = Vec::new();
        for host in &source.hosts {
            servers.push(self.address(layer, source.protocol, host)?.into());
        }
        let node = JsonObject::new()
            .with("driver", "gluster")
            .with("volume", volume)
            .with("path", path)
            .with("server", servers);
        Some(node)
    }

    fn nfs_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let host = self.one_host(layer, source)?;
        let path = self.needs_name(layer, source, "/path")?;
        // The client library chooses the port.
        let (host, _) = self.inet(layer, source.protocol, host)?;
        let server = JsonObject::new().with("host", host).with("type", "inet");
        let mut node = JsonObject::new()
            .with("driver", "nfs")
            .with("server", server)
            .with("path", path);
        for (key, owner) in [("user", &source.user), ("group", &source.group)] {
            let Some(owner) = owner else { continue };
            let number = owner.strip_prefix('+').unwrap_or(owner).parse::<u32>();
            match number {
                Ok(number) => node.push(key, number),
                Err(_) => self.problem_with_help(
                    layer.at(ImageField::Identity),
                    format!(
                        "the id of the {key} '{owner}' is not known, and QEMU accepts only ids"
                    ),
                    "write the id, as in `+1000`",
                ),
            }
        }
        Some(node)
    }

    fn ssh_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let host = self.one_host(layer, source)?;
        let path = self.needs_name(layer, source, "path")?;
        let mut node = JsonObject::new().with("driver", "ssh").with("path", path);
        node.push("server", self.inet_object(layer, source.protocol, host)?);
        let mut user = source.username.clone();
        if let Some(login) = &layer.image.authentication {
            if let (Some(own), Some(other)) = (&login.username, &user)
                && own != other
            {
                let message = format!("the login name is '{own}'; '{other}' is not used");
                self.leave_out(layer.at(ImageField::Username), message);
            }
            user = login.username.clone().or(user);
            if login.secret.is_some() {
                self.leave_out(
                    layer.at(ImageField::Authentication),
                    "QEMU authenticates over ssh with the keys of an agent; libvirt starts nbdkit for passwords",
                );
            }
        }
        node.push_some("user", user);
        let mut keys = [ImageField::KeyFile, ImageField::AgentSocket].into_iter();
        if let Some(keys) = keys.find(|field| source.has(*field)) {
            self.leave_out(
                layer.at(keys),
                "QEMU logs in with the keys of its own user's ssh agent; other keys need libvirt, which starts nbdkit",
            );
        }
        if source.known_hosts.is_some() {
            self.leave_out(
                layer.at(ImageField::KnownHosts),
                "QEMU checks the server against its own user's `~/.ssh/known_hosts`; another file needs libvirt, which starts nbdkit",
            );
        }
        Some(node)
    }

    fn curl_node(&mut self, layer: &Layer<'_>, source: &NetworkSource) -> Option<JsonObject> {
        let host = self.one_host(layer, source)?;
        let (host, port) = self.inet(layer, source.protocol, host)?;
        let url = Url {
            scheme: source.protocol.as_str(),
            host: &host,
            port,
            path: source.name.as_deref().unwrap_or_default(),
            query: source.query.as_deref(),
        };
        let mut node = JsonObject::new()
            .with("driver", source.protocol.as_str())
            .with("url", url.to_string());
        if let Some((user, secret)) = self.login(layer) {
            node.push_some("username", user);
            node.push_some("password-secret", secret);
        }
        self.push_members(layer, source, &mut node);
        Some(node)
    }

    /// The user name, and the id of its secret.
    fn login(&mut self, layer: &Layer<'_>) -> Option<(Option<String>, Option<String>)> {
        let login = layer.image.authentication.as_ref()?;
        let secret = login.secret.as_ref().map(|secret| {
            let id = layer.names.login_secret();
            self.secret(layer.at(ImageField::Authentication), secret, id)
        });
        Some((login.username.clone(), secret))
    }
}
