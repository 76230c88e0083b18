//! The fields of an image, and of its source.

use vmdisk_model::NetworkProtocol::{Ftp, Ftps, Http, Https, Iscsi, Nbd, Nfs, Rbd, Ssh, Vxhs};
use vmdisk_model::{Fields, ImageField, NetworkProtocol, NetworkSource, Switch};

use crate::Unused::{Dropped, Ignored, Refused, RefusedAtStart};
use crate::ValueForm::YesNo;
use crate::row::{FieldRow, Unused, libvirt, rows};

// `tests/tests/real_libvirt/sources.rs` compares the lists, and the reactions of libvirt, with real ones.
const WEB: &[NetworkProtocol] = &[Http, Https];
const CURL: &[NetworkProtocol] = &[Http, Https, Ftp, Ftps];
const LOGIN: &[NetworkProtocol] = &[Rbd, Iscsi, Http, Https, Ftp, Ftps, Ssh];

rows! {
    /// Every field.
    IMAGE_FIELDS;
    /// The row of a field of an image. `source/readahead/@size` is a whole element, which says nothing else.
    image(ImageField);

    Image: "an image", libvirt("image", (0, 0, 3)).spec("backing-chain");
    Format: "a format", libvirt("format", (0, 1, 8)).spec("format");
    Source: "a source", libvirt("source", (0, 0, 3));
    Path: "a path", libvirt("source path", (0, 0, 3)).path().spec("path");
    FdGroup: "a group of file descriptors", libvirt("source/@fdgroup", (9, 0, 0));
    NetworkProtocol: "a protocol", libvirt("source/@protocol", (0, 8, 7))
        .later(&[("nfs", (7, 0, 0), None), ("vxhs", (3, 8, 0), None)]).spec("protocol");
    NetworkName: "a name on the server", libvirt("source/@name", (0, 8, 7)).spec("name");
    Query: "a query", libvirt("source/@query", (6, 2, 0)).of(WEB, Dropped).spec("query");
    Tls: "TLS by this switch", libvirt("source/@tls", (3, 8, 0)).form(YesNo).of(&[Nbd, Vxhs], RefusedAtStart)
        .node("tls-creds").spec("tls");
    TlsHostname: "a host name for the TLS certificate", libvirt("source/@tlsHostname", (8, 2, 0)).qemu_since((7, 0, 0))
        .of(&[Nbd], Refused).node("tls-hostname").spec("tls-hostname");
    Hosts: "servers", libvirt("source/host", (0, 8, 7)).spec("hosts");
    Snapshot: "a snapshot", libvirt("source/snapshot/@name", (1, 2, 11)).of(&[Rbd], Ignored)
        .node("snapshot").spec("snapshot");
    ConfigFile: "a configuration file", libvirt("source/config/@file", (1, 2, 11)).of(&[Rbd], Ignored).path()
        .node("conf").spec("config-file");
    Initiator: "an initiator", libvirt("source/initiator/iqn/@name", (4, 7, 0)).of(&[Iscsi], Ignored)
        .node("initiator-name").spec("initiator");
    SslVerify: "a switch for verifying certificates", libvirt("source/ssl/@verify", (6, 2, 0)).form(YesNo)
        .of(&[Https, Ftps], Dropped).node("sslverify").spec("ssl-verify");
    Cookies: "a list of cookies", libvirt("source/cookies", (6, 2, 0)).of(WEB, Dropped).node("cookie-secret");
    Readahead: "a readahead", libvirt("source/readahead/@size", (6, 2, 0)).of(CURL, Dropped)
        .node("readahead").spec("readahead");
    Timeout: "a timeout", libvirt("source/timeout/@seconds", (6, 2, 0)).of(CURL, Dropped)
        .node("timeout").spec("timeout");
    ReconnectDelay: "a delay of reconnecting", libvirt("source/reconnect/@delay", (9, 2, 0)).of(&[Nbd], Dropped)
        .node("reconnect-delay").spec("reconnect-delay");
    Identity: "an identity", libvirt("source/identity", (7, 0, 0)).of(&[Nfs, Ssh], Dropped).spec("identity");
    User: "an owner of files", libvirt("source/identity/@user", (7, 0, 0)).of(&[Nfs], Dropped).spec("user");
    Group: "a group of files", libvirt("source/identity/@group", (7, 0, 0)).of(&[Nfs], Dropped).spec("group");
    Username: "a name to log in with", libvirt("source/identity/@username", (9, 8, 0)).of(&[Ssh], Dropped)
        .spec("username");
    KeyFile: "a key file", libvirt("source/identity/@keyfile", (9, 8, 0)).of(&[Ssh], Dropped).path().spec("keyfile");
    AgentSocket: "a socket of an SSH agent", libvirt("source/identity/@agentsock", (9, 8, 0)).of(&[Ssh], Dropped)
        .path().spec("agent-socket");
    KnownHosts: "a file of known hosts", libvirt("source/knownHosts/@path", (9, 8, 0)).of(&[Ssh], Dropped).path()
        .spec("known-hosts");
    Pool: "a pool", libvirt("source/@pool", (1, 0, 5));
    Volume: "a volume", libvirt("source/@volume", (1, 0, 5));
    VolumeMode: "a mode", libvirt("source/@mode", (1, 1, 1));
    Namespace: "a namespace", libvirt("source/@namespace", (6, 0, 0)).node("namespace");
    Managed: "managed", libvirt("source/@managed", (6, 0, 0));
    SourceAddress: "an address", libvirt("source/address", (6, 0, 0)).node("device");
    Slice: "a slice", libvirt("source/slices", (6, 1, 0));
    DataFile: "a data file", libvirt("source/dataStore", (10, 10, 0)).spec("data-file");
    Encryption: "encryption", libvirt("source/encryption", (3, 9, 0));
    Authentication: "a login", libvirt("source/auth", (3, 9, 0)).of(LOGIN, Refused).spec("auth");
    Reservations: "reservations", libvirt("source/reservations", (4, 4, 0)).node("pr-manager");
    MetadataCacheSize: "a metadata cache", libvirt("format/metadata_cache", (7, 0, 0));
}

/// A member of a network source that its protocol does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusedMember {
    /// The field.
    pub field: ImageField,
    /// What people call it, as the object of a sentence.
    pub noun: &'static str,
    /// The protocols that have it.
    pub protocols: &'static [NetworkProtocol],
    /// The reaction of libvirt.
    pub unused: Unused,
}

/// The members of a network source that are set, and that its protocol does not have.
pub fn unused_members(source: &NetworkSource) -> impl Iterator<Item = UnusedMember> {
    let fields = NetworkSource::FIELDS.iter().copied();
    let set = fields.filter(|field| match field {
        // A switch that is off says what is the case anyway.
        ImageField::Tls => source.tls == Some(Switch::On),
        _ => source.has(*field),
    });
    set.filter_map(|field| {
        let row = image(field);
        let (protocols, unused) = row.protocols?;
        (!protocols.contains(&source.protocol)).then_some(UnusedMember {
            field,
            noun: row.noun,
            protocols,
            unused,
        })
    })
}

/// Removes the members of a network source that libvirt accepts for its protocol and does not use.
pub fn remove_ignored_members(source: &mut NetworkSource) {
    let unused: Vec<UnusedMember> = unused_members(source).collect();
    for UnusedMember { field, unused, .. } in unused {
        if let (Dropped | Ignored, Some(slot)) = (unused, source.field_mut(field)) {
            slot.clear();
        }
    }
}
