//! The layers of a host's storage under a path, and what becomes of flushes, discards and small requests there: the one
//! answer for traces and rules.

use std::collections::HashSet;

use crate::blockdev::{BlockDevice, BlockKind};
use crate::fact::{Fact, Reason};
use crate::filesystem::{Filesystem, FsKind};
use crate::index::{HostIndex, MAX_LEVELS, ids_below};
use crate::mount::Mount;

/// One layer of the storage under a path.
#[derive(Clone, Copy, Debug)]
pub enum StackLayer<'a> {
    /// A file system, with its mount and the file on it.
    FileSystem {
        /// The file system.
        filesystem: &'a Filesystem,
        /// Its mount, if the facts have it.
        mount: Option<&'a Mount>,
        /// The file.
        path: &'a str,
    },
    /// A block device.
    Device(&'a BlockDevice),
}

/// What becomes of a flush at a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushEffect {
    /// It continues to the layers below.
    Passed,
    /// The data is durable here.
    Durable,
    /// It is ignored, and reported as done.
    Dropped(FlushLoss),
    /// The facts do not decide it.
    Unknown(UnknownFlush),
}

/// Why a layer drops flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushLoss {
    /// It is memory: nothing survives a restart.
    Memory,
    /// The file of the loop device is deleted: it is gone when the device is detached.
    DeletedFile,
    /// The mount does not tell the drive to empty its cache (`nobarrier`).
    NoBarrier,
    /// The overlay is mounted with `volatile`.
    VolatileOverlay,
    /// The dataset has `sync=disabled`.
    ZfsSync,
}

/// Why it is unknown what becomes of a flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownFlush {
    /// A server, a hypervisor or a program decides.
    Elsewhere,
    /// A fact is missing, which can show that flushes are dropped for this reason; `None`: for any.
    Missing(Option<FlushLoss>, Fact<()>),
}

/// What becomes of a discard at a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscardEffect {
    /// It continues to the layers below.
    Passed,
    /// Space is freed here.
    Freed,
    /// It is ignored, and reported as done.
    Dropped(DiscardLoss),
    /// A server, a hypervisor or a program decides.
    Elsewhere,
    /// It is not known whether the file system punches holes.
    NotKnown,
    /// A fact is missing.
    Missing(Fact<()>),
}

/// Why a layer drops discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardLoss {
    /// The file system punches no holes into files.
    NoHoles,
    /// The device accepts none.
    Device,
    /// The encrypted device was opened without `allow_discards`.
    Crypt,
    /// The thin pool ignores them.
    Pool,
}

/// A layer where the flush of a stack is lost, or where it is unknown.
#[derive(Clone, Debug)]
pub struct LostFlush<'a> {
    /// The layer.
    pub layer: StackLayer<'a>,
    /// The number of layers above it.
    pub depth: usize,
    /// The effect: dropped or unknown.
    pub effect: FlushEffect,
}

impl<'a> StackLayer<'a> {
    /// A name for messages.
    pub fn name(&self) -> String {
        match self {
            StackLayer::FileSystem {
                filesystem, mount, ..
            } => match mount {
                Some(mount) => format!("{} on {}", filesystem.kind, mount.point),
                None => filesystem.kind.to_string(),
            },
            StackLayer::Device(device) => device.name().into_owned(),
        }
    }

    /// What becomes of a flush here.
    pub fn flush(&self) -> FlushEffect {
        match self {
            StackLayer::FileSystem {
                filesystem, mount, ..
            } => of_filesystem(filesystem, *mount),
            StackLayer::Device(device) => of_device(device),
        }
    }

    /// What becomes of a discard here.
    pub fn discard(&self) -> DiscardEffect {
        match self {
            StackLayer::FileSystem { filesystem, .. } => match &filesystem.kind {
                kind if kind.is_elsewhere() => DiscardEffect::Elsewhere,
                FsKind::Overlay => DiscardEffect::Passed,
                kind => match kind.abilities().punches_holes {
                    Some(true) => DiscardEffect::Freed,
                    Some(false) => DiscardEffect::Dropped(DiscardLoss::NoHoles),
                    None => DiscardEffect::NotKnown,
                },
            },
            StackLayer::Device(device) => discard_on(device),
        }
    }

    /// That this layer under a path drops the discards there, in words.
    pub fn drops_discards(&self, path: &str, loss: DiscardLoss) -> String {
        let what = match loss {
            DiscardLoss::NoHoles => "punches no holes",
            DiscardLoss::Device => "accepts no discards",
            DiscardLoss::Crypt => "was opened without allow_discards",
            DiscardLoss::Pool => "has a thin pool that ignores discards",
        };
        match self.name() {
            name if name == path => format!("{path} {what}"),
            name => format!("{path} is on {name}, which {what}"),
        }
    }

    fn id(&self) -> (bool, &'a str) {
        match self {
            StackLayer::FileSystem { filesystem, .. } => (true, &filesystem.id),
            StackLayer::Device(device) => (false, &device.id),
        }
    }
}

fn of_filesystem(filesystem: &Filesystem, mount: Option<&Mount>) -> FlushEffect {
    match &filesystem.kind {
        kind if kind.is_volatile() => FlushEffect::Dropped(FlushLoss::Memory),
        FsKind::Zfs => of_zfs(&filesystem.zfs.as_ref().and_then(|zfs| zfs.sync.clone())),
        FsKind::Nfs | FsKind::Nfs4 | FsKind::Cifs | FsKind::Ceph => FlushEffect::Passed,
        // A program or the host above decides.
        kind if kind.is_elsewhere() => FlushEffect::Unknown(UnknownFlush::Elsewhere),
        FsKind::Overlay if mount.is_some_and(|mount| mount.drops_fsync()) => {
            FlushEffect::Dropped(FlushLoss::VolatileOverlay)
        }
        // Its other options are those of the upper directory's file system.
        FsKind::Overlay => FlushEffect::Passed,
        _ => {
            let drops = mount.map_or(Fact::NotCollected, Mount::drops_flushes);
            decided(drops, FlushLoss::NoBarrier)
        }
    }
}

/// What becomes of a flush on ZFS with this `sync` property.
pub fn of_zfs(sync: &Fact<String>) -> FlushEffect {
    let drops = match sync {
        // Each dataset has the property.
        Fact::Absent => Fact::NotCollected,
        sync => sync.as_ref().map(|sync| sync == "disabled"),
    };
    decided(drops, FlushLoss::ZfsSync)
}

fn decided(drops: Fact<bool>, loss: FlushLoss) -> FlushEffect {
    match drops {
        Fact::Known(true) => FlushEffect::Dropped(loss),
        Fact::Known(false) | Fact::Absent => FlushEffect::Passed,
        missing @ (Fact::Unknown(_) | Fact::NotCollected) => {
            FlushEffect::Unknown(UnknownFlush::Missing(Some(loss), missing.map(|_| ())))
        }
    }
}

fn of_device(device: &BlockDevice) -> FlushEffect {
    if matches!(device.kind, BlockKind::Zram | BlockKind::Ram) {
        return FlushEffect::Dropped(FlushLoss::Memory);
    }
    if let (BlockKind::Zvol, Fact::Known(zvol)) = (&device.kind, &device.zvol) {
        return of_zfs(&zvol.sync);
    }
    if device
        .loop_file
        .value()
        .is_some_and(|file| file.deleted.is_true())
    {
        return FlushEffect::Dropped(FlushLoss::DeletedFile);
    }
    match device.queue.write_cache.as_str() {
        // The kernel sends no flush to a device without a volatile cache.
        Fact::Known(mode) if mode != "write back" => FlushEffect::Durable,
        Fact::Known(_) => FlushEffect::Passed,
        _ => FlushEffect::Unknown(UnknownFlush::Elsewhere),
    }
}

fn discard_on(device: &BlockDevice) -> DiscardEffect {
    let max = match &device.queue.discard_max {
        _ if device.kind == BlockKind::Zvol && device.zvol.is_known() => {
            return DiscardEffect::Freed;
        }
        Fact::Known(max) => *max,
        Fact::Absent => 0,
        missing => return DiscardEffect::Missing(missing.as_ref().map(|_| ())),
    };
    let crypt = device.crypt.value();
    let lvm = device.lvm.value();
    match device.kind {
        // The pool takes the discards of its volumes whether the device below accepts any or not.
        BlockKind::LvmThinPool | BlockKind::LvmThinData => DiscardEffect::Freed,
        _ if max == 0 && crypt.is_some_and(|crypt| crypt.allow_discards.is_false()) => {
            DiscardEffect::Dropped(DiscardLoss::Crypt)
        }
        _ if max == 0 => DiscardEffect::Dropped(DiscardLoss::Device),
        BlockKind::LvmThin if lvm.is_some_and(|lvm| lvm.discards.as_str().is(&"ignore")) => {
            DiscardEffect::Dropped(DiscardLoss::Pool)
        }
        // Its pool frees the chunks, also one that the facts do not show.
        BlockKind::LvmThin => DiscardEffect::Freed,
        _ => DiscardEffect::Passed,
    }
}

impl<'a> HostIndex<'a> {
    /// The layer under a path where its discards are dropped, before any frees space; `None` if there is none. Of an
    /// encrypted device that blocks them, the devices above, which accept none either, are left out.
    ///
    /// # Errors
    /// Returns the missing fact if the facts do not describe a layer.
    pub fn lost_discard(
        &self,
        path: &'a str,
        is_device: bool,
    ) -> Result<Option<(StackLayer<'a>, DiscardLoss)>, Fact<()>> {
        self.lost_discard_of(self.top_layer(path, is_device)?)
    }

    /// The same for a layer and those under it.
    ///
    /// # Errors
    /// Returns the missing fact if the facts do not describe a layer.
    pub fn lost_discard_of(
        &self,
        top: StackLayer<'a>,
    ) -> Result<Option<(StackLayer<'a>, DiscardLoss)>, Fact<()>> {
        let mut level = vec![top];
        let mut seen = HashSet::from([top.id()]);
        for _ in 0..MAX_LEVELS {
            let mut below = Vec::new();
            for layer in level {
                match (layer.discard(), layer) {
                    (DiscardEffect::Dropped(DiscardLoss::Device), StackLayer::Device(device)) => {
                        let crypt = self.blocked_below(device);
                        let found =
                            crypt.map(|crypt| (StackLayer::Device(crypt), DiscardLoss::Crypt));
                        return Ok(found.or(Some((layer, DiscardLoss::Device))));
                    }
                    (DiscardEffect::Dropped(loss), _) => return Ok(Some((layer, loss))),
                    (DiscardEffect::Missing(missing), _) => return Err(missing),
                    (DiscardEffect::NotKnown, _) => {
                        let what = format!("whether {} punches holes is not known", layer.name());
                        return Err(Fact::unknown(Reason::Undecided, what));
                    }
                    (DiscardEffect::Freed | DiscardEffect::Elsewhere, _) => {}
                    (DiscardEffect::Passed, _) => match self.layers_under(&layer) {
                        Fact::Known(layers) => {
                            below.extend(layers.into_iter().filter(|it| seen.insert(it.id())));
                        }
                        Fact::Absent => {}
                        missing => return Err(missing.map(|_| ())),
                    },
                }
            }
            level = below;
        }
        Ok(None)
    }

    /// The nearest encrypted device below that keeps a device from accepting discards.
    fn blocked_below(&self, device: &'a BlockDevice) -> Option<&'a BlockDevice> {
        let blocked = DiscardEffect::Dropped(DiscardLoss::Crypt);
        let mut below = self.walk_down(device).into_iter();
        below.find(|below| discard_on(below) == blocked)
    }

    /// The largest logical sector of the devices that see the requests of a path unchanged; absent if a file system
    /// splits them into blocks.
    pub fn sector_under(&self, path: &'a str) -> Fact<u64> {
        if let Fact::Known(device) = self.block_device(path) {
            return device.queue.logical.clone();
        }
        let filesystem = self.filesystem_of(path);
        let filesystem = match filesystem.and_then(|it| self.written_filesystem(it)) {
            Fact::Known(filesystem) => filesystem,
            missing => return missing.map(|_| 0),
        };
        if !filesystem.kind.passes_requests_on() {
            return Fact::Absent;
        }
        if let missing @ (Fact::Unknown(_) | Fact::NotCollected) = filesystem.devices.as_ref() {
            return missing.map(|_| 0);
        }
        let mut largest = 0;
        for device in self.own_devices(filesystem) {
            match &device.queue.logical {
                Fact::Known(logical) => largest = largest.max(*logical),
                Fact::Absent => {}
                missing => return missing.clone(),
            }
        }
        Fact::Known(largest)
    }

    /// The file system of a file as a layer.
    pub fn file_layer(&self, path: &'a str) -> Fact<StackLayer<'a>> {
        self.filesystem_of(path)
            .map(|filesystem| StackLayer::FileSystem {
                filesystem,
                mount: self.mount_of(path).known(),
                path,
            })
    }

    /// The layers directly below: the upper directory of an overlay, the devices of a file system, the file of a loop
    /// device, or the devices below a device. Absent under a drive, memory, the other side of a network, and an overlay
    /// that nothing writes to.
    pub fn layers_under(&self, layer: &StackLayer<'a>) -> Fact<Vec<StackLayer<'a>>> {
        let devices = |listed: usize, devices: Vec<&'a BlockDevice>| match listed {
            0 => Fact::Absent,
            _ if devices.len() < listed => Fact::NotCollected,
            _ => Fact::Known(devices.into_iter().map(StackLayer::Device).collect()),
        };
        match *layer {
            StackLayer::FileSystem { filesystem, .. } => match &filesystem.kind {
                kind if kind.is_volatile() || kind.is_elsewhere() => Fact::Absent,
                FsKind::Overlay => {
                    let overlay = filesystem.overlay.as_ref();
                    let upper = overlay.and_then(|overlay| overlay.upper.as_str());
                    upper.and_then(|upper| self.file_under(upper, layer))
                }
                _ => {
                    let ids = filesystem.devices.as_ref();
                    ids.and_then(|ids| devices(ids.len(), self.own_devices(filesystem)))
                }
            },
            StackLayer::Device(device) => {
                if let Fact::Known(file) = &device.loop_file {
                    let file = file.backing_file.as_str();
                    return file.and_then(|file| self.file_under(file, layer));
                }
                devices(ids_below(device).len(), self.below(device))
            }
        }
    }

    /// The file system of a file that a layer is on.
    fn file_under(&self, path: &'a str, layer: &StackLayer<'a>) -> Fact<Vec<StackLayer<'a>>> {
        match self.file_layer(path) {
            // An overlay on itself is not a chain of file systems.
            Fact::Known(file) if file.id() != layer.id() => Fact::Known(vec![file]),
            Fact::Unknown(unknown) => Fact::Unknown(unknown),
            _ => Fact::NotCollected,
        }
    }

    /// The layer that a path is on. `is_device` is true for a path that is opened as a device.
    fn top_layer(&self, path: &'a str, is_device: bool) -> Result<StackLayer<'a>, Fact<()>> {
        let top = match self.block_device(path) {
            Fact::Known(device) => Fact::Known(StackLayer::Device(device)),
            Fact::Absent | Fact::NotCollected if !is_device => self.file_layer(path),
            missing => missing.map(StackLayer::Device),
        };
        match top {
            // What is there is a node of a device, and not a file.
            Fact::Known(StackLayer::FileSystem { filesystem, .. })
                if filesystem.kind == FsKind::Devtmpfs =>
            {
                Err(Fact::NotCollected)
            }
            Fact::Known(top) => Ok(top),
            Fact::Absent => Err(Fact::NotCollected),
            missing => Err(missing.map(|_| ())),
        }
    }

    /// The layers under a path where its flushes are lost or where that is unknown, the nearest first. `is_device` is true
    /// for a path that is opened as a device.
    ///
    /// # Errors
    /// Returns the missing fact if the facts do not describe the path.
    pub fn lost_flushes(
        &self,
        path: &'a str,
        is_device: bool,
    ) -> Result<Vec<LostFlush<'a>>, Fact<()>> {
        let top = self.top_layer(path, is_device)?;
        let (mut found, mut seen) = (Vec::new(), HashSet::from([top.id()]));
        let mut level = vec![top];
        for depth in 0..MAX_LEVELS {
            let mut below = Vec::new();
            for layer in std::mem::take(&mut level) {
                let lost = |effect| LostFlush {
                    layer,
                    depth,
                    effect,
                };
                let effect = layer.flush();
                let goes_on = matches!(effect, FlushEffect::Passed | FlushEffect::Unknown(_));
                if matches!(effect, FlushEffect::Dropped(_) | FlushEffect::Unknown(_)) {
                    found.push(lost(effect));
                }
                match self.layers_under(&layer) {
                    _ if !goes_on => {}
                    Fact::Known(layers) => {
                        below.extend(layers.into_iter().filter(|it| seen.insert(it.id())));
                    }
                    Fact::Absent => {}
                    missing => {
                        let missing = UnknownFlush::Missing(None, missing.map(|_| ()));
                        found.push(lost(FlushEffect::Unknown(missing)));
                    }
                }
            }
            level = below;
        }
        Ok(found)
    }
}
