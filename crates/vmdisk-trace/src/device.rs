//! The block devices of the host.

use vmdisk_facts::blockdev::Queue;
use vmdisk_facts::cgroup::IoMax;
use vmdisk_facts::stack::{FlushEffect, FlushLoss, StackLayer};
use vmdisk_facts::{BlockDevice, BlockKind, Fact, HostIndex, MAX_LEVELS};
use vmdisk_rule::{Context, Missing};

use crate::host::zvol;
use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{FactProperties, Tracer, bytes, collect, property, unknown};

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
            host,
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
    host: &'a HostIndex<'a>,
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
        let mut queue =
            FactProperties::new(format!("{} queue.", self.device.name()), &[], self.path);
        match (logical, physical) {
            (Fact::Known(logical), Fact::Known(physical)) => {
                let value = format_args!("{logical}, {physical}");
                let basis = self.fact("queue.logical, queue.physical", value);
                let sizes = format!("{logical}/{physical} bytes");
                queue.properties.push(property("sectors", sizes, basis));
            }
            (logical, _) => queue.add("sectors", logical, "logical", bytes),
        }
        queue.add("scheduler", scheduler, "scheduler", String::clone);
        // The queue of a device that passes requests on holds none.
        if self.is_drive() {
            queue.add("requests", nr_requests, "nr_requests", u64::to_string);
        }
        queue.add("write cache", write_cache, "write_cache", String::clone);
        let granularity = discard_granularity;
        queue.add(
            "discard granularity",
            granularity,
            "discard_granularity",
            bytes,
        );
        queue.properties.extend(self.kind_properties());
        queue.properties.extend(self.limits());
        queue.properties
    }

    /// What all guests under libvirt may do with the device together.
    fn limits(&self) -> Vec<Property> {
        let machine = self.host.facts().cgroups.machine.value();
        let all = machine.and_then(|machine| machine.io_max.value());
        let own = all.into_iter().flatten().filter(|limit| {
            let dev = limit.dev.value();
            dev.is_some() && dev == self.device.dev.value()
        });
        let mut limits = FactProperties::new("cgroups.machine.io_max ".to_owned(), &[], self.path);
        for IoMax {
            dev: _,
            read_bytes,
            write_bytes,
            read_requests,
            write_requests,
        } in own
        {
            let number = u64::to_string;
            limits.add("guests read, bytes/s", read_bytes, "read_bytes", number);
            limits.add("guests write, bytes/s", write_bytes, "write_bytes", number);
            limits.add("guests' reads/s", read_requests, "read_requests", number);
            limits.add("guests' writes/s", write_requests, "write_requests", number);
        }
        limits.properties
    }

    /// What only some kinds of devices have.
    fn kind_properties(&self) -> Vec<Property> {
        let mut properties = Vec::new();
        let name = self.device.name();
        if let Fact::Known(lvm) = &self.device.lvm {
            let mut facts = FactProperties::new(format!("{name} lvm."), &["lvm"], self.path);
            facts.add("chunk", &lvm.chunk, "chunk", bytes);
            if self.device.kind == BlockKind::LvmThin {
                facts.add(
                    "pool in use",
                    &lvm.data_percent,
                    "data_percent",
                    ToString::to_string,
                );
                facts.add("when full", &lvm.when_full, "when_full", String::clone);
            }
            properties.extend(facts.properties);
        }
        if let Fact::Known(scsi) = &self.device.scsi {
            let mut facts = FactProperties::new(format!("{name} scsi."), &[], self.path);
            facts.add(
                "cache of the disk",
                &scsi.cache_type,
                "cache_type",
                String::clone,
            );
            // What the queue is set to is told already.
            let is_same = scsi.cache_type == self.device.queue.write_cache;
            properties.extend(facts.properties.into_iter().filter(|_| !is_same));
        }
        if let Fact::Known(md) = &self.device.md {
            let mut facts = FactProperties::new(format!("{name} md."), &[], self.path);
            facts.add("level", &md.level, "level", String::clone);
            facts.add("missing members", &md.degraded, "degraded", u32::to_string);
            properties.extend(facts.properties);
        }
        if let Fact::Known(crypt) = &self.device.crypt {
            let mut facts = FactProperties::new(format!("{name} crypt."), &["dm"], self.path);
            facts.add("cipher", &crypt.cipher, "cipher", String::clone);
            properties.extend(facts.properties);
        }
        properties
    }

    fn reads(&self) -> (RequestOutcome, Statement) {
        let kind = self.fact("kind", &self.device.kind);
        match &self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                RequestOutcome::Passed.by("read and decrypted", kind)
            }
            BlockKind::Bcache => {
                RequestOutcome::Cached.by("from the cache, or from the backing disk", kind)
            }
            BlockKind::Md => RequestOutcome::Passed.by("from one copy, or from the stripes", kind),
            BlockKind::Multipath => RequestOutcome::Passed.by("on one of the paths", kind),
            BlockKind::Loop => RequestOutcome::Passed.by("from the file", kind),
            _ if self.is_drive() => RequestOutcome::Honoured.by("the drive answers", kind),
            _ => RequestOutcome::Passed.by("to the device below", kind),
        }
    }

    fn writes(&self) -> (RequestOutcome, Statement) {
        let kind = self.fact("kind", &self.device.kind);
        match &self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                RequestOutcome::Passed.by("encrypted", kind)
            }
            BlockKind::Md => self.array_writes(),
            BlockKind::LvmThin => self.thin_writes(),
            BlockKind::Bcache => self.cache_writes(),
            BlockKind::Multipath => RequestOutcome::Passed.by("on one of the paths", kind),
            BlockKind::Loop => self.loop_writes(),
            BlockKind::Zram | BlockKind::Ram => RequestOutcome::Cached.by("stays in memory", kind),
            _ if self.is_drive() => self.drive_writes(),
            _ => RequestOutcome::Passed.by("to the device below", kind),
        }
    }

    fn array_writes(&self) -> (RequestOutcome, Statement) {
        let level = self.device.md.as_ref().and_then(|md| md.level.clone());
        match Context::known(level, || format!("the level of {}", self.device.name())) {
            Ok(Some(level)) => {
                let basis = self.fact("md.level", &level);
                match level.as_str() {
                    "raid1" | "raid10" => RequestOutcome::Copied.by("to each copy", basis),
                    "raid4" | "raid5" | "raid6" => RequestOutcome::Split
                        .by("split at chunks; parity is written as well", basis),
                    _ => RequestOutcome::Split.by("split at chunks", basis),
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
            Ok(Some(false)) => RequestOutcome::Passed.by(
                "the first write to a chunk allocates it, with the deleted data that it holds",
                self.fact("lvm.zero", false),
            ),
            Ok(Some(true) | None) => RequestOutcome::Passed.by(
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
                    "writeback" => {
                        RequestOutcome::Cached.by("completes on the cache device", basis)
                    }
                    _ => RequestOutcome::Copied.by("to the backing disk", basis),
                }
            }
            Ok(None) => {
                RequestOutcome::Passed.by("to the backing disk", self.fact("kind", "bcache"))
            }
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
            Ok(Some(true)) => {
                RequestOutcome::Passed.by("directly to the file", self.fact("loop.dio", true))
            }
            Ok(Some(false) | None) => RequestOutcome::Cached.by(
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
            Ok(Some(mode)) if mode == "write back" => RequestOutcome::Cached.by(
                "completes in the drive's cache",
                self.fact("queue.write_cache", mode),
            ),
            Ok(Some(mode)) => RequestOutcome::Honoured.by(
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
            return RequestOutcome::Dropped.by(text, self.fact("loop.deleted", true));
        }
        if let FlushEffect::Dropped(_) = effect {
            let kind = self.fact("kind", &self.device.kind);
            return RequestOutcome::Dropped.by("nothing survives a reboot", kind);
        }
        let mode = match self.write_cache() {
            Ok(Some(mode)) => mode,
            Ok(None) => return unknown(Missing::new("the write cache", "absent"), Vec::new()),
            Err(missing) => return unknown(missing, collect(&[], self.path)),
        };
        let basis = self.fact("queue.write_cache", &mode);
        if effect == FlushEffect::Durable {
            return RequestOutcome::Honoured.by(
                "the kernel sends no flush, because the device reports no volatile cache",
                basis,
            );
        }
        match &self.device.kind {
            BlockKind::Loop => RequestOutcome::Passed.by("fsync of the file", basis),
            _ if self.is_drive() => {
                RequestOutcome::Honoured.by("the drive empties its cache", basis)
            }
            BlockKind::Multipath => RequestOutcome::Passed.by("on one of the paths", basis),
            _ if self.below > 1 => RequestOutcome::Copied.by("to each device below", basis),
            _ => RequestOutcome::Passed.by("to the device below", basis),
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
            (BlockKind::LvmThinPool | BlockKind::LvmThinData, 0) => RequestOutcome::Freed.by(
                "chunks are freed in the pool; the device below is not informed",
                basis,
            ),
            (_, 0) => RequestOutcome::Dropped.by(self.why_none(), self.none_basis(basis)),
            (BlockKind::LvmThin, _) => self.thin_discards(basis),
            (BlockKind::LvmThinPool | BlockKind::LvmThinData, _) => RequestOutcome::Passed
                .by("chunks are freed in the pool, and discarded below", basis),
            (BlockKind::Loop, _) => {
                RequestOutcome::Passed.by("punches a hole into the file", basis)
            }
            (BlockKind::Bcache, _) => RequestOutcome::Passed.by("to the backing disk", basis),
            (BlockKind::Multipath, _) => RequestOutcome::Passed.by("on one of the paths", basis),
            _ if self.is_drive() => RequestOutcome::Honoured.by(
                format!("the drive takes at most {max} bytes at once"),
                basis,
            ),
            _ if self.below > 1 => RequestOutcome::Copied.by("to each device below", basis),
            _ => RequestOutcome::Passed.by("to the device below", basis),
        }
    }

    /// The reason why a device accepts no discards.
    fn why_none(&self) -> &'static str {
        match self.device.kind {
            BlockKind::CryptLuks1 | BlockKind::CryptLuks2 | BlockKind::Crypt => {
                "opened without allow_discards; QEMU ignores the error"
            }
            BlockKind::Md => "the array accepts no discards; QEMU ignores the error",
            _ if self.is_thin_lun() => {
                "the disk allocates blocks when they are written, but its driver sends it no discards; QEMU ignores the error"
            }
            _ => "the device accepts no discards; QEMU ignores the error",
        }
    }

    /// The fact that explains it best.
    fn none_basis(&self, basis: StatementBasis) -> StatementBasis {
        match &self.device.crypt {
            Fact::Known(crypt) if crypt.allow_discards.is_false() => {
                self.fact("crypt.allow_discards", false)
            }
            _ if self.is_thin_lun() => {
                let scsi = self.device.scsi.value();
                let mode = scsi.and_then(|scsi| scsi.provisioning_mode.value());
                let mode = mode.map_or("unknown", String::as_str);
                self.fact("scsi.provisioning_mode", mode)
            }
            _ => basis,
        }
    }

    fn is_thin_lun(&self) -> bool {
        let scsi = self.device.scsi.value();
        scsi.is_some_and(|scsi| scsi.thin_provisioning.is_true())
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
                RequestOutcome::Dropped.by("the pool ignores discards", basis)
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
                RequestOutcome::Split.by(text, basis)
            }
        }
    }
}
