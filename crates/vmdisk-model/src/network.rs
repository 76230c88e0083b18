//! Storage that is reached over a network.

use crate::{Bytes, ImageField, Switch, fields};
use vmdisk_source::words;

words! {
    /// Protocol of network storage; libvirt `source/@protocol`, QEMU driver of the same name.
    pub enum NetworkProtocol as as_str {
        /// Network block device.
        Nbd = "nbd",
        /// SCSI over TCP.
        Iscsi = "iscsi",
        /// Ceph block device.
        Rbd = "rbd",
        /// Sheepdog; QEMU removed it in 6.0, and libvirt refuses it.
        Sheepdog = "sheepdog",
        /// GlusterFS; QEMU removed it in 11.1.
        Gluster = "gluster",
        /// Veritas HyperScale; QEMU removed it in 5.1.
        Vxhs = "vxhs",
        /// NFS, spoken by QEMU itself (libvirt 7.0).
        Nfs = "nfs",
        /// A file on a web server.
        Http = "http",
        /// The same over TLS.
        Https = "https",
        /// A file on an FTP server.
        Ftp = "ftp",
        /// The same over TLS.
        Ftps = "ftps",
        /// A file on a TFTP server; QEMU removed it in 2.8.
        Tftp = "tftp",
        /// A file behind a secure shell.
        Ssh = "ssh",
    }
}

impl NetworkProtocol {
    /// libvirt's default port (`virStorageSourceNetworkDefaultPort`); 0 where
    /// the client library knows better.
    pub const fn default_port(self) -> u32 {
        match self {
            NetworkProtocol::Nbd => 10809,
            NetworkProtocol::Iscsi => 3260,
            NetworkProtocol::Rbd | NetworkProtocol::Nfs => 0,
            NetworkProtocol::Sheepdog => 7000,
            NetworkProtocol::Gluster => 24007,
            NetworkProtocol::Vxhs => 9999,
            NetworkProtocol::Http => 80,
            NetworkProtocol::Https => 443,
            NetworkProtocol::Ftp => 21,
            NetworkProtocol::Ftps => 990,
            NetworkProtocol::Tftp => 69,
            NetworkProtocol::Ssh => 22,
        }
    }

    /// True for what QEMU reads with libcurl.
    pub const fn is_curl(self) -> bool {
        matches!(
            self,
            NetworkProtocol::Http
                | NetworkProtocol::Https
                | NetworkProtocol::Ftp
                | NetworkProtocol::Ftps
                | NetworkProtocol::Tftp
        )
    }
}

words! {
    /// Transport of a connection; libvirt `host/@transport`. Default: `tcp`.
    pub enum NetworkTransport as as_str {
        /// TCP.
        Tcp = "tcp",
        /// Remote direct memory access.
        Rdma = "rdma",
        /// A UNIX socket of this host.
        Unix = "unix",
    }
}

/// One server; libvirt `source/host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkHost {
    /// Name or address.
    pub name: Option<String>,
    /// Port; unset is the protocol's own.
    pub port: Option<u32>,
    /// Transport of the connection; unset is TCP.
    pub transport: Option<NetworkTransport>,
    /// Path of the UNIX socket.
    pub socket: Option<String>,
}

impl NetworkHost {
    /// A server by its name.
    pub fn tcp(name: impl Into<String>, port: Option<u32>) -> Self {
        NetworkHost {
            name: Some(name.into()),
            port,
            ..NetworkHost::default()
        }
    }

    /// A server behind a UNIX socket.
    pub fn unix(socket: impl Into<String>) -> Self {
        NetworkHost {
            transport: Some(NetworkTransport::Unix),
            socket: Some(socket.into()),
            ..NetworkHost::default()
        }
    }
}

/// A cookie that is sent to a web server; its value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

fields! {
    /// Storage that is reached over a network; libvirt `type='network'`.
    ///
    /// The rows of vmdisk-fields say which protocol has which member; libvirt reads most of them for any protocol.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NetworkSource of ImageField {
        /// Protocol.
        pub protocol: NetworkProtocol,
        /// Name on the server: an export, `target/lun`, `pool/image`, `volume/path`, a path.
        pub name: Option<String> = NetworkName,
        /// What follows the `?` of a URL (libvirt 6.2).
        pub query: Option<String> = Query,
        /// Whether the connection is encrypted; nbd (libvirt 4.5), vxhs (3.8).
        pub tls: Option<Switch> = Tls,
        /// Name that the server's certificate must have; nbd (libvirt 8.2, QEMU 7.0).
        pub tls_hostname: Option<String> = TlsHostname,
        /// The servers.
        pub hosts: Vec<NetworkHost> = Hosts,
        /// Snapshot of an rbd image (libvirt 1.2.11).
        pub snapshot: Option<String> = Snapshot,
        /// Configuration file of Ceph (libvirt 1.2.11).
        pub config_file: Option<String> = ConfigFile,
        /// Name under which an iSCSI target is addressed (libvirt 4.7).
        pub initiator: Option<String> = Initiator,
        /// Whether a server's certificate is verified; https and ftps (libvirt 6.2).
        pub ssl_verify: Option<Switch> = SslVerify,
        /// Cookies for a web server (libvirt 6.2).
        pub cookies: Vec<Cookie> = Cookies,
        /// How much is read ahead; http and ftp (libvirt 6.2).
        pub readahead: Option<Bytes> = Readahead,
        /// Seconds after which a request has failed; http and ftp (libvirt 6.2).
        pub timeout: Option<u64> = Timeout,
        /// Owner of files on NFS, a name or `+` and a number (libvirt 7.0).
        pub user: Option<String> = User,
        /// Group of files on NFS (libvirt 7.0).
        pub group: Option<String> = Group,
        /// Who logs in over ssh (libvirt 9.8).
        pub username: Option<String> = Username,
        /// File with the private key for ssh (libvirt 9.8).
        pub keyfile: Option<String> = KeyFile,
        /// Socket of the ssh agent (libvirt 9.8).
        pub agent_socket: Option<String> = AgentSocket,
        /// File with the keys of known ssh servers (libvirt 9.8).
        pub known_hosts: Option<String> = KnownHosts,
        /// Seconds during which a lost connection is made anew before requests fail; nbd (libvirt 9.2).
        pub reconnect_delay: Option<u32> = ReconnectDelay,
    }
}

impl NetworkSource {
    /// A source with every option left open.
    pub const fn new(
        protocol: NetworkProtocol,
        name: Option<String>,
        hosts: Vec<NetworkHost>,
    ) -> Self {
        NetworkSource {
            protocol,
            name,
            query: None,
            tls: None,
            tls_hostname: None,
            hosts,
            snapshot: None,
            config_file: None,
            initiator: None,
            ssl_verify: None,
            cookies: Vec::new(),
            readahead: None,
            timeout: None,
            user: None,
            group: None,
            username: None,
            keyfile: None,
            agent_socket: None,
            known_hosts: None,
            reconnect_delay: None,
        }
    }
}
