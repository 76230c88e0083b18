//! Storage pools and their volumes, as far as disks depend on them.

use crate::{
    Authentication, DevicePath, Encryption, Format, NetworkHost, NetworkProtocol, NetworkSource,
    Protocol, VolumeMode, VolumeSource,
};
use vmdisk_source::words;

words! {
    /// Type of a pool; libvirt `pool/@type`.
    pub enum PoolType as as_str {
        /// A directory.
        Dir = "dir",
        /// A file system on a device, mounted by libvirt.
        Fs = "fs",
        /// A file system on a server.
        Netfs = "netfs",
        /// A volume group of LVM.
        Logical = "logical",
        /// A disk, whose partitions are the volumes.
        Disk = "disk",
        /// An iSCSI target that the host logs in to.
        Iscsi = "iscsi",
        /// An iSCSI target that only guests log in to (libvirt 4.7).
        IscsiDirect = "iscsi-direct",
        /// A SCSI host adapter.
        Scsi = "scsi",
        /// All multipath devices.
        Mpath = "mpath",
        /// A Ceph pool.
        Rbd = "rbd",
        /// Sheepdog.
        Sheepdog = "sheepdog",
        /// A Gluster volume.
        Gluster = "gluster",
        /// A pool of ZFS.
        Zfs = "zfs",
        /// Virtuozzo storage.
        Vstorage = "vstorage",
    }
}

/// A storage pool; libvirt `<pool>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePool {
    /// Type.
    pub pool_type: PoolType,
    /// Name by which disks speak of it.
    pub name: Option<String>,
    /// Where its volumes are on the host; libvirt `target/path`.
    pub target_path: Option<String>,
    /// Name of the volume group, Ceph pool, Gluster volume or ZFS pool; libvirt `source/name`.
    pub source_name: Option<String>,
    /// Devices or targets that it is made of; libvirt `source/device/@path`.
    pub devices: Vec<String>,
    /// Directory on the server; libvirt `source/dir/@path`.
    pub directory: Option<String>,
    /// Servers.
    pub hosts: Vec<NetworkHost>,
    /// Name under which an iSCSI target is addressed.
    pub initiator: Option<String>,
    /// How the servers are logged in to.
    pub authentication: Option<Box<Authentication>>,
}

words! {
    /// Type of a volume; libvirt `volume/@type` (1.3.4), derived from the pool where it is unset.
    pub enum VolumeType as as_str {
        /// A file.
        File = "file",
        /// A block device.
        Block = "block",
        /// A directory.
        Dir = "dir",
        /// An image on a server.
        Network = "network",
        /// A directory on a server.
        Netdir = "netdir",
        /// A Parallels image, which is a directory.
        Ploop = "ploop",
    }
}

/// A volume of a storage pool; libvirt `<volume>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageVolume {
    /// Its name.
    pub name: Option<String>,
    /// Type.
    pub volume_type: Option<VolumeType>,
    /// Where it is; libvirt `target/path`.
    pub path: Option<String>,
    /// Format; libvirt `target/format`.
    pub format: Option<Format>,
    /// Path of the image below; libvirt `backingStore/path`.
    pub backing_path: Option<String>,
    /// Format of the image below; libvirt `backingStore/format`.
    pub backing_format: Option<Format>,
    /// How it is encrypted.
    pub encryption: Option<Box<Encryption>>,
}

/// A volume as libvirt opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedVolume {
    /// The storage to open.
    pub protocol: Protocol,
    /// How a server is logged in to, where the pool says it.
    pub authentication: Option<Box<Authentication>>,
}

/// Why a volume is not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeNotLocated {
    /// libvirt takes no volume of such a pool for a disk.
    PoolTypeRefused(PoolType),
    /// libvirt takes a mode for volumes of iSCSI pools only.
    ModeRefused(PoolType),
    /// libvirt takes no volume of this type for a disk.
    VolumeTypeRefused(VolumeType),
    /// The name of a unit of an iSCSI target is not `unit:0:0:1`.
    NameRefused,
    /// The known facts of the pool do not give the location of the volume.
    NotSaid,
}

impl StoragePool {
    /// A pool of which only the type is known.
    pub const fn new(pool_type: PoolType) -> Self {
        StoragePool {
            pool_type,
            name: None,
            target_path: None,
            source_name: None,
            devices: Vec::new(),
            directory: None,
            hosts: Vec::new(),
            initiator: None,
            authentication: None,
        }
    }

    /// The storage that a disk on a volume of this pool opens, as libvirt translates it at start
    /// (`virDomainStorageSourceTranslateSourcePool`); `volume` is what is known of the volume beside its
    /// name.
    ///
    /// # Errors
    /// If libvirt refuses it, or the pool does not say.
    pub fn locate(
        &self,
        source: &VolumeSource,
        volume: Option<&StorageVolume>,
    ) -> Result<LocatedVolume, VolumeNotLocated> {
        let default = match self.pool_type {
            PoolType::Dir | PoolType::Fs | PoolType::Netfs | PoolType::Vstorage => VolumeType::File,
            PoolType::Logical | PoolType::Disk | PoolType::Scsi | PoolType::Zfs => {
                VolumeType::Block
            }
            PoolType::Iscsi => match source.mode {
                Some(VolumeMode::Direct) => return self.iscsi_unit(source),
                Some(VolumeMode::Host) | None => VolumeType::Block,
            },
            PoolType::IscsiDirect => return self.iscsi_unit(source),
            PoolType::Mpath | PoolType::Rbd | PoolType::Sheepdog | PoolType::Gluster => {
                return Err(VolumeNotLocated::PoolTypeRefused(self.pool_type));
            }
        };
        if source.mode.is_some() && self.pool_type != PoolType::Iscsi {
            return Err(VolumeNotLocated::ModeRefused(self.pool_type));
        }
        let written = volume.and_then(|volume| volume.path.clone());
        let path = written
            .or_else(|| self.path_of(&source.volume))
            .ok_or(VolumeNotLocated::NotSaid)?;
        let volume_type = volume.and_then(|volume| volume.volume_type);
        let protocol = match volume_type.unwrap_or(default) {
            VolumeType::File => Protocol::File { path },
            VolumeType::Block => Protocol::HostDevice {
                path: DevicePath::new(path),
            },
            VolumeType::Dir => Protocol::Directory { path },
            other @ (VolumeType::Network | VolumeType::Netdir | VolumeType::Ploop) => {
                return Err(VolumeNotLocated::VolumeTypeRefused(other));
            }
        };
        Ok(LocatedVolume {
            protocol,
            authentication: None,
        })
    }

    /// The path of a volume by its name, where the pool makes it so.
    fn path_of(&self, name: &str) -> Option<String> {
        // The others are links of udev, which say more than the name of the volume.
        let is_made_of_names = matches!(
            self.pool_type,
            PoolType::Dir
                | PoolType::Fs
                | PoolType::Netfs
                | PoolType::Vstorage
                | PoolType::Logical
                | PoolType::Disk
                | PoolType::Zfs
        );
        let of_source =
            |directory: &str| Some(format!("{directory}/{}", self.source_name.as_ref()?));
        let directory = self
            .target_path
            .clone()
            .or_else(|| {
                if self.pool_type == PoolType::Logical {
                    of_source("/dev")
                } else if self.pool_type == PoolType::Zfs {
                    of_source("/dev/zvol")
                } else {
                    None
                }
            })
            .filter(|_| is_made_of_names)?;
        Some(format!("{}/{name}", directory.trim_end_matches('/')))
    }

    /// A unit of the target, spoken to by QEMU itself.
    fn iscsi_unit(&self, source: &VolumeSource) -> Result<LocatedVolume, VolumeNotLocated> {
        let unit = source.volume.split(':').nth(3);
        let unit = unit
            .and_then(|unit| unit.parse::<u32>().ok())
            .ok_or(VolumeNotLocated::NameRefused)?;
        let target = self.devices.first().ok_or(VolumeNotLocated::NotSaid)?;
        let name = format!("{target}/{unit}");
        let hosts = self.hosts.first().cloned().into_iter().collect();
        let mut network = NetworkSource::new(NetworkProtocol::Iscsi, Some(name), hosts);
        network.initiator.clone_from(&self.initiator);
        Ok(LocatedVolume {
            protocol: Protocol::Network(Box::new(network)),
            authentication: self.authentication.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(volume: &str, mode: Option<VolumeMode>) -> VolumeSource {
        VolumeSource {
            pool: "p".to_owned(),
            volume: volume.to_owned(),
            mode,
        }
    }

    fn path(pool: &StoragePool, volume: Option<&StorageVolume>) -> Option<String> {
        let located = pool.locate(&source("a", None), volume).ok()?;
        let path = located.protocol.on_host()?.path();
        Some(path.to_owned())
    }

    #[test]
    fn a_volume_is_where_its_pool_puts_it_unless_it_says_itself() {
        let pool = |pool_type, target: &str| StoragePool {
            target_path: Some(target.to_owned()),
            ..StoragePool::new(pool_type)
        };
        let images = pool(PoolType::Dir, "/srv/images/");
        assert_eq!(path(&images, None).as_deref(), Some("/srv/images/a"));
        let group = StoragePool {
            source_name: Some("vg0".to_owned()),
            ..StoragePool::new(PoolType::Logical)
        };
        let located = group
            .locate(&source("a", None), None)
            .expect("it is in the group");
        assert_eq!(located.protocol.source_type(), Some("block"));
        assert_eq!(path(&group, None).as_deref(), Some("/dev/vg0/a"));
        let volume = StorageVolume {
            path: Some("/else/where".to_owned()),
            ..StorageVolume::default()
        };
        assert_eq!(path(&images, Some(&volume)).as_deref(), Some("/else/where"));
        let by_path = pool(PoolType::Iscsi, "/dev/disk/by-path");
        assert_eq!(path(&by_path, None), None);
        assert!(path(&by_path, Some(&volume)).is_some());
    }

    #[test]
    fn a_unit_of_a_target_is_opened_by_qemu_where_that_is_asked_for() {
        let pool = StoragePool {
            devices: vec!["iqn.2026-01.com.example:a".to_owned()],
            hosts: vec![NetworkHost::tcp("h", None)],
            ..StoragePool::new(PoolType::Iscsi)
        };
        let direct = |name| pool.locate(&source(name, Some(VolumeMode::Direct)), None);
        let located = direct("unit:0:0:3").expect("it is a unit");
        let Protocol::Network(network) = located.protocol else {
            panic!("it is on a server")
        };
        assert_eq!(network.name.as_deref(), Some("iqn.2026-01.com.example:a/3"));
        assert_eq!(direct("lun3"), Err(VolumeNotLocated::NameRefused));
    }

    #[test]
    fn what_libvirt_refuses_is_not_located() {
        let ceph = StoragePool::new(PoolType::Rbd);
        assert_eq!(
            ceph.locate(&source("a", None), None),
            Err(VolumeNotLocated::PoolTypeRefused(PoolType::Rbd))
        );
        let images = StoragePool::new(PoolType::Dir);
        assert_eq!(
            images.locate(&source("a", Some(VolumeMode::Host)), None),
            Err(VolumeNotLocated::ModeRefused(PoolType::Dir))
        );
    }
}
