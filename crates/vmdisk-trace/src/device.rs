//! The block devices of the host.

use vmdisk_facts::blockdev::Queue;
use vmdisk_facts::stack::{FlushEffect, FlushLoss, StackLayer};
use vmdisk_facts::{BlockDevice, BlockKind, Fact, HostIndex, MAX_LEVELS};
use vmdisk_rule::{Context, Missing};

use crate::host::zvol;
use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{Tracer, collect, property, property_of, result, unknown};

impl<'a> Tracer<'a> {
    /// Adds the device that an image is on, and the devices below it.
    pub(crate) fn host_device(&mut self, above: usize, path: &'a str) {
        let what = || format!("the device {path}");
        let found = self.context.host(what).and_then(|host| {
            let device = Context::known(host.block_device(path), what)?
                .ok_or_else(|| Missing::new(what(), "it is not a block device"))?;
            Ok((host, device))
        });
        match found {
            Ok((host, device)) => {
                let number = self.steps.len();
                self.device(above, host, device, path);
                self.add_measured(number, host, path);
            }
            Err(missing) => {
                self.undescribed_storage(above, "device", &missing, &collect(&[], path));
            }
        }
    }

    /// Adds a device and those below it; `path` names it for commands.
    pub(crate) fn device(
        &mut self,
        above: usize,
        host: &'a HostIndex<'a>,
        device: &'a BlockDevice,
        path: &'a str,
    ) {
        if self.join(above, format!("device {}", device.id)).is_some() {
            return;
        }
        if self.levels == MAX_LEVELS {
            let why = format!("no more than {MAX_LEVELS} levels of devices are followed");
            let missing = Missing::new(format!("the devices from {} on", device.name()), why);
            self.undescribed_storage(above, "device", &missing, &[]);
            return;
        }
        self.levels += 1;
        self.followed_device(above, host, device, path);
        self.levels -= 1;
    }

    fn followed_device(
        &mut self,
        above: usize,
        host: &'a HostIndex<'a>,
        device: &'a BlockDevice,
        path: &'a str,
    ) {
        let below = below(host, device);
        let seen = Seen {
            device,
            path,
            below: below.len(),
        };
        let results = match (&device.kind, &device.zvol) {
            (BlockKind::Zvol, Fact::Known(properties)) => {
                zvol(properties.sync.clone(), &device.name(), path)
            }
            _ => [seen.reads(), seen.writes(), seen.flushes(), seen.discards()],
        };
        let layer = layer_of(device, below.len());
        let number = self.add(
            Some(above),
            layer,
            device.name(),
            seen.properties(),
            results,
        );
        if let Fact::Known(file) = &device.loop_file
            && let Fact::Known(backing) = &file.backing_file
        {
            self.host_file(number, backing);
            return;
        }
        for below in below {
            self.device(number, host, below, path);
        }
    }
}

/// The devices below; a thin pool includes its data and its metadata.
fn below<'a>(host: &'a HostIndex<'a>, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    let mut found = Vec::new();
    for below in host.below(device) {
        let is_part = matches!(
            below.kind,
            BlockKind::LvmThinData | BlockKind::LvmThinMetadata
        );
        let devices = match is_part {
            true => host.below(below),
            false => vec![below],
        };
        for device in devices {
            if !found
                .iter()
                .any(|known: &&BlockDevice| known.id == device.id)
            {
                found.push(device);
            }
        }
    }
    found
}

fn layer_of(device: &BlockDevice, below: usize) -> Layer {
    match &device.kind {
        BlockKind::Partition | BlockKind::MultipathPartition => Layer::Partition,
        BlockKind::Lvm
        | BlockKind::LvmThin
        | BlockKind::LvmSnapshot
        | BlockKind::LvmOrigin
        | BlockKind::LvmPart => Layer::LogicalVolume,
        BlockKind::LvmThinPool | BlockKind::LvmThinData | BlockKind::LvmThinMetadata => {
            Layer::ThinPool
        }
        BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => Layer::Crypt,
        BlockKind::Multipath => Layer::Multipath,
        BlockKind::DeviceMapper => Layer::DeviceMapper,
        BlockKind::Md => Layer::Raid,
        BlockKind::Loop => Layer::Loop,
        BlockKind::Bcache => Layer::Cache,
        BlockKind::Other(_) if below > 0 => Layer::DeviceMapper,
        _ => Layer::Drive,
    }
}

/// A device with what its results depend on.
struct Seen<'a> {
    device: &'a BlockDevice,
    path: &'a str,
    /// Number of devices below it.
    below: usize,
}

impl Seen<'_> {
    fn fact(&self, name: &str, value: impl std::fmt::Display) -> StatementBasis {
        StatementBasis::fact(format!("{} {name} = {value}", self.device.name()))
    }

    fn is_drive(&self) -> bool {
        self.below == 0 && self.device.kind != BlockKind::Loop
    }

    fn properties(&self) -> Vec<Property> {
        let Queue {
            logical,
            physical,
            scheduler,
            nr_requests,
            discard_granularity,
            write_cache,
            ..
        } = &self.device.queue;
        let command = collect(&[], self.path);
        let key = |name: &str| format!("{} queue.{name}", self.device.name());
        let bytes = |bytes: &u64| format!("{bytes} bytes");
        let mut properties = Vec::new();
        match (logical, physical) {
            (Fact::Known(logical), Fact::Known(physical)) => {
                let basis = self.fact(
                    "queue.logical, queue.physical",
                    format_args!("{logical}, {physical}"),
                );
                properties.push(property(
                    "sectors",
                    format!("{logical}/{physical} bytes"),
                    basis,
                ));
            }
            (logical, _) => {
                properties.extend(property_of(
                    "sectors",
                    logical.clone(),
                    &key("logical"),
                    bytes,
                    &command,
                ));
            }
        }
        properties.extend(property_of(
            "scheduler",
            scheduler.clone(),
            &key("scheduler"),
            String::clone,
            &command,
        ));
        // The queue of a device that passes requests on holds none.
        if self.is_drive() {
            properties.extend(property_of(
                "requests",
                nr_requests.clone(),
                &key("nr_requests"),
                u64::to_string,
                &command,
            ));
        }
        properties.extend(property_of(
            "write cache",
            write_cache.clone(),
            &key("write_cache"),
            String::clone,
            &command,
        ));
        let granularity = discard_granularity.clone();
        properties.extend(property_of(
            "discard granularity",
            granularity,
            &key("discard_granularity"),
            bytes,
            &command,
        ));
        properties.extend(self.kind_properties());
        properties
    }

    /// What only some kinds of devices have.
    fn kind_properties(&self) -> Vec<Property> {
        let mut properties = Vec::new();
        let name = self.device.name();
        if let Fact::Known(lvm) = &self.device.lvm {
            let command = collect(&["lvm"], self.path);
            let key = |field: &str| format!("{name} lvm.{field}");
            let bytes = |bytes: &u64| format!("{bytes} bytes");
            properties.extend(property_of(
                "chunk",
                lvm.chunk.clone(),
                &key("chunk"),
                bytes,
                &command,
            ));
            if self.device.kind == BlockKind::LvmThin {
                let full = lvm.data_percent.clone();
                properties.extend(property_of(
                    "pool in use",
                    full,
                    &key("data_percent"),
                    |it| it.to_string(),
                    &command,
                ));
                let when = lvm.when_full.clone();
                properties.extend(property_of(
                    "when full",
                    when,
                    &key("when_full"),
                    String::clone,
                    &command,
                ));
            }
        }
        if let Fact::Known(md) = &self.device.md {
            let command = collect(&[], self.path);
            let key = |field: &str| format!("{name} md.{field}");
            properties.extend(property_of(
                "level",
                md.level.clone(),
                &key("level"),
                String::clone,
                &command,
            ));
            properties.extend(property_of(
                "missing members",
                md.degraded.clone(),
                &key("degraded"),
                u32::to_string,
                &command,
            ));
        }
        if let Fact::Known(crypt) = &self.device.crypt {
            let command = collect(&["dm"], self.path);
            let key = format!("{name} crypt.cipher");
            properties.extend(property_of(
                "cipher",
                crypt.cipher.clone(),
                &key,
                String::clone,
                &command,
            ));
        }
        properties
    }

    fn reads(&self) -> (RequestOutcome, Statement) {
        let kind = self.fact("kind", &self.device.kind);
        match &self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                result(RequestOutcome::Passed, "read and decrypted", kind)
            }
            BlockKind::Bcache => result(
                RequestOutcome::Cached,
                "from the cache, or from the backing disk",
                kind,
            ),
            BlockKind::Md => result(
                RequestOutcome::Passed,
                "from one copy, or from the stripes",
                kind,
            ),
            BlockKind::Multipath => result(RequestOutcome::Passed, "on one of the paths", kind),
            BlockKind::Loop => result(RequestOutcome::Passed, "from the file", kind),
            _ if self.is_drive() => result(RequestOutcome::Honoured, "the drive answers", kind),
            _ => result(RequestOutcome::Passed, "to the device below", kind),
        }
    }

    fn writes(&self) -> (RequestOutcome, Statement) {
        let kind = self.fact("kind", &self.device.kind);
        match &self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                result(RequestOutcome::Passed, "encrypted", kind)
            }
            BlockKind::Md => self.array_writes(),
            BlockKind::LvmThin => self.thin_writes(),
            BlockKind::Bcache => self.cache_writes(),
            BlockKind::Multipath => result(RequestOutcome::Passed, "on one of the paths", kind),
            BlockKind::Loop => self.loop_writes(),
            BlockKind::Zram | BlockKind::Ram => {
                result(RequestOutcome::Cached, "stays in memory", kind)
            }
            _ if self.is_drive() => self.drive_writes(),
            _ => result(RequestOutcome::Passed, "to the device below", kind),
        }
    }

    fn array_writes(&self) -> (RequestOutcome, Statement) {
        let level = self.device.md.as_ref().and_then(|md| md.level.clone());
        match Context::known(level, || format!("the level of {}", self.device.name())) {
            Ok(Some(level)) => {
                let basis = self.fact("md.level", &level);
                match level.as_str() {
                    "raid1" | "raid10" => result(RequestOutcome::Copied, "to each copy", basis),
                    "raid4" | "raid5" | "raid6" => result(
                        RequestOutcome::Split,
                        "split at chunks; parity is written as well",
                        basis,
                    ),
                    _ => result(RequestOutcome::Split, "split at chunks", basis),
                }
            }
            Ok(None) => unknown(
                Missing::new("the level of the array", "absent"),
                collect(&[], self.path),
            ),
            Err(missing) => unknown(missing, collect(&[], self.path)),
        }
    }

    fn thin_writes(&self) -> (RequestOutcome, Statement) {
        let zero = self.device.lvm.as_ref().and_then(|lvm| lvm.zero.clone());
        match Context::known(zero, || {
            format!("whether the pool of {} zeroes chunks", self.device.name())
        }) {
            Ok(Some(false)) => result(
                RequestOutcome::Passed,
                "the first write to a chunk allocates it, with the deleted data that it holds",
                self.fact("lvm.zero", false),
            ),
            Ok(Some(true) | None) => result(
                RequestOutcome::Passed,
                "the first write to a chunk allocates it, zeroed",
                self.fact("lvm.zero", true),
            ),
            Err(missing) => unknown(missing, collect(&["lvm"], self.path)),
        }
    }

    fn cache_writes(&self) -> (RequestOutcome, Statement) {
        let mode = self
            .device
            .bcache
            .as_ref()
            .and_then(|bcache| bcache.mode.clone());
        match Context::known(mode, || format!("the mode of {}", self.device.name())) {
            Ok(Some(mode)) => {
                let basis = self.fact("bcache.mode", &mode);
                match mode.as_str() {
                    "writeback" => result(
                        RequestOutcome::Cached,
                        "completes on the cache device",
                        basis,
                    ),
                    _ => result(RequestOutcome::Copied, "to the backing disk", basis),
                }
            }
            Ok(None) => result(
                RequestOutcome::Passed,
                "to the backing disk",
                self.fact("kind", "bcache"),
            ),
            Err(missing) => unknown(missing, collect(&[], self.path)),
        }
    }

    fn loop_writes(&self) -> (RequestOutcome, Statement) {
        let direct = self
            .device
            .loop_file
            .as_ref()
            .and_then(|file| file.dio.clone());
        match Context::known(direct, || {
            format!("whether {} uses direct I/O", self.device.name())
        }) {
            Ok(Some(true)) => result(
                RequestOutcome::Passed,
                "directly to the file",
                self.fact("loop.dio", true),
            ),
            Ok(Some(false) | None) => result(
                RequestOutcome::Cached,
                "completes in the host's page cache of the file",
                self.fact("loop.dio", false),
            ),
            Err(missing) => unknown(missing, collect(&[], self.path)),
        }
    }

    /// Whether the device has a cache that loses its contents with the power.
    fn write_cache(&self) -> Result<Option<String>, Missing> {
        let what = || format!("the write cache of {}", self.device.name());
        Context::known(self.device.queue.write_cache.clone(), what)
    }

    fn drive_writes(&self) -> (RequestOutcome, Statement) {
        match self.write_cache() {
            Ok(Some(mode)) if mode == "write back" => result(
                RequestOutcome::Cached,
                "completes in the drive's cache",
                self.fact("queue.write_cache", mode),
            ),
            Ok(Some(mode)) => result(
                RequestOutcome::Honoured,
                "on the medium when it completes",
                self.fact("queue.write_cache", mode),
            ),
            Ok(None) => unknown(
                Missing::new("the drive's write cache", "absent"),
                Vec::new(),
            ),
            Err(missing) => unknown(missing, collect(&[], self.path)),
        }
    }

    fn flushes(&self) -> (RequestOutcome, Statement) {
        let effect = StackLayer::Device(self.device).flush();
        if effect == FlushEffect::Dropped(FlushLoss::DeletedFile) {
            let text = "its file is deleted, and gone when the device is detached";
            return result(
                RequestOutcome::Dropped,
                text,
                self.fact("loop.deleted", true),
            );
        }
        if let FlushEffect::Dropped(_) = effect {
            let kind = self.fact("kind", &self.device.kind);
            return result(RequestOutcome::Dropped, "nothing survives a reboot", kind);
        }
        let mode = match self.write_cache() {
            Ok(Some(mode)) => mode,
            Ok(None) => return unknown(Missing::new("the write cache", "absent"), Vec::new()),
            Err(missing) => return unknown(missing, collect(&[], self.path)),
        };
        let basis = self.fact("queue.write_cache", &mode);
        if effect == FlushEffect::Durable {
            return result(
                RequestOutcome::Honoured,
                "the kernel sends no flush, because the device reports no volatile cache",
                basis,
            );
        }
        match &self.device.kind {
            BlockKind::Loop => result(RequestOutcome::Passed, "fsync of the file", basis),
            _ if self.is_drive() => result(
                RequestOutcome::Honoured,
                "the drive empties its cache",
                basis,
            ),
            BlockKind::Multipath => result(RequestOutcome::Passed, "on one of the paths", basis),
            _ if self.below > 1 => result(RequestOutcome::Copied, "to each device below", basis),
            _ => result(RequestOutcome::Passed, "to the device below", basis),
        }
    }

    fn discards(&self) -> (RequestOutcome, Statement) {
        let what = || format!("whether {} accepts discards", self.device.name());
        let max = Context::known(self.device.queue.discard_max.clone(), what);
        let max = match max {
            Ok(max) => max.unwrap_or(0),
            Err(missing) => return unknown(missing, collect(&[], self.path)),
        };
        let basis = self.fact("queue.discard_max", max);
        match (&self.device.kind, max) {
            // The pool takes the discards of its volumes whether the device below accepts any or not.
            (BlockKind::LvmThinPool | BlockKind::LvmThinData, 0) => result(
                RequestOutcome::Freed,
                "chunks are freed in the pool; the device below is not informed",
                basis,
            ),
            (_, 0) => result(
                RequestOutcome::Dropped,
                self.why_none(),
                self.none_basis(basis),
            ),
            (BlockKind::LvmThin, _) => self.thin_discards(basis),
            (BlockKind::LvmThinPool | BlockKind::LvmThinData, _) => result(
                RequestOutcome::Passed,
                "chunks are freed in the pool, and discarded below",
                basis,
            ),
            (BlockKind::Loop, _) => result(
                RequestOutcome::Passed,
                "punches a hole into the file",
                basis,
            ),
            (BlockKind::Bcache, _) => result(RequestOutcome::Passed, "to the backing disk", basis),
            (BlockKind::Multipath, _) => {
                result(RequestOutcome::Passed, "on one of the paths", basis)
            }
            _ if self.is_drive() => result(
                RequestOutcome::Honoured,
                format!("the drive takes at most {max} bytes at once"),
                basis,
            ),
            _ if self.below > 1 => result(RequestOutcome::Copied, "to each device below", basis),
            _ => result(RequestOutcome::Passed, "to the device below", basis),
        }
    }

    /// The reason why a device accepts no discards.
    const fn why_none(&self) -> &'static str {
        match self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                "opened without allow_discards; QEMU ignores the error"
            }
            BlockKind::Md => "the array accepts no discards; QEMU ignores the error",
            _ => "the device accepts no discards; QEMU ignores the error",
        }
    }

    /// The fact that explains it best.
    fn none_basis(&self, basis: StatementBasis) -> StatementBasis {
        match &self.device.crypt {
            Fact::Known(crypt) if crypt.allow_discards.is_false() => {
                self.fact("crypt.allow_discards", false)
            }
            _ => basis,
        }
    }

    fn thin_discards(&self, basis: StatementBasis) -> (RequestOutcome, Statement) {
        let treatment = self
            .device
            .lvm
            .as_ref()
            .and_then(|lvm| lvm.discards.clone());
        match treatment.as_str() {
            Fact::Known("ignore") => {
                let basis = self.fact("lvm.discards", "ignore");
                result(RequestOutcome::Dropped, "the pool ignores discards", basis)
            }
            _ => {
                let granularity = self.device.queue.discard_granularity.clone();
                let text = match granularity.known() {
                    Some(bytes) => {
                        format!(
                            "whole chunks of {bytes} bytes are passed to the pool; the rest is ignored"
                        )
                    }
                    None => "whole chunks are passed to the pool; the rest is ignored".to_owned(),
                };
                result(RequestOutcome::Split, text, basis)
            }
        }
    }
}
