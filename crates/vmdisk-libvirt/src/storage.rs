//! `<pool>` and `<volume>`: the storage of volumes that disks refer to.

use vmdisk_model::{
    BackendSource, Domain, DomainField, FieldPath, Format, Image, ImageField, NetworkHost,
    PoolType, Protocol, StoragePool, StorageVolume, VolumeNotLocated, VolumeSource, VolumeType,
};
use vmdisk_rule::reading::MISSING_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::source::{authentication, encryption};
use crate::unmodeled::UnmodeledContent;
use crate::value::unsigned32;
use crate::vocabulary::{FieldOwner, POOL, STORAGE_VOLUME};
use crate::xml::Node;

const ROOT: FieldPath = FieldPath::Domain(DomainField::Domain);

/// The contents of a document about storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageItem {
    /// A pool.
    Pool(StoragePool),
    /// A volume.
    Volume(StorageVolume),
}

/// Known pools and volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The pools.
    pub pools: Vec<StoragePool>,
    /// The volumes; their documents do not name their pools.
    pub volumes: Vec<StorageVolume>,
}

/// A disk on a volume that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlocated {
    /// The field that names the volume or the pool.
    pub at: FieldPath,
    /// The reason; `None` if the pool is unknown.
    pub why: Option<VolumeNotLocated>,
}

impl Storage {
    /// Adds the pool or volume of a document.
    pub fn add(&mut self, item: StorageItem) {
        match item {
            StorageItem::Pool(pool) => self.pools.push(pool),
            StorageItem::Volume(volume) => self.volumes.push(volume),
        }
    }

    /// Replaces each volume by the storage that libvirt opens for it, and returns the volumes that were not found.
    ///
    /// ```
    /// use vmdisk_libvirt::{Storage, read};
    /// let pool = read("<pool type='dir'><name>images</name><target><path>/srv</path></target></pool>")?;
    /// let mut storage = Storage::default();
    /// storage.add(pool.storage.expect("it is a pool"));
    /// let mut document = read("<disk type='volume'><source pool='images' volume='a.qcow2'/>
    ///   <target dev='vda'/></disk>")?;
    /// assert_eq!(storage.locate(&mut document.domain), []);
    /// let image = document.domain.disks[0].backend.image().expect("it is one");
    /// assert_eq!(image.host_path(), Some("/srv/a.qcow2"));
    /// # Ok::<(), vmdisk_libvirt::ReadFailure>(())
    /// ```
    pub fn locate(&self, domain: &mut Domain) -> Vec<Unlocated> {
        let mut unlocated = Vec::new();
        for (nth, disk) in domain.disks.iter_mut().enumerate() {
            let BackendSource::Image(top) = &mut disk.backend.source else {
                continue;
            };
            let mut next = Some(&mut **top);
            let mut depth = 0;
            while let Some(image) = next {
                if let Err((field, why)) = self.locate_image(image) {
                    let at = FieldPath::Image(nth, depth, field);
                    unlocated.push(Unlocated { at, why });
                }
                depth += 1;
                next = match &mut image.backing {
                    vmdisk_model::Backing::Image(below) => Some(below),
                    vmdisk_model::Backing::Unspecified | vmdisk_model::Backing::Terminated => None,
                };
            }
        }
        unlocated
    }

    fn locate_image(
        &self,
        image: &mut Image,
    ) -> Result<(), (ImageField, Option<VolumeNotLocated>)> {
        let Protocol::Volume(source) = &image.protocol else {
            return Ok(());
        };
        let named = |pool: &&StoragePool| pool.name.as_ref() == Some(&source.pool);
        let pool = self
            .pools
            .iter()
            .find(named)
            .ok_or((ImageField::Pool, None))?;
        let volume = self.volume(pool, source);
        let located = pool.locate(source, volume).map_err(|why| {
            let field = match why {
                VolumeNotLocated::PoolTypeRefused(_) => ImageField::Pool,
                VolumeNotLocated::ModeRefused(_) => ImageField::VolumeMode,
                VolumeNotLocated::VolumeTypeRefused(_)
                | VolumeNotLocated::NameRefused
                | VolumeNotLocated::NotSaid => ImageField::Volume,
            };
            (field, Some(why))
        })?;
        // libvirt opens a volume without a format as raw, and a directory as a FAT file system.
        if image.format.is_none() && matches!(located.protocol, Protocol::Directory { .. }) {
            image.format = Some(Format::Fat);
        }
        image.protocol = located.protocol;
        if located.authentication.is_some() {
            image.authentication = located.authentication;
        }
        Ok(())
    }

    /// The volume of this name in the pool, if its path identifies it.
    fn volume(&self, pool: &StoragePool, source: &VolumeSource) -> Option<&StorageVolume> {
        let is_inside = |volume: &&StorageVolume| match (&volume.path, &pool.target_path) {
            (Some(path), Some(target)) => path.starts_with(target.as_str()),
            (Some(_), None) | (None, _) => true,
        };
        let mut named = self
            .volumes
            .iter()
            .filter(|volume| volume.name.as_ref() == Some(&source.volume));
        named.find(is_inside)
    }
}

/// Reads a `<pool>`; `None` if its type is not known.
pub(crate) fn read_pool<'d>(reader: &mut Reader<'_>, node: Node<'d>) -> Option<StorageItem> {
    let mut element = reader.open(node, &POOL, [None; 2], ROOT, FieldOwner::default());
    let pool_type = element.take("type", PoolType::from_word);
    if pool_type.is_none() && element.peek("type").is_none() {
        let message = "the pool has no type: `<pool type=…>` is missing".to_owned();
        reader.problem(&MISSING_VALUE, ROOT, element.tag, message);
    }
    let mut pool = StoragePool::new(pool_type.unwrap_or(PoolType::Dir));
    pool.name = text_of(reader, &mut element, "name");
    // Pools are never written back, and their credentials are read like those of a disk.
    let kept = &mut UnmodeledContent::default();
    if let Some(mut source) = reader.child(&mut element, "source") {
        pool.source_name = text_of(reader, &mut source, "name");
        for node in source.children("host") {
            let mut host = reader.open_child(&source, node, FieldOwner::default());
            pool.hosts.push(NetworkHost {
                name: host.take_text("name"),
                port: host.take("port", unsigned32),
                ..NetworkHost::default()
            });
            reader.close(host);
        }
        for node in source.children("device") {
            let mut device = reader.open_child(&source, node, FieldOwner::default());
            pool.devices.extend(device.take_text("path"));
            reader.close(device);
        }
        if let Some(mut directory) = reader.child(&mut source, "dir") {
            pool.directory = directory.take_text("path");
            reader.close(directory);
        }
        if let Some(mut initiator) = reader.child(&mut source, "initiator") {
            if let Some(mut iqn) = reader.child(&mut initiator, "iqn") {
                pool.initiator = iqn.take_text("name");
                reader.close(iqn);
            }
            reader.close(initiator);
        }
        pool.authentication = authentication::read(reader, &mut source, 0, kept);
        reader.close(source);
    }
    if let Some(mut target) = reader.child(&mut element, "target") {
        pool.target_path = text_of(reader, &mut target, "path");
        reader.close(target);
    }
    // libvirt derives the name of an unnamed pool from its source.
    pool.name = pool.name.or_else(|| pool.source_name.clone());
    reader.close(element);
    pool_type.map(|_| StorageItem::Pool(pool))
}

/// Reads a `<volume>`.
pub(crate) fn read_volume<'d>(reader: &mut Reader<'_>, node: Node<'d>) -> StorageItem {
    let mut element = reader.open(
        node,
        &STORAGE_VOLUME,
        [None; 2],
        ROOT,
        FieldOwner::default(),
    );
    let mut volume = StorageVolume {
        volume_type: element.take("type", VolumeType::from_word),
        name: text_of(reader, &mut element, "name"),
        ..StorageVolume::default()
    };
    if let Some(mut target) = reader.child(&mut element, "target") {
        volume.path = text_of(reader, &mut target, "path");
        volume.format = format_of(reader, &mut target);
        volume.encryption =
            encryption::read(reader, &mut target, 0, &mut UnmodeledContent::default());
        reader.close(target);
    }
    if let Some(mut backing) = reader.child(&mut element, "backingStore") {
        volume.backing_path = text_of(reader, &mut backing, "path");
        volume.backing_format = format_of(reader, &mut backing);
        reader.close(backing);
    }
    reader.close(element);
    StorageItem::Volume(volume)
}

/// The text of an inner element, if there is any.
fn text_of(reader: &mut Reader<'_>, parent: &mut Element<'_>, name: &str) -> Option<String> {
    let element = reader.child(parent, name)?;
    let text = element.content();
    reader.close(element);
    Some(text).filter(|text| !text.is_empty())
}

fn format_of(reader: &mut Reader<'_>, parent: &mut Element<'_>) -> Option<Format> {
    let mut element = reader.child(parent, "format")?;
    let format = element.take("type", Format::from_word);
    reader.close(element);
    format
}
