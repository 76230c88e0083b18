//! Images of every kind that XML can carry.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use vmdisk_model::*;

use super::{nasty, number, size};

fn switch() -> impl Strategy<Value = Option<Switch>> {
    of(select(Switch::ALL))
}

fn host() -> impl Strategy<Value = NetworkHost> {
    (
        of(nasty()),
        of(0_u32..=65535),
        of(select(NetworkTransport::ALL)),
        of(nasty()),
    )
        .prop_map(|(name, port, transport, socket)| NetworkHost {
            name,
            port,
            transport,
            socket,
        })
}

/// A value of this kind; none of a field that has more than one.
fn value(kind: FieldKind) -> BoxedStrategy<Option<FieldValue>> {
    match kind {
        FieldKind::Text => of(nasty().prop_map(FieldValue::Text)).boxed(),
        FieldKind::Switch => of(select(Switch::ALL).prop_map(FieldValue::Switch)).boxed(),
        FieldKind::Number => of(number().prop_map(FieldValue::Number)).boxed(),
        FieldKind::Count => of(any::<u64>().prop_map(FieldValue::Count)).boxed(),
        FieldKind::Size => of(any::<u64>().prop_map(|size| FieldValue::Size(Bytes(size)))).boxed(),
        FieldKind::Structure => Just(None).boxed(),
        FieldKind::Flag | FieldKind::Word(_) | FieldKind::IoThread => {
            unreachable!("no source has one")
        }
    }
}

fn network() -> impl Strategy<Value = NetworkSource> {
    let cookie = (nasty(), nasty()).prop_map(|(name, value)| Cookie { name, value });
    let kinds = NetworkSource::FIELDS
        .iter()
        .filter_map(|field| field.kind());
    (
        select(NetworkProtocol::ALL),
        vec(host(), 0..3),
        vec(cookie, 0..3),
        kinds.map(value).collect::<Vec<_>>(),
    )
        .prop_map(|(protocol, hosts, cookies, values)| {
            let mut source = NetworkSource::new(protocol, None, hosts);
            source.cookies = cookies;
            for (field, value) in NetworkSource::FIELDS.iter().zip(values) {
                let is_set = value.is_none_or(|value| source.set(*field, value));
                assert!(is_set, "{field:?}");
            }
            source
        })
}

fn nvme() -> impl Strategy<Value = NvmeSource> {
    let pci = (0..=0xffff_u32, 0..=0xff_u32, 0..=0x1f_u32, 0..=7_u32);
    (pci, number(), switch()).prop_map(|((domain, bus, slot, function), namespace, managed)| {
        NvmeSource {
            address: PciAddress {
                domain,
                bus,
                slot,
                function,
                ..PciAddress::default()
            },
            namespace: u64::from(namespace),
            managed,
        }
    })
}

fn volume() -> impl Strategy<Value = VolumeSource> {
    (nasty(), nasty(), of(select(VolumeMode::ALL))).prop_map(|(pool, volume, mode)| VolumeSource {
        pool,
        volume,
        mode,
    })
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        3 => nasty().prop_map(|path| Protocol::File { path }),
        3 => nasty().prop_map(|path| Protocol::HostDevice { path: DevicePath(path) }),
        1 => nasty().prop_map(|path| Protocol::Directory { path }),
        1 => nasty().prop_map(|path| Protocol::VhostVdpa { path }),
        3 => network().prop_map(|network| Protocol::Network(Box::new(network))).boxed(),
        1 => volume().prop_map(Protocol::Volume),
        1 => nvme().prop_map(Protocol::Nvme),
        1 => Just(Protocol::Other("ctl".to_owned())),
    ]
}

fn secret() -> impl Strategy<Value = Secret> {
    let reference = prop_oneof![
        nasty().prop_map(SecretReference::Uuid),
        nasty().prop_map(SecretReference::Usage),
    ];
    (of(nasty()), reference).prop_map(|(secret_type, reference)| Secret {
        secret_type,
        reference,
    })
}

fn encryption() -> impl Strategy<Value = Encryption> {
    let cipher = (of(nasty()), of(number()), of(nasty()), of(nasty())).prop_map(
        |(name, size, mode, hash)| EncryptionCipher {
            name,
            size,
            mode,
            hash,
        },
    );
    let ivgen = (of(nasty()), of(nasty())).prop_map(|(name, hash)| EncryptionVector { name, hash });
    (
        select(EncryptionFormat::ALL).prop_map(Some),
        of(select(EncryptionEngine::ALL)),
        vec(secret(), 0..3),
        of(cipher),
        of(ivgen),
    )
        .prop_map(|(format, engine, secrets, cipher, ivgen)| Encryption {
            format,
            engine,
            secrets,
            cipher,
            ivgen,
        })
}

fn authentication() -> impl Strategy<Value = Authentication> {
    (of(nasty()), of(secret())).prop_map(|(username, secret)| Authentication { username, secret })
}

fn reservations() -> impl Strategy<Value = Reservations> {
    (switch(), of(nasty()), switch()).prop_map(|(managed, socket, migration)| Reservations {
        managed,
        socket,
        migration,
    })
}

/// A text that is not empty.
fn some(text: Option<String>) -> Option<String> {
    Some(
        text.filter(|text| !text.trim().is_empty())
            .unwrap_or_else(|| "a".to_owned()),
    )
}

/// Adds what libvirt cannot do without, and takes away what it does not take.
fn complete(image: &mut Image) {
    let point = |secret: &mut Secret| match &mut secret.reference {
        SecretReference::Uuid(uuid) => {
            *uuid = format!("{:032x}", uuid.len());
        }
        SecretReference::Usage(text) if text.is_empty() => {
            *text = "a".to_owned();
        }
        SecretReference::Usage(_) | SecretReference::File { .. } | SecretReference::Object(_) => {}
    };
    if let Protocol::Network(network) = &mut image.protocol {
        let fields = [
            ImageField::User,
            ImageField::Group,
            ImageField::Username,
            ImageField::KeyFile,
            ImageField::AgentSocket,
        ];
        if network.protocol == NetworkProtocol::Ssh
            && fields.iter().any(|field| network.has(*field))
        {
            network.username = some(network.username.take());
            network.keyfile = some(network.keyfile.take());
        }
        if network.protocol != NetworkProtocol::Nbd {
            network.name = some(network.name.take());
        }
        for host in &mut network.hosts {
            if host.transport == Some(NetworkTransport::Unix) {
                host.socket = some(host.socket.take());
            } else {
                (host.socket, host.name) = (None, some(host.name.take()));
            }
        }
        for (nth, cookie) in network.cookies.iter_mut().enumerate() {
            (cookie.name, cookie.value) = (format!("cookie{nth}"), "value".to_owned());
        }
    }
    if let Some(encryption) = &mut image.encryption {
        for secret in &mut encryption.secrets {
            secret.secret_type = Some("passphrase".to_owned());
            point(secret);
        }
        if encryption.cipher.is_none() {
            encryption.ivgen = None;
        }
    }
    if let Some(authentication) = &mut image.authentication {
        authentication.username = some(authentication.username.take());
        let secret = authentication.secret.get_or_insert_with(|| Secret {
            secret_type: None,
            reference: SecretReference::Usage("a".to_owned()),
        });
        point(secret);
    }
    if let Some(reservations) = &mut image.reservations {
        reservations.socket = reservations.socket.take().filter(|path| !path.is_empty());
    }
    if let Some(data_file) = &mut image.data_file {
        data_file.format.get_or_insert(Format::Raw);
    }
}

/// What of an image the table of its kind of source has a place for.
fn fitting(mut image: Image) -> Image {
    let is_other = matches!(image.protocol, Protocol::Other(_));
    let (may_log_in, may_reserve, may_have_data) = match image.protocol {
        Protocol::File { .. } | Protocol::HostDevice { .. } => (false, true, true),
        Protocol::Network(_) | Protocol::Volume(_) => (true, true, true),
        Protocol::Directory { .. }
        | Protocol::VhostVdpa { .. }
        | Protocol::Nvme(_)
        | Protocol::Other(_) => (false, false, false),
    };
    if !matches!(image.protocol, Protocol::File { .. }) {
        image.fd_group = None;
    }
    if !may_log_in {
        image.authentication = None;
    }
    if !may_reserve {
        image.reservations = None;
    }
    if !may_have_data {
        image.data_file = None;
    }
    if is_other {
        (image.slice, image.encryption) = (None, None);
    }
    complete(&mut image);
    image
}

fn alone() -> BoxedStrategy<Image> {
    let slice = (any::<u64>(), any::<u64>()).prop_map(|(offset, size)| Slice { offset, size });
    (
        of(select(Format::ALL)),
        protocol(),
        of(slice),
        of(encryption()),
        of(authentication()),
        of(reservations()),
        of(nasty()),
    )
        .prop_map(
            |(format, protocol, slice, encryption, authentication, reservations, fd_group)| {
                fitting(Image {
                    slice,
                    encryption: encryption.map(Box::new),
                    authentication: authentication.map(Box::new),
                    reservations,
                    fd_group,
                    ..Image::new(format, protocol)
                })
            },
        )
        .boxed()
}

fn with_data_file() -> BoxedStrategy<Image> {
    (alone(), proptest::option::weighted(0.2, alone()))
        .prop_map(|(image, data_file)| {
            fitting(Image {
                data_file: data_file.map(Box::new),
                ..image
            })
        })
        .boxed()
}

/// An image with the chain below it.
pub(crate) fn image() -> BoxedStrategy<Image> {
    let chain = vec((with_data_file(), of(size())), 0..4);
    (with_data_file(), chain, any::<bool>())
        .prop_map(|(top, chain, is_terminated)| {
            let end = if is_terminated {
                Backing::Terminated
            } else {
                Backing::Unspecified
            };
            let backing = chain
                .into_iter()
                .fold(end, |backing, (image, metadata_cache_size)| {
                    Backing::Image(Box::new(Image {
                        format: image.format.or(Some(Format::Raw)),
                        backing,
                        metadata_cache_size,
                        ..image
                    }))
                });
            Image { backing, ..top }
        })
        .boxed()
}

/// True if `source/@startupPolicy` belongs to an image of this kind.
pub(crate) fn may_be_missing(source: &BackendSource) -> bool {
    match source {
        BackendSource::Image(image) => match image.protocol {
            Protocol::File { .. }
            | Protocol::HostDevice { .. }
            | Protocol::Directory { .. }
            | Protocol::Network(_)
            | Protocol::Volume(_) => true,
            Protocol::VhostVdpa { .. } | Protocol::Nvme(_) | Protocol::Other(_) => false,
        },
        BackendSource::VhostUser(_) | BackendSource::Empty => false,
    }
}
