//! What an image comes to once it has been a command line.

use vmdisk_model::*;

/// The image and those below it as a command line can say them.
pub(crate) fn normal(image: &mut Image) {
    alone(image);
    let has_backing = image.format.is_some_and(Format::has_backing);
    match &mut image.backing {
        Backing::Image(below) => normal(below),
        Backing::Terminated if !has_backing => image.backing = Backing::Unspecified,
        Backing::Terminated | Backing::Unspecified => {}
    }
}

fn alone(image: &mut Image) {
    let format = image.format.get_or_insert(Format::Raw);
    // A LUKS container is a raw image that is encrypted, and a directory has one format.
    if *format == Format::Luks && image.encryption.is_some() {
        *format = Format::Raw;
    }
    if matches!(image.protocol, Protocol::Directory { .. }) {
        *format = Format::Fat;
    }
    // How it was made, and what is passed in by whoever starts QEMU.
    (image.creation, image.made_as, image.fd_group) = (None, None, None);
    if let Protocol::Nvme(source) = &mut image.protocol {
        source.managed = None;
    }
    let mut login = None;
    if let Protocol::Network(source) = &mut image.protocol {
        login = login_type(source.protocol);
        network(source, &mut image.authentication);
    }
    image.authentication = image.authentication.take().filter(|authentication| {
        authentication.username.is_some() || authentication.secret.is_some()
    });
    let secret = image.authentication.as_mut();
    if let (Some(kind), Some(secret)) = (login, secret.and_then(|login| login.secret.as_mut())) {
        normal_secret(secret, kind);
    }
    if let Some(encryption) = &mut image.encryption {
        encryption.engine = encryption
            .engine
            .filter(|engine| *engine == EncryptionEngine::Librbd);
        // Of the creation of a volume.
        (encryption.cipher, encryption.ivgen) = (None, None);
        for secret in &mut encryption.secrets {
            normal_secret(secret, "passphrase");
        }
    }
    if let Some(reservations) = &mut image.reservations {
        let is_managed = reservations.managed == Some(Switch::On)
            || (reservations.managed.is_none() && reservations.socket.is_none())
            || reservations.socket.is_none();
        *reservations = Reservations {
            managed: Some(if is_managed { Switch::On } else { Switch::Off }),
            socket: reservations.socket.take().filter(|_| !is_managed),
            migration: None,
        };
    }
    if let Some(data_file) = &mut image.data_file {
        alone(data_file);
    }
}

/// What a secret for logging in is called; `None` where the protocol takes none.
fn login_type(protocol: NetworkProtocol) -> Option<&'static str> {
    if protocol == NetworkProtocol::Ssh {
        return None;
    }
    Some(if protocol == NetworkProtocol::Rbd {
        "ceph"
    } else {
        "iscsi"
    })
}

/// What only libvirt knows becomes an object that somebody has to give.
fn normal_secret(secret: &mut Secret, kind: &str) {
    secret.secret_type = Some(kind.to_owned());
    let is_libvirts = match &secret.reference {
        SecretReference::Uuid(uuid) => uuid.len() != 36,
        SecretReference::Usage(_) | SecretReference::Object(_) => true,
        SecretReference::File { .. } => false,
    };
    if is_libvirts {
        secret.reference = SecretReference::Object("given".to_owned());
    } else if let SecretReference::Uuid(uuid) = &mut secret.reference {
        uuid.make_ascii_lowercase();
    }
}

fn network(source: &mut NetworkSource, login: &mut Option<Box<Authentication>>) {
    let protocol = source.protocol;
    for host in &mut source.hosts {
        let is_unix = host.transport == Some(NetworkTransport::Unix);
        if is_unix {
            (host.name, host.port) = (None, None);
        } else {
            (host.transport, host.socket) = (None, None);
            host.port = Some(host.port.unwrap_or(protocol.default_port()))
                // Which the client library of NFS knows best.
                .filter(|_| protocol != NetworkProtocol::Nfs);
        }
    }
    source.tls = source.tls.filter(|tls| *tls == Switch::On);
    // Values of cookies are secrets, and QEMU has no option for the other.
    source.cookies.clear();
    source.known_hosts = None;
    source.name = source.name.take().and_then(|name| {
        if protocol == NetworkProtocol::Iscsi {
            let (target, unit) = name.split_once('/').unwrap_or((&name, "0"));
            Some(format!("{target}/{}", unit.parse::<u32>().ok()?))
        } else if protocol.is_curl() {
            let name = name.strip_prefix('/').unwrap_or(&name).to_owned();
            Some(name).filter(|name| !name.is_empty())
        } else {
            Some(name)
        }
    });
    (source.keyfile, source.agent_socket) = (None, None);
    if protocol == NetworkProtocol::Ssh {
        let login = login.take().and_then(|login| login.username);
        source.username = login.or(source.username.take());
    }
    if protocol == NetworkProtocol::Nfs {
        for owner in [&mut source.user, &mut source.group] {
            *owner = owner
                .take()
                .map(|owner| format!("+{}", owner.trim_start_matches('+')));
        }
    }
}
