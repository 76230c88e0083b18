//! The storage of a disk and its creation.

use std::collections::BTreeSet;

use vmdisk_model::{
    BackendSource, Backing, Bytes, Creation, DiskField, FieldPath, Format, Image, ImageField,
    LogicalVolumeName, Preallocation, Protocol, Qcow2Creation, Qcow2Preallocation, Switch,
    ThinCreation, VhostUserSocket,
};

use super::after::virtual_size;
use super::choice::Chosen;
use super::planner::Planner;
use super::queues::{DEFAULT_TABLES, TABLE_ENTRY};
use crate::spec::{
    BackendSpec, BackingSpec, DeviceSpec, DirectorySpec, DiskSpec, LvmSpec, LvmThinSpec, Qcow2Spec,
    RawSpec, SpecPath, VhostUserBlkSpec, VhostVdpaSpec, size_text,
};
use crate::steps::{Storage, backing_image};

/// The place of an option of creation, which no field of a running disk holds.
const fn at_image(index: usize) -> FieldPath {
    FieldPath::Image(index, 0, ImageField::Image)
}

impl Planner<'_> {
    /// Decides the backend's source and how it is made.
    pub(crate) fn plan_storage(&mut self, index: usize, spec: &DiskSpec) {
        let source = match &spec.backend {
            BackendSpec::Raw(raw) => self.raw_file(index, raw).into(),
            BackendSpec::Qcow2(qcow2) => self.qcow2(index, qcow2).into(),
            BackendSpec::Lvm(lvm) => thick_volume(lvm).into(),
            BackendSpec::LvmThin(thin) => self.thin_volume(index, thin).into(),
            BackendSpec::Device(device) => image_on_device(device).into(),
            BackendSpec::VhostUserBlk(socket) => self.vhost_user(index, socket).into(),
            BackendSpec::Network(network) => self.network_image(index, network).into(),
            BackendSpec::Zvol(zvol) => zvol.to_image().into(),
            BackendSpec::Seed(seed) => {
                let mut image = Image::file(&seed.path, Format::Raw);
                image.creation = Some(Creation::Other { size: None });
                image.into()
            }
            BackendSpec::Nvme(nvme) => nvme.to_image().into(),
            BackendSpec::VhostVdpa(VhostVdpaSpec { path }) => {
                let path = path.clone();
                Image::new(Some(Format::Raw), Protocol::VhostVdpa { path }).into()
            }
            BackendSpec::Directory(DirectorySpec { path }) => {
                let path = path.clone();
                Image::new(Some(Format::Fat), Protocol::Directory { path }).into()
            }
            BackendSpec::Volume(volume) => {
                let format = self.unprobed_format(index, volume.format);
                volume.to_image(format).into()
            }
            BackendSpec::Empty(_) => BackendSource::Empty,
        };
        self.disk(index).backend.source = source;
        self.note_nocow(index);
    }

    fn raw_file(&mut self, index: usize, raw: &RawSpec) -> Image {
        let RawSpec {
            path,
            size,
            source,
            preallocation,
            nocow: _,
            encryption,
            owner: _, // options of the steps
            group: _,
            mode: _,
        } = raw;
        let mut image = Image::file(path, Format::Raw);
        image.encryption = encryption.as_ref().map(|it| Box::new(it.to_model()));
        let size = self.size_of_new(index, "raw", *size, source.as_ref());
        if size.is_none() {
            return image;
        }
        let preallocation = self.decide(at_image(index), "preallocation", *preallocation, |_| {
            let reason = "the file takes space as the guest writes";
            Some(Chosen::by_default(Preallocation::Off, reason))
        });
        image.creation = Some(Creation::RawFile {
            size,
            preallocation,
        });
        image
    }

    /// The size of a new image: as asked for, or that of its source.
    fn size_of_new(
        &mut self,
        index: usize,
        kind: &str,
        size: Option<Bytes>,
        source: Option<&BackingSpec>,
    ) -> Option<Bytes> {
        let Some(source) = source else {
            return size;
        };
        let at = SpecPath::disk(index).key(kind);
        if self.refuse_other_format(&at.key("source"), source) {
            return size;
        }
        let path = &source.path;
        let known = self.refuse_smaller(&at, size, source);
        if (size, known) == (None, None) {
            let message = format!("the facts do not have the size of {path}");
            self.refuse(at.key("source"), message).help =
                Some("write `size`, at least the virtual size of the source".to_owned());
        }
        let of_source = |_: &mut Self| {
            let size = Bytes(known?.next_multiple_of(512));
            Some(Chosen::by_fact(size, format!("the size of {path}")))
        };
        match size {
            Some(size) => Some(size),
            None => self.decide(at_image(index), "size", None, of_source),
        }
    }

    /// Refuses a source whose header shows another format: its bytes would be copied as those of the disk, or not at all.
    fn refuse_other_format(&mut self, at: &SpecPath, source: &BackingSpec) -> bool {
        let BackingSpec { path, format } = source;
        let header = self
            .host
            .index
            .file(path)
            .and_then(|file| file.image.value());
        let Some(header) = header.and_then(|header| header.format.value()) else {
            return false;
        };
        let is_other = format.conflict_with(header).is_some();
        if is_other {
            let message = format!("{path} is written as {format}, but the image is {header}");
            let right = Format::of_qemu_driver(header);
            let help = right.map_or_else(
                || format!("use the path of an image in the format {format}"),
                |right| {
                    format!(
                        "write `source.format: {right}`, or the path of an image in the format {format}"
                    )
                },
            );
            self.refuse(at.key("format"), message).help = Some(help);
        }
        is_other
    }

    /// Refuses a size less than that of the image below or of the source, which is returned if it is known.
    fn refuse_smaller(
        &mut self,
        at: &SpecPath,
        size: Option<Bytes>,
        other: &BackingSpec,
    ) -> Option<u64> {
        let BackingSpec { path, format } = other;
        let known = virtual_size(self.host.index, path, *format);
        if let (Some(size), Some(known)) = (size, known.map(Bytes))
            && size < known
        {
            let message =
                format!("{size} is less than the {known} of {path}, whose end would be lost");
            self.refuse(at.key("size"), message).help =
                Some(format!("write `size: {}` or more", size_text(known)));
        }
        known
    }

    fn qcow2(&mut self, index: usize, qcow2: &Qcow2Spec) -> Image {
        let Qcow2Spec {
            path,
            size,
            source,
            preallocation,
            cluster_size,
            extended_l2,
            lazy_refcounts,
            backing,
            backing_chain,
            data_file,
            encryption,
            nocow: _,
            owner: _, // options of the steps
            group: _,
            mode: _,
        } = qcow2;
        let mut image = Image::file(path, Format::Qcow2);
        image.encryption = encryption.as_ref().map(|it| Box::new(it.to_model()));
        if let Some(data_file) = data_file {
            image.data_file = Some(Box::new(Image::file(data_file, Format::Raw)));
        }
        let size = self.size_of_new(index, "qcow2", *size, source.as_ref());
        if size.is_none() && backing.is_none() {
            if let Some(chain) = backing_chain {
                image.backing = below(chain);
            }
            return image;
        }
        if let Some(backing) = backing {
            self.refuse_smaller(&SpecPath::disk(index).key("qcow2"), size, backing);
        }
        let is_overlay = backing.is_some();
        let preallocation = self.decide(at_image(index), "preallocation", *preallocation, |_| {
            if is_overlay {
                return None;
            }
            let reason = "the image takes space as the guest writes";
            Some(Chosen::by_default(Qcow2Preallocation::Off, reason))
        });
        let cluster_size = self.decide(at_image(index), "cluster-size", *cluster_size, |_| {
            // The first write to a cluster of an overlay copies all of it; subclusters are smaller.
            let is_free = !is_overlay && *extended_l2 != Some(true);
            choose_cluster(size.filter(|_| is_free)?)
        });
        self.note_asked(at_image(index), "extended-l2", *extended_l2);
        self.note_asked(at_image(index), "lazy-refcounts", *lazy_refcounts);
        image.backing = match backing {
            Some(backing) => {
                let below = backing_image(&backing.path, backing.format);
                Backing::Image(Box::new(below))
            }
            // A new image has nothing below it, and saying so keeps a header from claiming otherwise.
            None => Backing::Terminated,
        };
        image.creation = Some(Creation::Qcow2(Qcow2Creation {
            size,
            preallocation,
            cluster_size,
            extended_l2: *extended_l2,
            lazy_refcounts: *lazy_refcounts,
            backing: backing
                .as_ref()
                .map(|backing| (backing.path.clone(), backing.format)),
        }));
        image
    }

    fn thin_volume(&mut self, index: usize, thin: &LvmThinSpec) -> Image {
        let LvmThinSpec {
            group: _,
            volume: _,
            size,
            pool,
            pool_size,
            chunk_size,
            zero,
        } = thin;
        let name = thin.name();
        let mut image = Image::host_device(name.device_path());
        let (Some(_), Some(pool)) = (size, pool) else {
            return image;
        };
        let mut chunk = *chunk_size;
        let mut is_zeroing = *zero;
        if let Some(pool_size) = pool_size {
            chunk = self.decide(at_image(index), "chunk-size", *chunk_size, |_| {
                Some(choose_chunk(*pool_size))
            });
            is_zeroing = self.decide(at_image(index), "zero", *zero, |_| {
                let reason = "without zeroing, a new volume exposes the data of a deleted one";
                Some(Chosen::by_default(true, reason).instead_of("thin-zeroing-off"))
            });
        }
        image.creation = Some(Creation::ThinVolume(ThinCreation {
            name,
            size: *size,
            pool: pool.clone(),
            pool_size: *pool_size,
            chunk_size: chunk,
            zero: is_zeroing,
        }));
        image
    }

    fn vhost_user(&mut self, index: usize, spec: &VhostUserBlkSpec) -> VhostUserSocket {
        let VhostUserBlkSpec {
            socket,
            reconnect,
            reconnect_timeout,
            serves,
        } = spec;
        let at = FieldPath::Disk(index, DiskField::Reconnect);
        let reconnect = self.decide(at, "reconnect", *reconnect, |_| {
            let reason = "without it, the disk is lost when the daemon restarts";
            Some(Chosen::by_default(true, reason))
        });
        let is_on = reconnect == Some(true);
        let timeout = self.decide(at, "reconnect-timeout", *reconnect_timeout, |_| {
            is_on.then(|| Chosen::by_default(10, "libvirt requires a number of seconds"))
        });
        let mut socket = VhostUserSocket::new(socket);
        socket.reconnect = reconnect.map(|on| if on { Switch::On } else { Switch::Off });
        socket.reconnect_timeout = timeout;
        let at = FieldPath::Disk(index, DiskField::ConfigWce);
        let config_wce = self.decide(at, "config-wce", None::<Switch>, |_| {
            let reason =
                "with it, the guest assumes that the daemon has no write cache, and never flushes; libvirt cannot set it, and needs `writethrough=on` at the daemon";
            Some(Chosen::by_default(Switch::Off, reason).instead_of("vhost-user-flushes-lost"))
        });
        socket.config_wce = config_wce;
        socket.served = serves
            .as_ref()
            .map(|BackingSpec { path, format }| Box::new(served_image(path, *format)));
        socket
    }

    /// Notes what was decided about copy-on-write of a new file.
    fn note_nocow(&mut self, index: usize) {
        if let Some(nocow) = self.nocow[index].take() {
            let at = FieldPath::Image(index, 0, ImageField::Path);
            self.nocow_files[index] = nocow.is_set;
            self.decide(at, "nocow", None, |_| Some(nocow.chosen));
        }
    }

    /// Writes down the steps that make the storage of all disks.
    pub(crate) fn plan_steps(&mut self) {
        let spec = self.spec;
        let new_pools: BTreeSet<LogicalVolumeName> = spec
            .disks
            .iter()
            .filter_map(|disk| match &disk.backend {
                BackendSpec::LvmThin(thin) if thin.pool_size.is_some() => {
                    thin.pool.as_ref().map(|pool| LogicalVolumeName {
                        group: thin.group.clone(),
                        volume: pool.clone(),
                    })
                }
                _ => None,
            })
            .collect();
        for index in 0..spec.disks.len() {
            let BackendSource::Image(image) = &self.domain.disks[index].backend.source else {
                continue;
            };
            let storage = Storage {
                disk: index,
                image,
                spec: &spec.disks[index].backend,
                is_nocow_set: self.nocow_files[index],
                new_pools: &new_pools,
            };
            let groundwork = storage.groundwork();
            let steps = storage.steps();
            self.add_groundwork(groundwork);
            self.add_steps(steps);
        }
    }
}

fn image_on_device(device: &DeviceSpec) -> Image {
    let DeviceSpec {
        path,
        access: _, // the frontend's
        format,
        backing_chain,
    } = device;
    let mut image = Image::host_device(path);
    image.format = format.or(Some(Format::Raw));
    if let Some(chain) = backing_chain {
        image.backing = below(chain);
    }
    image
}

/// The images below an image, of which the last one stands alone.
fn below(chain: &[BackingSpec]) -> Backing {
    let mut backing = Backing::Terminated;
    for BackingSpec { path, format } in chain.iter().rev() {
        let mut image = backing_image(path, *format);
        if format.has_backing() {
            image.backing = backing;
        }
        backing = Backing::Image(Box::new(image));
    }
    backing
}

fn thick_volume(lvm: &LvmSpec) -> Image {
    let name = lvm.name();
    let mut image = Image::host_device(name.device_path());
    image.creation = lvm.size.map(|size| Creation::LogicalVolume {
        name,
        size: Some(size),
    });
    image
}

/// Clusters with which QEMU keeps all tables of an image in memory; none where the usual ones do.
fn choose_cluster(size: Bytes) -> Option<Chosen<Bytes>> {
    /// The most that qcow2 has.
    const MAX: u64 = 2 * Bytes::MIB;
    let usual = 64 * Bytes::KIB;
    let tables = size.0.div_ceil(usual).saturating_mul(TABLE_ENTRY);
    if tables <= DEFAULT_TABLES {
        return None;
    }
    let cluster = size.0.div_ceil(DEFAULT_TABLES / TABLE_ENTRY);
    let reason = format!(
        "with 64 KiB its tables take {}, of which QEMU keeps 32 MiB in memory; larger clusters need fewer, and free \
         space in larger pieces",
        Bytes(tables)
    );
    Some(Chosen::by_fact(
        Bytes(cluster.next_power_of_two().min(MAX)),
        reason,
    ))
}

/// The smallest chunk whose metadata stays small: 64 bytes of it for each chunk.
fn choose_chunk(pool: Bytes) -> Chosen<Bytes> {
    const MAX_METADATA: u64 = Bytes::GIB;
    let mut chunk = 64 * Bytes::KIB;
    while pool.0 / chunk * 64 > MAX_METADATA && chunk < Bytes::MIB {
        chunk *= 2;
    }
    let reason =
        "zeroing and snapshots cost least with small chunks, and metadata stays within 1 GiB";
    Chosen::by_default(Bytes(chunk), reason).instead_of("thin-chunk-large-with-snapshots")
}

/// The image of a daemon: what lies in /dev is a device.
fn served_image(path: &str, format: Format) -> Image {
    let mut image = if path.starts_with("/dev/") {
        Image::host_device(path)
    } else {
        Image::file(path, format)
    };
    image.format = Some(format);
    image
}
