//! Reads protocol nodes of network storage.

use vmdisk_model::{
    Authentication, Bytes, Encryption, EncryptionEngine, EncryptionFormat, FieldKind, FieldValue,
    Fields, Image, ImageField, NetworkHost, NetworkProtocol, NetworkSource, Protocol, Secret,
    Switch,
};

use super::read::NodeReader;
use super::url::WrittenUrl;
use crate::members::View;
use crate::object::helper::read_tls;
use crate::object::secret::read_secret;
use crate::syntax::properties::Kind;
use crate::syntax::value::{number_of, switch_of};

/// Takes a text.
fn text(view: &View<'_>, key: &str) -> Option<String> {
    view.take_text(key).map(str::to_owned)
}

/// The property as a number; another value remains unread.
fn number<T: TryFrom<u64>>(view: &View<'_>, key: &str) -> Option<T> {
    let value = number_of(view.get(key)?.value.as_str())?.try_into().ok()?;
    view.accept(&[key]);
    Some(value)
}

/// The property as a switch; another value remains unread.
fn switch(view: &View<'_>, key: &str) -> Option<Switch> {
    let value = switch_of(view.get(key)?.value.as_str())?;
    view.accept(&[key]);
    Some(value)
}

/// A number between quotes or not, as ports are written. 0 stands for the default of the protocol.
fn port(view: &View<'_>) -> Option<u32> {
    number(view, "port").filter(|port| *port != 0)
}

/// Consumes a value that equals the default.
fn take_if(view: &View<'_>, key: &str, is_default: impl FnOnce(&str) -> bool) {
    if view
        .get(key)
        .is_some_and(|property| property.kind != Kind::Null && is_default(property.value.as_str()))
    {
        view.accept(&[key]);
    }
}

/// A server in the form of `SocketAddress` or `InetSocketAddress`.
fn server(view: &View<'_>) -> Option<NetworkHost> {
    match view.get("type").map(|word| word.value.as_str()) {
        Some("unix") => {
            let host = NetworkHost::unix(text(view, "path").or_else(|| text(view, "socket"))?);
            view.accept(&["type"]);
            Some(host)
        }
        Some("inet" | "tcp") | None => {
            let name = text(view, "host")?;
            view.accept(&["type"]);
            Some(NetworkHost::tcp(name, port(view)))
        }
        Some(_) => None,
    }
}

/// The servers of a node: one, several, or the members of the legacy syntax.
fn servers(view: &View<'_>) -> Vec<NetworkHost> {
    let mut hosts = Vec::new();
    for nth in 0_usize.. {
        let one = view.inside(&format!("server.{nth}"));
        if ["type", "host", "path", "socket"]
            .iter()
            .all(|key| one.get(key).is_none())
        {
            break;
        }
        hosts.extend(server(&one));
    }
    if hosts.is_empty() && view.has_within("server") {
        hosts.extend(server(&view.inside("server")));
    }
    if hosts.is_empty() && view.get("host").is_some() {
        hosts.extend(server(view));
    }
    hosts
}

impl NodeReader<'_, '_> {
    /// Reads a node whose driver connects to a server; `None` if it names none.
    pub(super) fn read_network(
        &mut self,
        view: &View<'_>,
        protocol: NetworkProtocol,
    ) -> Option<Image> {
        match protocol {
            NetworkProtocol::Nbd => self.read_nbd(view),
            NetworkProtocol::Iscsi => self.read_iscsi(view),
            NetworkProtocol::Rbd => self.read_rbd(view),
            NetworkProtocol::Gluster => read_gluster(view),
            NetworkProtocol::Nfs => read_nfs(view),
            NetworkProtocol::Ssh => read_ssh(view),
            NetworkProtocol::Http
            | NetworkProtocol::Https
            | NetworkProtocol::Ftp
            | NetworkProtocol::Ftps
            | NetworkProtocol::Tftp => self.read_curl(view, protocol),
            NetworkProtocol::Sheepdog | NetworkProtocol::Vxhs => None,
        }
    }

    fn secret_of(&mut self, id: Option<&str>, secret_type: &str) -> Option<Secret> {
        let secret = read_secret(id?, self.index, self.notes);
        Some(Secret {
            secret_type: Some(secret_type.to_owned()),
            ..secret
        })
    }

    fn read_nbd(&mut self, view: &View<'_>) -> Option<Image> {
        let mut hosts = servers(view);
        if hosts.is_empty() {
            hosts.push(NetworkHost::unix(text(view, "path")?));
        }
        let mut source = NetworkSource::new(NetworkProtocol::Nbd, text(view, "export"), hosts);
        self.read_members(view, &mut source);
        Some(image(source))
    }

    /// Reads the members of a node that are fields of the source.
    fn read_members(&mut self, view: &View<'_>, source: &mut NetworkSource) {
        for field in NetworkSource::FIELDS {
            let row = vmdisk_fields::image(*field);
            let Some(key) = row.node.filter(|_| row.is_of(source.protocol)) else {
                continue;
            };
            let value = match field.kind() {
                _ if *field == ImageField::Tls => view.take_text(key).map(|id| {
                    read_tls(id, self.index, self.notes);
                    Switch::On.into()
                }),
                Some(FieldKind::Text) => text(view, key).map(FieldValue::Text),
                Some(FieldKind::Switch) => switch(view, key).map(FieldValue::Switch),
                Some(FieldKind::Number) => number(view, key).map(FieldValue::Number),
                Some(FieldKind::Count) => number(view, key).map(FieldValue::Count),
                Some(FieldKind::Size) => number(view, key).map(|size| Bytes(size).into()),
                _ => None,
            };
            if let Some(value) = value {
                source.set(*field, value);
            }
        }
    }

    fn read_iscsi(&mut self, view: &View<'_>) -> Option<Image> {
        let (portal, target) = (view.get("portal")?, view.get("target")?);
        let written = WrittenUrl::parse(&format!("iscsi://{}", portal.value.as_str()))?;
        let unit: u32 = number(view, "lun").unwrap_or(0);
        let host = NetworkHost::tcp(written.host, written.port);
        let name = format!("{}/{unit}", target.value.as_str());
        let mut source = NetworkSource::new(NetworkProtocol::Iscsi, Some(name), vec![host]);
        view.accept(&["portal", "target"]);
        take_if(view, "transport", |word| word == "tcp");
        self.read_members(view, &mut source);
        let username = text(view, "user");
        let secret = self.secret_of(view.take_text("password-secret"), "iscsi");
        let mut image = image(source);
        image.authentication = login(username, secret);
        Some(image)
    }

    fn read_rbd(&mut self, view: &View<'_>) -> Option<Image> {
        let (pool, name) = (view.get("pool")?, view.get("image")?);
        let namespace = view.take_text("namespace").map(|name| format!("{name}/"));
        let name = format!(
            "{}/{}{}",
            pool.value.as_str(),
            namespace.unwrap_or_default(),
            name.value.as_str()
        );
        view.accept(&["pool", "image"]);
        let mut source = NetworkSource::new(NetworkProtocol::Rbd, Some(name), servers(view));
        self.read_members(view, &mut source);
        let username = text(view, "user");
        let secret = self.secret_of(view.take_text("key-secret"), "ceph");
        take_if(view, "auth-client-required.0", |word| word == "cephx");
        take_if(view, "auth-client-required.1", |word| word == "none");
        let mut image = image(source);
        image.authentication = login(username, secret);
        image.encryption = self.read_librbd(&view.inside("encrypt"));
        Some(image)
    }

    /// Reads the encryption handled by librbd: of an image, and of its parent images.
    fn read_librbd(&mut self, view: &View<'_>) -> Option<Box<Encryption>> {
        let format = EncryptionFormat::from_word(view.take_text("format")?);
        let mut encryption = Encryption {
            format,
            engine: Some(EncryptionEngine::Librbd),
            ..Encryption::default()
        };
        let mut view = view.clone();
        // Each step enters an object inside the previous one.
        while let Some(id) = view.take_text("key-secret") {
            encryption
                .secrets
                .extend(self.secret_of(Some(id), "passphrase"));
            view = view.inside("parent");
            if view
                .get("format")
                .and_then(|word| EncryptionFormat::from_word(word.value.as_str()))
                != format
            {
                break;
            }
            view.accept(&["format"]);
        }
        Some(Box::new(encryption))
    }

    fn read_curl(&mut self, view: &View<'_>, protocol: NetworkProtocol) -> Option<Image> {
        let property = view.get("url").or_else(|| view.get("filename"))?;
        let mut image = from_url(&WrittenUrl::parse(property.value.as_str())?)?;
        view.members.accept_value(property);
        let secret = self.secret_of(view.take_text("password-secret"), "iscsi");
        let username = text(view, "username");
        if username.is_some() || secret.is_some() {
            image.authentication = login(username, secret);
        }
        if let Protocol::Network(source) = &mut image.protocol {
            if source.protocol != protocol {
                return None;
            }
            self.read_members(view, source);
        }
        Some(image)
    }
}

fn image(source: NetworkSource) -> Image {
    Image::new(None, Protocol::Network(Box::new(source)))
}

fn login(username: Option<String>, secret: Option<Secret>) -> Option<Box<Authentication>> {
    let is_given = username.is_some() || secret.is_some();
    is_given.then(|| Box::new(Authentication { username, secret }))
}

fn read_gluster(view: &View<'_>) -> Option<Image> {
    let (volume, path) = (view.get("volume")?, view.get("path")?);
    let name = format!("{}/{}", volume.value.as_str(), path.value.as_str());
    view.accept(&["volume", "path"]);
    // Defaults of both libvirt and QEMU.
    take_if(view, "debug", |level| level == "4");
    let hosts = servers(view);
    let source = NetworkSource::new(NetworkProtocol::Gluster, Some(name), hosts);
    Some(image(source))
}

fn read_nfs(view: &View<'_>) -> Option<Image> {
    let name = text(view, "path")?;
    let mut source = NetworkSource::new(NetworkProtocol::Nfs, Some(name), servers(view));
    let owner = |key: &str| number::<u32>(view, key).map(|number| format!("+{number}"));
    (source.user, source.group) = (owner("user"), owner("group"));
    Some(image(source))
}

fn read_ssh(view: &View<'_>) -> Option<Image> {
    let name = text(view, "path")?;
    let mut source = NetworkSource::new(NetworkProtocol::Ssh, Some(name), servers(view));
    source.username = text(view, "user");
    Some(image(source))
}

/// The image for a file name in QEMU's legacy syntax, such as `nbd:host:10809`; `None` if it has a setting that the
/// model lacks.
pub(super) fn from_name(name: &str) -> Option<Image> {
    if let Some(rest) = name.strip_prefix("nbd:")
        && !rest.starts_with("//")
    {
        return from_old_nbd(rest);
    }
    if let Some(rest) = name.strip_prefix("rbd:") {
        return from_old_rbd(rest);
    }
    from_url(&WrittenUrl::parse(name)?)
}

fn from_old_nbd(rest: &str) -> Option<Image> {
    let (address, export) = match rest.split_once(":exportname=") {
        Some((address, export)) => (address, Some(export.to_owned())),
        None => (rest, None),
    };
    let host = match address.strip_prefix("unix:") {
        Some(path) => NetworkHost::unix(path),
        None => {
            let written = WrittenUrl::parse(&format!("nbd://{address}"))?;
            NetworkHost::tcp(written.host, Some(written.port?))
        }
    };
    let source = NetworkSource::new(NetworkProtocol::Nbd, export, vec![host]);
    Some(image(source))
}

/// The parts of `pool/image@snapshot:key=value:…`.
pub(super) fn rbd_parts(rest: &str) -> Option<Vec<String>> {
    let mut parts: Vec<String> = vec![String::new()];
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ':' => parts.push(String::new()),
            '\\' => parts.last_mut()?.extend(letters.next()),
            other => parts.last_mut()?.push(other),
        }
    }
    Some(parts)
}

/// `rbd:pool/image@snapshot:key=value:…`, in which a backslash escapes a colon in a value.
fn from_old_rbd(rest: &str) -> Option<Image> {
    let mut parts = rbd_parts(rest)?.into_iter();
    let name = parts.next()?;
    let (name, snapshot) = match name.split_once('@') {
        Some((name, snapshot)) => (name.to_owned(), Some(snapshot.to_owned())),
        None => (name, None),
    };
    let mut source = NetworkSource::new(NetworkProtocol::Rbd, Some(name), Vec::new());
    source.snapshot = snapshot;
    let mut username = None;
    for part in parts {
        match part.split_once('=')? {
            ("id", user) => username = Some(user.to_owned()),
            ("conf", path) => source.config_file = Some(path.to_owned()),
            ("mon_host", hosts) => {
                for host in hosts.split([';', ',']) {
                    let written = WrittenUrl::parse(&format!("rbd://{host}"))?;
                    let host = NetworkHost::tcp(written.host, written.port);
                    source.hosts.push(host);
                }
            }
            // A file with the user's key is named by `vmdisk::losses`: the model has no such file.
            ("auth_supported", "none") | ("keyring", _) => {}
            _ => return None,
        }
    }
    let mut image = image(source);
    image.authentication = login(username, None);
    Some(image)
}

/// The image of a URL.
fn from_url(url: &WrittenUrl) -> Option<Image> {
    let (scheme, transport) = match url.scheme.split_once('+') {
        Some((scheme, transport)) => (scheme, Some(transport)),
        None => (url.scheme.as_str(), None),
    };
    let protocol = NetworkProtocol::from_word(scheme)?;
    let path = url.path.strip_prefix('/').unwrap_or(&url.path);
    let host = match transport {
        Some("unix") => NetworkHost::unix(url.query_value("socket")?),
        Some("tcp") | None => NetworkHost::tcp(url.host.as_str(), url.port),
        Some(_) => return None,
    };
    let has_query = url.query.is_some() && transport != Some("unix");
    let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let mut source = match protocol {
        NetworkProtocol::Nbd if !has_query => NetworkSource::new(protocol, some(path), vec![host]),
        NetworkProtocol::Iscsi | NetworkProtocol::Gluster if !has_query => {
            NetworkSource::new(protocol, some(path), vec![host])
        }
        NetworkProtocol::Ssh | NetworkProtocol::Nfs if !has_query => {
            NetworkSource::new(protocol, some(&url.path), vec![host])
        }
        NetworkProtocol::Http | NetworkProtocol::Https => {
            let mut source = NetworkSource::new(protocol, some(path), vec![host]);
            source.query.clone_from(&url.query);
            source
        }
        NetworkProtocol::Ftp | NetworkProtocol::Ftps | NetworkProtocol::Tftp if !has_query => {
            NetworkSource::new(protocol, some(path), vec![host])
        }
        _ => return None,
    };
    let mut username = url.user.clone();
    // Models never contain a password.
    if username
        .as_deref()
        .is_some_and(|user| user.contains([':', '%']))
    {
        return None;
    }
    if protocol == NetworkProtocol::Ssh {
        source.username = username.take();
    }
    let mut image = image(source);
    image.authentication = login(username, None);
    Some(image)
}
