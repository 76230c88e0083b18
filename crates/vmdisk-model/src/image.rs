//! An image: a format on a protocol, and what belongs to it.

use crate::{
    Authentication, Bytes, Creation, DevicePath, Encryption, FieldKind, FieldType, Fields, Format,
    ImageField, NetworkSource, PciAddress, Secret, Switch, fields,
};
use vmdisk_source::words;

fields! {
    /// An image: a format node on a protocol node, with what lies below it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Image of ImageField {
        /// Format; unset is raw for libvirt and probed by QEMU's `-drive`.
        pub format: Option<Format> = Format,
        /// Where the bytes are.
        pub protocol: Protocol,
        /// What lies below.
        pub backing: Backing,
        /// The part of the storage that the image is; the rest is somebody else's.
        pub slice: Option<Slice> = Slice,
        /// Where a qcow2 image has its data, if not in itself; libvirt `<dataStore>` (10.10), QEMU
        /// `data-file`.
        pub data_file: Option<Box<Image>> = DataFile,
        /// How the image is encrypted.
        pub encryption: Option<Box<Encryption>> = Encryption,
        /// How QEMU logs in to the server that has the image.
        pub authentication: Option<Box<Authentication>> = Authentication,
        /// Who makes persistent reservations on the device.
        pub reservations: Option<Reservations> = Reservations,
        /// Descriptors that are passed to libvirt instead of the path; libvirt `source/@fdgroup` (9.0).
        pub fd_group: Option<String> = FdGroup,
        /// Largest qcow2 metadata cache of an image below the top one; libvirt
        /// `backingStore/format/metadata_cache` (7.0). The top image's is the
        /// [`Backend`](crate::Backend)'s.
        pub metadata_cache_size: Option<Bytes> = MetadataCacheSize,
        /// Creation options of the storage, if it must be created.
        pub creation: Option<Creation>,
        /// How the text of the guest makes the image, if it does: a script with `qemu-img create`.
        pub made_as: Option<MadeAs>,
    }
}

impl ImageField {
    /// Which values the field can have; `None` for a group of fields, and for one that is never unset.
    pub const fn kind(self) -> Option<FieldKind> {
        match NetworkSource::kind_of(self) {
            Some(kind) => Some(kind),
            None => Image::kind_of(self),
        }
    }
}

impl Image {
    /// An image with every option left open.
    pub const fn new(format: Option<Format>, protocol: Protocol) -> Self {
        Image {
            format,
            protocol,
            backing: Backing::Unspecified,
            slice: None,
            data_file: None,
            encryption: None,
            authentication: None,
            reservations: None,
            fd_group: None,
            metadata_cache_size: None,
            creation: None,
            made_as: None,
        }
    }

    /// An image in a file.
    pub fn file(path: impl Into<String>, format: Format) -> Self {
        Image::new(Some(format), Protocol::File { path: path.into() })
    }

    /// A raw image on a block device.
    pub fn host_device(path: impl Into<String>) -> Self {
        let path = DevicePath::new(path);
        Image::new(Some(Format::Raw), Protocol::HostDevice { path })
    }

    /// Path of the file or block device that is opened; `None` where none is, as for an image on a
    /// network, or one whose descriptors are passed in.
    pub fn host_path(&self) -> Option<&str> {
        if self.fd_group.is_some() {
            return None;
        }
        self.protocol.on_host().map(HostStorage::path)
    }

    /// The format other than raw that the file name stands for.
    pub fn format_by_name(&self) -> Option<Format> {
        let (name, extension) = self.host_path()?.rsplit_once('.')?;
        let format = match extension {
            // libvirt's word for VHDX is `vhd`; files with that extension are Virtual PC's.
            "vhd" => Some(Format::Vpc),
            "vhdx" => Some(Format::Vhd),
            // The format `qcow` is older than 2008.
            "qcow" => Some(Format::Qcow2),
            // Ubuntu's images: `noble-server-cloudimg-amd64.img`.
            "img" if name.contains("cloudimg") => Some(Format::Qcow2),
            _ => Format::from_word(extension),
        };
        format.filter(|format| *format != Format::Raw && *format != Format::Iso)
    }

    /// True if the first bytes of the storage are those of the format: not where the image begins
    /// elsewhere in it, nor where a raw image is encrypted, which puts another header there.
    pub fn is_headed_by_its_format(&self) -> bool {
        let is_raw = matches!(self.format, Some(Format::Raw) | None);
        self.slice.is_none_or(|slice| slice.offset == 0) && !(is_raw && self.encryption.is_some())
    }

    /// True if a field of the image, or of its network source, is set.
    pub fn has_member(&self, field: ImageField) -> bool {
        let of_source = match &self.protocol {
            Protocol::Network(source) => source.field(field),
            _ => None,
        };
        of_source
            .or_else(|| self.field(field))
            .is_some_and(FieldType::is_set)
    }

    /// This image and those below it, top first.
    pub fn chain(&self) -> impl Iterator<Item = &Image> {
        std::iter::successors(Some(self), |image| match &image.backing {
            Backing::Image(below) => Some(below),
            Backing::Unspecified | Backing::Terminated => None,
        })
    }

    /// The secret of the login and those of the encryption, without those of images below.
    pub fn secrets(&self) -> impl Iterator<Item = (ImageField, &Secret)> {
        let login = self.authentication.iter();
        let login = login.filter_map(|login| login.secret.as_ref());
        let keys = self.encryption.iter().flat_map(|it| &it.secrets);
        let login = login.map(|secret| (ImageField::Authentication, secret));
        login.chain(keys.map(|secret| (ImageField::Encryption, secret)))
    }
}

/// The format of an image that the text of its guest makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeAs {
    /// This one, wherever the text makes it.
    Format(Format),
    /// The text does not tell which, or makes it with several.
    Unclear,
}

/// Where the bytes of an image are; QEMU's protocol node, libvirt's `<source>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A regular file; libvirt `type='file'`, QEMU driver `file`.
    File {
        /// Path on the host.
        path: String,
    },
    /// A block device; libvirt `type='block'`, QEMU driver `host_device`.
    HostDevice {
        /// Path on the host.
        path: DevicePath,
    },
    /// A directory that is shown as a FAT file system; libvirt `type='dir'` (0.7.5), QEMU `vvfat`.
    Directory {
        /// Path on the host.
        path: String,
    },
    /// Storage on a network; libvirt `type='network'`.
    Network(Box<NetworkSource>),
    /// A volume of a storage pool, which libvirt looks up at start; libvirt `type='volume'` (1.0.5).
    Volume(VolumeSource),
    /// A controller of the host that QEMU drives itself; libvirt `type='nvme'` (6.0), QEMU `nvme`.
    Nvme(NvmeSource),
    /// A block device of a vDPA parent; libvirt `type='vhostvdpa'` (9.8), QEMU
    /// `virtio-blk-vhost-vdpa` (8.1).
    VhostVdpa {
        /// Path of the character device.
        path: String,
    },
    /// A protocol that the model does not cover, by libvirt's word for the type of the source or QEMU's
    /// for the driver; its text is kept by the reader.
    Other(String),
}

/// Storage that has a path on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStorage<'a> {
    /// A regular file.
    File(&'a str),
    /// A block device.
    Device(&'a DevicePath),
}

impl<'a> HostStorage<'a> {
    /// The path.
    pub fn path(self) -> &'a str {
        match self {
            HostStorage::File(path) => path,
            HostStorage::Device(path) => &path.0,
        }
    }
}

impl Protocol {
    /// The file or block device, if the storage is one; `None` for what no path on the host names, such
    /// as a network or a controller, and what only libvirt can find.
    pub const fn on_host(&self) -> Option<HostStorage<'_>> {
        match self {
            Protocol::File { path } => Some(HostStorage::File(path.as_str())),
            Protocol::HostDevice { path } => Some(HostStorage::Device(path)),
            _ => None,
        }
    }

    /// libvirt's word for the type of the source; `None` for a protocol that the model does not cover.
    pub const fn source_type(&self) -> Option<&'static str> {
        match self {
            Protocol::File { .. } => Some("file"),
            Protocol::HostDevice { .. } => Some("block"),
            Protocol::Directory { .. } => Some("dir"),
            Protocol::Network(_) => Some("network"),
            Protocol::Volume(_) => Some("volume"),
            Protocol::Nvme(_) => Some("nvme"),
            Protocol::VhostVdpa { .. } => Some("vhostvdpa"),
            Protocol::Other(_) => None,
        }
    }
}

words! {
    /// How a volume of an iSCSI pool is reached; libvirt `source/@mode` (1.1.1). Default: `host`.
    pub enum VolumeMode as as_str {
        /// As a block device that the host has logged in to.
        Host = "host",
        /// By QEMU itself, over the network.
        Direct = "direct",
    }
}

/// A volume of a storage pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSource {
    /// Name of the pool.
    pub pool: String,
    /// Name of the volume in it.
    pub volume: String,
    /// How it is reached.
    pub mode: Option<VolumeMode>,
}

/// A controller of the host that QEMU drives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeSource {
    /// Where the controller sits on the host.
    pub address: PciAddress,
    /// The namespace, from 1.
    pub namespace: u64,
    /// Whether libvirt takes the controller from the host's driver and gives it back. Default: yes.
    pub managed: Option<Switch>,
}

/// A part of some storage; libvirt `slices/slice` (6.1), QEMU `offset` and `size` of a `raw` node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub size: u64,
}

/// Who makes persistent reservations on a device; libvirt `source/reservations` (4.4), QEMU
/// `pr-manager`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// True if libvirt starts the helper, false if it already listens on [`Self::socket`].
    pub managed: Option<Switch>,
    /// Path of the helper's socket.
    pub socket: Option<String>,
    /// Whether reservations move with the guest (libvirt 12.1).
    pub migration: Option<Switch>,
}

/// What lies below an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Not said: the image's own header decides.
    Unspecified,
    /// Said to be nothing; libvirt `<backingStore/>`, QEMU `"backing": null`.
    Terminated,
    /// This image.
    Image(Box<Image>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_an_extension_that_stands_for_a_format_other_than_raw() {
        for (path, format) in [
            ("/srv/a.qcow2", Some(Format::Qcow2)),
            ("/srv/a.vhd", Some(Format::Vpc)),
            ("/srv/a.vhdx", Some(Format::Vhd)),
            ("/srv/a.raw", None),
            ("/srv/a.iso", None),
            ("/srv/a.img", None),
            ("/srv/a", None),
        ] {
            let mut image = Image::file(path, Format::Raw);
            assert_eq!(image.host_path(), Some(path));
            assert_eq!(image.format_by_name(), format, "{path}");
            image.fd_group = Some("group".to_owned());
            assert_eq!((image.host_path(), image.format_by_name()), (None, None));
        }
    }

    #[test]
    fn a_header_is_at_the_start_unless_a_slice_or_an_encryption_moves_it() {
        for (format, offset, is_encrypted, is_headed) in [
            (Some(Format::Raw), None, false, true),
            (Some(Format::Raw), Some(0), false, true),
            (Some(Format::Qcow2), Some(512), false, false),
            (Some(Format::Qcow2), None, true, true),
            (Some(Format::Raw), None, true, false),
            (None, None, true, false),
            (None, Some(1), false, false),
        ] {
            let mut image = Image::new(
                format,
                Protocol::File {
                    path: "/a".to_owned(),
                },
            );
            image.slice = offset.map(|offset| Slice {
                offset,
                size: 1 << 20,
            });
            image.encryption = is_encrypted.then(Box::default);
            assert_eq!(
                image.is_headed_by_its_format(),
                is_headed,
                "{format:?} {offset:?}"
            );
            assert_eq!(image.has_member(ImageField::Encryption), is_encrypted);
            assert_eq!(image.has_member(ImageField::Slice), offset.is_some());
        }
    }
}
