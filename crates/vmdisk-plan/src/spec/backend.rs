//! The backend of a spec.

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;
use vmdisk_model::{Bytes, Format, LogicalVolumeName, Preallocation, Qcow2Preallocation};

use super::access::DeviceAccess;
use super::direct::{DirectorySpec, NvmeSpec, VhostVdpaSpec, VolumeSpec, ZvolSpec};
use super::encryption::EncryptionSpec;
use super::network::NetworkSpec;
use super::node::describe;
use super::section::{
    ErrorReported, GroupSchema, Keys, Reader, Slot, SpecValue, all_of, list_of, section,
};

section! {
    /// A drive without a medium.
    pub struct EmptySpec {
    }
}

section! {
    /// A raw file: the bytes are the disk.
    #[derive(Default)]
    pub struct RawSpec {
        /// Absolute path on the host.
        path: String = "path",
        /// Size that the guest sees; with it the file is created, without it the file exists.
        size: Option<Bytes> = "size",
        /// The image that the new one is a copy of. `size` can be larger.
        source: Option<BackingSpec> = "source",
        /// Preallocation; default `off`.
        preallocation: Option<Preallocation> = "preallocation",
        /// Whether the file is created without copy-on-write, and therefore without checksums (btrfs only).
        nocow: Option<bool> = "nocow",
        /// Encryption with LUKS.
        encryption: Option<EncryptionSpec> = "encryption",
        /// Owner of the new file, by name or number; default: who makes it.
        owner: Option<String> = "owner",
        /// Group of the new file, by name or number.
        group: Option<String> = "group",
        /// Permissions of the new file, in octal digits; default 0600.
        mode: Option<String> = "mode",
    }
}

section! {
    /// A qcow2 image.
    #[derive(Default)]
    pub struct Qcow2Spec {
        /// Absolute path on the host.
        path: String = "path",
        /// Size that the guest sees; with it, or with a backing image, the image is created.
        size: Option<Bytes> = "size",
        /// The image that the new one is a copy of. `size` can be larger.
        source: Option<BackingSpec> = "source",
        /// Preallocation; default `off`.
        preallocation: Option<Qcow2Preallocation> = "preallocation",
        /// Unit of allocation, a power of two from 512 bytes to 2 MiB; default 64 KiB.
        cluster_size: Option<Bytes> = "cluster-size",
        /// Subclusters, 32 per cluster; needs clusters of 16 KiB or more (QEMU 5.2).
        extended_l2: Option<bool> = "extended-l2",
        /// Lazy reference counts: faster with cache writethrough, but a crash requires a repair.
        lazy_refcounts: Option<bool> = "lazy-refcounts",
        /// The backing image, which is not changed.
        backing: Option<BackingSpec> = "backing",
        /// The backing images of an existing image, from the top down; `none` or `[]` if there are none. Default: the
        /// chain that the headers name.
        backing_chain: Option<Vec<BackingSpec>> = "backing-chain",
        /// Absolute path of the external data file of an existing image (libvirt 10.10).
        data_file: Option<String> = "data-file",
        /// Encryption with LUKS.
        encryption: Option<EncryptionSpec> = "encryption",
        /// Whether the file is created without copy-on-write, and therefore without checksums (btrfs only).
        nocow: Option<bool> = "nocow",
        /// Owner of the new file, by name or number; default: who makes it.
        owner: Option<String> = "owner",
        /// Group of the new file, by name or number.
        group: Option<String> = "group",
        /// Permissions of the new file, in octal digits; default 0600.
        mode: Option<String> = "mode",
    }
}

section! {
    /// A new image from which cloud-init reads the configuration of the guest (NoCloud).
    pub struct SeedSpec {
        /// Absolute path of the image on the host.
        path: String = "path",
        /// Absolute path of the file with the user data.
        user_data: String = "user-data",
        /// Absolute path of the file with the metadata, such as `instance-id`.
        meta_data: String = "meta-data",
        /// Absolute path of the file with the configuration of the network.
        network_config: Option<String> = "network-config",
        /// Owner of the new file, by name or number; default: who makes it.
        owner: Option<String> = "owner",
        /// Group of the new file, by name or number.
        group: Option<String> = "group",
        /// Permissions of the new file, in octal digits; default 0600.
        mode: Option<String> = "mode",
    }
}

section! {
    /// An image, with its format.
    pub struct BackingSpec {
        /// Absolute path on the host.
        path: String = "path",
        /// Its format, which is never guessed: a guest can write a header of its choice to a raw disk.
        format: Format = "format",
    }
}

impl SpecValue for Vec<BackingSpec> {
    /// A one-liner has no empty list, so `none` is one.
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        if node == Value::Text("none".to_owned()) {
            return Some(Vec::new());
        }
        let Value::List(items) = node else {
            let message = format!("expected a list of images, found {}", describe(&node));
            reader.refuse(message).help = Some("write `[{path: …, format: …}]`".to_owned());
            return None;
        };
        reader.items(items, BackingSpec::read)
    }

    fn write(&self) -> Value {
        Value::list(self.iter().map(SpecValue::write))
    }

    fn schema() -> Schema {
        json!({
            "oneOf": [{ "const": "none" }, { "type": "array", "items": BackingSpec::schema() }]
        })
    }
}

section! {
    /// A thick logical volume.
    #[derive(Default)]
    pub struct LvmSpec {
        /// Volume group.
        group: String = "group",
        /// Logical volume.
        volume: String = "volume",
        /// Size; with it the volume is created, without it the volume exists.
        size: Option<Bytes> = "size",
    }
}

section! {
    /// A thin logical volume.
    #[derive(Default)]
    pub struct LvmThinSpec {
        /// Volume group.
        group: String = "group",
        /// Logical volume.
        volume: String = "volume",
        /// Size that the guest sees; with it the volume is created, without it the volume exists.
        size: Option<Bytes> = "size",
        /// Thin pool in the same group; required for a new volume.
        pool: Option<String> = "pool",
        /// Size of the pool; with it the pool is created too.
        pool_size: Option<Bytes> = "pool-size",
        /// Unit of allocation of a new pool: a multiple of 64 KiB up to 1 GiB.
        chunk_size: Option<Bytes> = "chunk-size",
        /// Whether a new pool zeroes each chunk before the first use; default `true`.
        zero: Option<bool> = "zero",
    }
}

section! {
    /// A block device of the host: a whole disk, a partition, or anything else that exists.
    #[derive(Default)]
    pub struct DeviceSpec {
        /// Path of the device, preferably a persistent name, such as one below /dev/disk/by-id.
        path: String = "path",
        /// Whether the guest sees an emulated disk or the device's own SCSI commands; default `emulated`.
        access: Option<DeviceAccess> = "as",
        /// Format of the image on it; default `raw`, never guessed.
        format: Option<Format> = "format",
        /// The backing images of a qcow2 image, from the top down; `none` or `[]` if there are none. Default: the
        /// chain that the headers name.
        backing_chain: Option<Vec<BackingSpec>> = "backing-chain",
    }
}

section! {
    /// A disk served by another process over a socket.
    pub struct VhostUserBlkSpec {
        /// Absolute path of the UNIX socket.
        socket: String = "socket",
        /// Whether QEMU reconnects after a restart of the daemon.
        reconnect: Option<bool> = "reconnect",
        /// Seconds between attempts; default 10.
        reconnect_timeout: Option<u32> = "reconnect-timeout",
        /// The image that the daemon serves, where that is `qemu-storage-daemon`: its command line is written
        /// with QEMU's then, and the disk's `cache`, `io`, `discard` and `detect-zeroes` are its own.
        serves: Option<BackingSpec> = "serves",
    }
}

impl LvmSpec {
    /// Group and volume.
    pub fn name(&self) -> LogicalVolumeName {
        LogicalVolumeName {
            group: self.group.clone(),
            volume: self.volume.clone(),
        }
    }
}

impl LvmThinSpec {
    /// Group and volume.
    pub fn name(&self) -> LogicalVolumeName {
        LogicalVolumeName {
            group: self.group.clone(),
            volume: self.volume.clone(),
        }
    }
}

/// Declares the kinds of backend: one key each, of which a disk has exactly one.
macro_rules! backends {
    ($( $(#[doc = $doc:literal])+ $variant:ident($type:ty) = $key:literal, )+) => {
        /// The backend of a disk; a disk has exactly one.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum BackendSpec {
            $( $(#[doc = $doc])+ $variant($type), )+
        }

        $( impl From<$type> for BackendSpec {
            fn from(backend: $type) -> Self {
                BackendSpec::$variant(backend)
            }
        } )+

        impl Default for BackendSpec {
    fn default() -> Self {
        EmptySpec {}.into()
    }
}

impl BackendSpec {
            /// The keys that say which backend it is.
            pub const KINDS: &'static [&'static str] = &[$($key,)+];

            /// The key that says which backend it is.
            pub const fn kind(&self) -> &'static str {
                match self { $( BackendSpec::$variant(_) => $key, )+ }
            }

            /// The keys that a kind of backend has.
            pub(crate) fn keys_of(kind: &str) -> Vec<&'static str> {
                match kind { $( $key => <$type>::keys(), )+ _ => Vec::new() }
            }

            fn read_kind(kind: &str, keys: &mut Keys<'_>) -> Result<Option<Self>, ErrorReported> {
                match kind {
                    $( $key => Ok(keys.read::<$type>($key)?.map(BackendSpec::$variant)), )+
                    _ => Ok(None),
                }
            }

            fn written(&self) -> Value {
                match self { $( BackendSpec::$variant(backend) => backend.write(), )+ }
            }

            fn describe_kinds(group: &mut GroupSchema) {
                $( group.property::<$type>($key, concat!($($doc),+)); )+
                $( group.one_of.push(serde_json::json!({ "required": [$key] })); )+
            }
        }
    };
}

backends! {
    /// A raw file.
    Raw(RawSpec) = "raw",
    /// A qcow2 image.
    Qcow2(Qcow2Spec) = "qcow2",
    /// A thick logical volume.
    Lvm(LvmSpec) = "lvm",
    /// A thin logical volume.
    LvmThin(LvmThinSpec) = "lvm-thin",
    /// A block device of the host.
    Device(DeviceSpec) = "device",
    /// A ZFS volume.
    Zvol(ZvolSpec) = "zvol",
    /// A namespace of an NVMe controller that QEMU drives directly.
    Nvme(NvmeSpec) = "nvme",
    /// A block device of a vDPA parent.
    VhostVdpa(VhostVdpaSpec) = "vhost-vdpa",
    /// A directory as a FAT file system.
    Directory(DirectorySpec) = "directory",
    /// A volume of a storage pool.
    Volume(VolumeSpec) = "volume",
    /// A disk served by another process over a socket.
    VhostUserBlk(VhostUserBlkSpec) = "vhost-user-blk",
    /// A disk on a server, to which QEMU connects directly.
    Network(NetworkSpec) = "network",
    /// A CD or floppy drive without a medium.
    Empty(EmptySpec) = "empty",
    /// A new image with the configuration for cloud-init.
    Seed(SeedSpec) = "seed",
}

/// What a new file needs beyond its image.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewFile<'s> {
    /// The image that it is a copy of.
    pub(crate) source: Option<&'s BackingSpec>,
    /// The file with its key.
    pub(crate) key_file: Option<&'s str>,
    /// Its owner, group and permissions.
    pub(crate) access: [(&'static str, Option<&'s str>); 3],
}

impl BackendSpec {
    /// The format of the image, if it is written.
    fn format(&self) -> Option<Format> {
        match self {
            BackendSpec::Qcow2(_) => Some(Format::Qcow2),
            BackendSpec::Network(network) => network.format,
            BackendSpec::Volume(volume) => volume.format,
            BackendSpec::Device(device) => device.format,
            _ => None,
        }
    }

    /// True for a qcow2 image, wherever it is.
    pub(crate) fn is_qcow2(&self) -> bool {
        self.format() == Some(Format::Qcow2)
    }

    /// True for storage that several disks may write to: what is not raw has one writer, and so has a socket.
    pub(crate) fn can_be_shared(&self) -> bool {
        let is_raw = matches!(self.format(), None | Some(Format::Raw));
        is_raw && !matches!(self, BackendSpec::VhostUserBlk(_))
    }

    /// What the new file needs, if it is one.
    pub(crate) fn new_file(&self) -> NewFile<'_> {
        let (source, encryption, [owner, group, mode]) = match self {
            BackendSpec::Raw(it) => {
                let access = [&it.owner, &it.group, &it.mode];
                (it.source.as_ref(), it.encryption.as_ref(), access)
            }
            BackendSpec::Qcow2(it) => {
                let access = [&it.owner, &it.group, &it.mode];
                (it.source.as_ref(), it.encryption.as_ref(), access)
            }
            BackendSpec::Seed(it) => (None, None, [&it.owner, &it.group, &it.mode]),
            _ => return NewFile::default(),
        };
        let access = [("owner", owner), ("group", group), ("mode", mode)];
        NewFile {
            source,
            key_file: encryption.and_then(|it| it.key_file.as_deref()),
            access: access.map(|(key, value)| (key, value.as_deref())),
        }
    }

    /// Why nothing can be written to it, if nothing can.
    pub(crate) fn only_read_because(&self) -> Option<String> {
        match self {
            BackendSpec::Network(network) => network.only_read_because(),
            BackendSpec::Directory(_) => Some("a directory is shown read-only".to_owned()),
            BackendSpec::Seed(_) => Some("a seed image is only read".to_owned()),
            _ => None,
        }
    }
}

impl Slot for BackendSpec {
    fn keys(_: &'static str) -> Vec<&'static str> {
        BackendSpec::KINDS.to_vec()
    }

    fn take(keys: &mut Keys<'_>, _: &'static str) -> Option<Self> {
        let written: Vec<&str> = BackendSpec::KINDS
            .iter()
            .copied()
            .filter(|kind| keys.has(kind))
            .collect();
        match written[..] {
            [kind] => match BackendSpec::read_kind(kind, keys) {
                Ok(Some(backend)) => Some(backend),
                Ok(None) => {
                    let known = BackendSpec::keys_of(kind);
                    let at = keys.reader.at().key(kind);
                    let below = format!("`{kind}` has no value");
                    let help = format!("its keys are {}", all_of(&known));
                    keys.reader
                        .inside(at, |reader| reader.refuse(below).help = Some(help));
                    None
                }
                Err(ErrorReported) => None,
            },
            [] => {
                let kinds = list_of(BackendSpec::KINDS);
                keys.reader
                    .refuse("the backend of the disk is missing")
                    .help = Some(format!("write one of {kinds}"));
                None
            }
            [ref first, ref rest @ ..] => {
                let message = format!(
                    "a disk has one backend, but this one has {}",
                    all_of(&written)
                );
                let at = keys.reader.at().key(rest[0]);
                let help = format!("keep `{first}`, or make it two disks");
                keys.reader
                    .refuse_as(super::SpecError::key(at, message))
                    .help = Some(help);
                for kind in &written {
                    keys.take(kind);
                }
                None
            }
        }
    }

    fn put(&self, _: &'static str, map: &mut Vec<(String, Value)>) {
        map.push((self.kind().to_owned(), self.written()));
    }

    fn describe(_: &'static str, _: &str, group: &mut GroupSchema) {
        BackendSpec::describe_kinds(group);
    }
}
