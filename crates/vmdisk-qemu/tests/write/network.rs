//! What a source on a network may have: each member of each protocol is carried, or said not to be.

use vmdisk_fields::Unused;
use vmdisk_model::*;
use vmdisk_qemu::{read, write};

use super::{disks, options};

type Member = (&'static str, ImageField, fn(&mut Image), fn(&Image) -> bool);

fn source(image: &Image) -> &NetworkSource {
    let Protocol::Network(source) = &image.protocol else {
        panic!("{image:?}");
    };
    source
}

fn source_mut(image: &mut Image) -> &mut NetworkSource {
    let Protocol::Network(source) = &mut image.protocol else {
        panic!("it is on a network");
    };
    source
}

fn secret() -> Secret {
    Secret {
        secret_type: None,
        reference: SecretReference::File {
            path: "/srv/key".to_owned(),
            is_base64: true,
        },
    }
}

/// Every member that a source may have beside its protocol, name and servers: how it is set, and whether it is there.
const MEMBERS: &[Member] = &[
    (
        "query",
        ImageField::Query,
        |image| source_mut(image).query = Some("a=b".to_owned()),
        |image| source(image).query.is_some(),
    ),
    (
        "snapshot",
        ImageField::Snapshot,
        |image| source_mut(image).snapshot = Some("s".to_owned()),
        |image| source(image).snapshot.is_some(),
    ),
    (
        "config file",
        ImageField::ConfigFile,
        |image| source_mut(image).config_file = Some("/etc/c".to_owned()),
        |image| source(image).config_file.is_some(),
    ),
    (
        "initiator",
        ImageField::Initiator,
        |image| source_mut(image).initiator = Some("iqn.a".to_owned()),
        |image| source(image).initiator.is_some(),
    ),
    (
        "tls",
        ImageField::Tls,
        |image| source_mut(image).tls = Some(Switch::On),
        |image| source(image).tls.is_some(),
    ),
    (
        "tls hostname",
        ImageField::TlsHostname,
        |image| source_mut(image).tls_hostname = Some("h".to_owned()),
        |image| source(image).tls_hostname.is_some(),
    ),
    (
        "verification",
        ImageField::SslVerify,
        |image| source_mut(image).ssl_verify = Some(Switch::Off),
        |image| source(image).ssl_verify.is_some(),
    ),
    (
        "cookies",
        ImageField::Cookies,
        |image| {
            let (name, value) = ("a".to_owned(), "b".to_owned());
            source_mut(image).cookies = vec![Cookie { name, value }];
        },
        |image| !source(image).cookies.is_empty(),
    ),
    (
        "readahead",
        ImageField::Readahead,
        |image| source_mut(image).readahead = Some(Bytes(65536)),
        |image| source(image).readahead.is_some(),
    ),
    (
        "timeout",
        ImageField::Timeout,
        |image| source_mut(image).timeout = Some(7),
        |image| source(image).timeout.is_some(),
    ),
    (
        "reconnect delay",
        ImageField::ReconnectDelay,
        |image| source_mut(image).reconnect_delay = Some(7),
        |image| source(image).reconnect_delay.is_some(),
    ),
    (
        "user",
        ImageField::User,
        |image| source_mut(image).user = Some("+7".to_owned()),
        |image| source(image).user.is_some(),
    ),
    (
        "group",
        ImageField::Group,
        |image| source_mut(image).group = Some("+7".to_owned()),
        |image| source(image).group.is_some(),
    ),
    (
        "username",
        ImageField::Username,
        |image| source_mut(image).username = Some("u".to_owned()),
        |image| source(image).username.is_some(),
    ),
    (
        "keyfile",
        ImageField::KeyFile,
        |image| source_mut(image).keyfile = Some("/srv/key".to_owned()),
        |image| source(image).keyfile.is_some(),
    ),
    (
        "agent",
        ImageField::AgentSocket,
        |image| source_mut(image).agent_socket = Some("/srv/agent".to_owned()),
        |image| source(image).agent_socket.is_some(),
    ),
    (
        "known hosts",
        ImageField::KnownHosts,
        |image| source_mut(image).known_hosts = Some("/srv/known".to_owned()),
        |image| source(image).known_hosts.is_some(),
    ),
    (
        "login",
        ImageField::Authentication,
        |image| {
            image.authentication = Some(Box::new(Authentication {
                username: Some("u".to_owned()),
                secret: Some(secret()),
            }));
        },
        |image| {
            image
                .authentication
                .as_ref()
                .is_some_and(|login| login.secret.is_some())
        },
    ),
    (
        "encryption by librbd",
        ImageField::Encryption,
        |image| {
            image.encryption = Some(Box::new(Encryption {
                format: Some(EncryptionFormat::Luks),
                engine: Some(EncryptionEngine::Librbd),
                secrets: vec![secret()],
                ..Encryption::default()
            }));
        },
        |image| image.encryption.is_some(),
    ),
    (
        "name of a server behind a socket",
        ImageField::Hosts,
        |image| source_mut(image).hosts[0].socket = Some("/run/s".to_owned()),
        |image| source(image).hosts[0].socket.is_some(),
    ),
    (
        "port",
        ImageField::Hosts,
        |image| source_mut(image).hosts[0].port = Some(77),
        |image| source(image).hosts[0].port == Some(77),
    ),
    (
        "RDMA",
        ImageField::Hosts,
        |image| source_mut(image).hosts[0].transport = Some(NetworkTransport::Rdma),
        |image| source(image).hosts[0].transport == Some(NetworkTransport::Rdma),
    ),
];

/// A source that has what its protocol needs, and nothing else.
fn plain(protocol: NetworkProtocol) -> Image {
    let name = if protocol == NetworkProtocol::Iscsi {
        "iqn.2026-11.com.example:a/3"
    } else {
        "pool/image"
    };
    let hosts = vec![NetworkHost::tcp("h", None)];
    let source = NetworkSource::new(protocol, Some(name.to_owned()), hosts);
    Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)))
}

#[test]
fn no_member_of_any_protocol_is_lost_in_silence() {
    // Each member that a protocol carries, so that the test cannot pass by refusing everything.
    let mut carried = Vec::new();
    for protocol in NetworkProtocol::ALL {
        for (member, field, set, is_set) in MEMBERS {
            let mut image = plain(*protocol);
            set(&mut image);
            let disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
            let at = FieldPath::Image(0, 0, *field);
            let line = match write(&disks([disk]), &options("qemu=10.0")) {
                Ok(line) => line,
                Err(problems) => {
                    let is_gone = FieldPath::Image(0, 0, ImageField::NetworkProtocol);
                    let fields: Vec<FieldPath> =
                        problems.0.iter().map(|problem| problem.at).collect();
                    assert!(
                        fields.contains(&at) || fields.contains(&is_gone),
                        "{protocol}, {member}: {problems}"
                    );
                    // What libvirt only ignores does not keep a guest from being converted.
                    let of_row = vmdisk_fields::image(*field).protocols;
                    let is_refused = of_row.is_none_or(|(_, unused)| {
                        matches!(unused, Unused::Refused | Unused::RefusedAtStart)
                    });
                    assert!(
                        is_refused || fields.contains(&is_gone),
                        "{protocol}, {member}: {problems}"
                    );
                    continue;
                }
            };
            let document = read(&line.to_shell()).expect("what is written is read");
            let image = document.domain.disks[0]
                .backend
                .image()
                .expect("it has an image");
            if is_set(image) {
                carried.push(format!("{protocol}: {member}"));
            } else {
                assert!(
                    line.left_out.iter().any(|note| note.at == at),
                    "{protocol}, {member}: {}",
                    line.to_shell()
                );
            }
        }
    }
    let expected = [
        "nbd: tls",
        "nbd: tls hostname",
        "nbd: reconnect delay",
        "nbd: port",
        "iscsi: initiator",
        "iscsi: login",
        "iscsi: port",
        "rbd: snapshot",
        "rbd: config file",
        "rbd: login",
        "rbd: encryption by librbd",
        "rbd: port",
        "gluster: port",
        "nfs: user",
        "nfs: group",
        "http: query",
        "http: readahead",
        "http: timeout",
        "http: login",
        "http: port",
        "https: query",
        "https: verification",
        "https: readahead",
        "https: timeout",
        "https: login",
        "https: port",
        "ftp: readahead",
        "ftp: timeout",
        "ftp: login",
        "ftp: port",
        "ftps: verification",
        "ftps: readahead",
        "ftps: timeout",
        "ftps: login",
        "ftps: port",
        "ssh: username",
        "ssh: port",
    ];
    assert_eq!(carried, expected);
}

#[test]
fn keys_and_known_hosts_of_an_ssh_server_are_left_out_in_different_words() {
    let mut image = plain(NetworkProtocol::Ssh);
    source_mut(&mut image).keyfile = Some("/k".to_owned());
    source_mut(&mut image).known_hosts = Some("/h".to_owned());
    let disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
    let line = super::line(&disks([disk]), "qemu=10.0");
    let messages: Vec<&str> = line
        .left_out
        .iter()
        .map(|note| note.message.as_str())
        .collect();
    let [keys, hosts] = messages[..] else {
        panic!("{messages:?}");
    };
    assert!(keys.contains("ssh agent"), "{keys}");
    assert!(hosts.contains("known_hosts"), "{hosts}");
}

#[test]
fn a_file_is_not_logged_in_to() {
    let mut image = Image::file("/srv/a.img", Format::Raw);
    image.authentication = Some(Box::new(Authentication {
        username: Some("u".to_owned()),
        secret: None,
    }));
    let disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
    let problems = super::problems(&disks([disk]), "qemu=10.0");
    assert_eq!(problems[0].message, "only servers need credentials");
}
