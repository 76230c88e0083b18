//! The file system of a file.

use vmdisk_facts::stack::{self, DiscardEffect, FlushEffect, FlushLoss, StackLayer, UnknownFlush};
use vmdisk_facts::{Fact, Filesystem, FsKind, HostIndex, Mount};
use vmdisk_model::Bytes;
use vmdisk_rule::{Context, Missing};

use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{FactProperties, Results, Tracer, bytes, collect, unknown};

impl<'a> Tracer<'a> {
    /// Adds the file system of a file, and the devices below it.
    pub(crate) fn host_file(&mut self, above: usize, path: &'a str) {
        let what = || format!("the file system of {path}");
        let found = self.context.host(what).and_then(|host| {
            let filesystem = Context::known(host.filesystem_of(path), what)?
                .ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED))?;
            Ok((host, filesystem))
        });
        match found {
            Ok((host, filesystem)) => {
                let number = self.steps.len();
                self.filesystem(above, host, filesystem, path);
                self.add_measured(number, host, path);
            }
            Err(missing) => {
                self.undescribed_storage(above, "file system", &missing, &collect(&[], path));
            }
        }
    }

    /// Adds a step for storage that the facts do not describe.
    pub(crate) fn undescribed_storage(
        &mut self,
        above: usize,
        name: &str,
        missing: &Missing,
        command: &[String],
    ) {
        let results = std::array::from_fn(|_| unknown(missing.clone(), command.to_vec()));
        self.add(Some(above), Layer::Unknown, name, Vec::new(), results);
    }

    fn filesystem(
        &mut self,
        above: usize,
        host: &'a HostIndex<'a>,
        filesystem: &'a Filesystem,
        path: &'a str,
    ) {
        if self
            .join(above, format!("file system {}", filesystem.id))
            .is_some()
        {
            return;
        }
        let mount = host.mount_of(path).known();
        let name = match mount {
            Some(mount) => format!("{} on {}", filesystem.kind, mount.point),
            None => filesystem.kind.to_string(),
        };
        let on = On {
            host,
            filesystem,
            mount,
            path,
        };
        let results = [on.reads(), on.writes(), on.flushes(), on.discards()];
        let number = self.add(
            Some(above),
            Layer::FileSystem,
            name,
            on.properties(),
            results,
        );
        self.below_filesystem(number, &on);
    }

    fn below_filesystem(&mut self, number: usize, on: &On<'a>) {
        let kind = &on.filesystem.kind;
        if kind.is_volatile() {
            return;
        }
        if let (FsKind::Nfs | FsKind::Nfs4 | FsKind::Cifs | FsKind::Ceph, Some(mount)) =
            (kind, on.mount)
        {
            let server = mount.source.value().map_or("the server", String::as_str);
            let decides = |what: &str| {
                unknown(
                    Missing::new(
                        format!("what {server} does with {what}"),
                        "the server decides",
                    ),
                    Vec::new(),
                )
            };
            let results = [
                decides("reads"),
                decides("writes"),
                decides("flushes"),
                decides("discards"),
            ];
            self.add(Some(number), Layer::Server, server, Vec::new(), results);
            return;
        }
        let what = || match kind {
            FsKind::Overlay => format!("the upper directory of {}", on.point()),
            _ => format!("the devices of {kind}"),
        };
        let below = Context::known(on.host.layers_under(&on.layer()), what)
            .and_then(|below| below.ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED)));
        let below = below.unwrap_or_else(|missing| {
            self.undescribed_storage(number, "devices", &missing, &collect(&[], on.path));
            Vec::new()
        });
        for layer in below {
            match layer {
                StackLayer::FileSystem { path, .. } => self.host_file(number, path),
                StackLayer::Device(device) => self.device(number, on.host, device, on.path),
            }
        }
    }
}

/// A file on a file system.
struct On<'a> {
    host: &'a HostIndex<'a>,
    filesystem: &'a Filesystem,
    mount: Option<&'a Mount>,
    path: &'a str,
}

impl<'a> On<'a> {
    fn properties(&self) -> Vec<Property> {
        let Filesystem {
            id,
            free_bytes,
            btrfs,
            zfs,
            ..
        } = self.filesystem;
        let mut facts = FactProperties::new(format!("{id} "), &[], self.path);
        let rounded = |free: &u64| Bytes(*free).rounded();
        facts.add("free", free_bytes, "free_bytes", rounded);
        if let Fact::Known(btrfs) = btrfs {
            let profile = btrfs
                .data_profile
                .as_ref()
                .map(|profiles| profiles.join("+"));
            facts.add(
                "data profile",
                &profile,
                "btrfs.data_profile",
                String::clone,
            );
            facts.add("sectors", &btrfs.sectorsize, "btrfs.sectorsize", bytes);
        }
        if let Fact::Known(zfs) = zfs {
            facts.add("record size", &zfs.recordsize, "zfs.recordsize", bytes);
        }
        facts.properties
    }

    fn reads(&self) -> (RequestOutcome, Statement) {
        match self.filesystem.kind.is_volatile() {
            true => RequestOutcome::Honoured.by("from memory", self.kind()),
            false => RequestOutcome::Passed.by("from the blocks of the file", self.kind()),
        }
    }

    fn writes(&self) -> (RequestOutcome, Statement) {
        let kind = &self.filesystem.kind;
        if kind.is_volatile() {
            return RequestOutcome::Cached.by("stays in memory", self.kind());
        }
        if let Fact::Known(ext4) = &self.filesystem.ext4
            && ext4.data_mode.as_str().is(&"journal")
        {
            let fact =
                StatementBasis::fact(format!("{} ext4.data_mode = journal", self.filesystem.id));
            return RequestOutcome::Split.by("written twice: first to the journal", fact);
        }
        if *kind != FsKind::Btrfs {
            return RequestOutcome::Passed.by("to the blocks of the file", self.kind());
        }
        let copies = self
            .filesystem
            .btrfs
            .as_ref()
            .and_then(|btrfs| btrfs.keeps_several_copies());
        let outcome = match copies.is_true() {
            true => RequestOutcome::Copied,
            false => RequestOutcome::Passed,
        };
        let command = collect(&[], self.path);
        match Context::known(self.host.nocow(self.path), || {
            format!("the NOCOW flag of {}", self.path)
        }) {
            Ok(Some(true)) => {
                let fact = StatementBasis::fact(format!("{} nocow = true", self.path));
                outcome.by("to the same blocks, without checksums", fact)
            }
            Ok(Some(false) | None) => {
                let fact = StatementBasis::fact(format!("{} nocow = false", self.path));
                outcome.by("to new blocks (copy-on-write), with checksums", fact)
            }
            Err(missing) => unknown(missing, command),
        }
    }

    fn flushes(&self) -> (RequestOutcome, Statement) {
        let Filesystem { id, kind, zfs, .. } = self.filesystem;
        let basis = StatementBasis::fact;
        match self.layer().flush() {
            FlushEffect::Dropped(FlushLoss::Memory) => {
                RequestOutcome::Dropped.by("nothing survives a reboot", self.kind())
            }
            FlushEffect::Dropped(FlushLoss::VolatileOverlay) => RequestOutcome::Dropped.by(
                "the overlay ignores fsync",
                basis(format!("{} has volatile", self.point())),
            ),
            FlushEffect::Dropped(FlushLoss::NoBarrier) => RequestOutcome::Dropped.by(
                "the drive does not empty its cache",
                basis(format!("{} has nobarrier or barrier=0", self.point())),
            ),
            effect if *kind == FsKind::Zfs => {
                let sync = zfs.as_ref().and_then(|zfs| zfs.sync.clone());
                zfs_flushes(&effect, sync, id, &collect(&["zfs"], self.path))
            }
            FlushEffect::Unknown(UnknownFlush::Elsewhere) => {
                let what = format!("what {kind} does with flushes");
                unknown(Missing::new(what, "the other side decides"), Vec::new())
            }
            FlushEffect::Unknown(UnknownFlush::Missing(_, missing)) => self.missing(missing),
            _ if matches!(kind, FsKind::Nfs | FsKind::Nfs4) => RequestOutcome::Passed.by(
                "COMMIT on the server",
                StatementBasis::source("Linux fs/nfs/file.c, nfs_file_fsync"),
            ),
            _ if *kind == FsKind::Overlay => {
                RequestOutcome::Passed.by("to the file in the upper directory", self.kind())
            }
            _ => RequestOutcome::Passed.by(
                "commits the file, and flushes the devices",
                basis(format!("{} has no nobarrier", self.point())),
            ),
        }
    }

    /// The statement about a fact of the mount that is missing.
    fn missing(&self, missing: Fact<()>) -> (RequestOutcome, Statement) {
        let what = || format!("mount options of {}", self.path);
        let missing = Context::known(missing, what).err();
        let missing = missing.unwrap_or_else(|| Missing::new(what(), "absent"));
        unknown(missing, collect(&[], self.path))
    }

    fn layer(&self) -> StackLayer<'a> {
        StackLayer::FileSystem {
            filesystem: self.filesystem,
            mount: self.mount,
            path: self.path,
        }
    }

    fn discards(&self) -> (RequestOutcome, Statement) {
        let kind = &self.filesystem.kind;
        match self.layer().discard() {
            DiscardEffect::Elsewhere => {
                let missing = Missing::new(
                    format!("whether {kind} punches holes"),
                    "the server decides",
                );
                unknown(missing, Vec::new())
            }
            DiscardEffect::NotKnown => {
                let what = format!("whether {kind} punches holes");
                unknown(
                    Missing::new(what, "vmdisk does not know this file system"),
                    Vec::new(),
                )
            }
            DiscardEffect::Dropped(_) => RequestOutcome::Dropped.by(
                "the file system punches no holes; QEMU ignores the error",
                StatementBasis::source(
                    "fallocate(2), FALLOC_FL_PUNCH_HOLE: the list of file systems",
                ),
            ),
            DiscardEffect::Missing(missing) => self.missing(missing),
            DiscardEffect::Passed => {
                RequestOutcome::Passed.by("to the upper directory", self.kind())
            }
            _ if kind.is_volatile() => RequestOutcome::Freed.by("the memory is freed", self.kind()),
            _ if *kind == FsKind::Zfs => RequestOutcome::Freed.by(
                "the blocks are freed; autotrim of the pool informs the drives",
                StatementBasis::source("zpoolprops(7), autotrim"),
            ),
            _ => self.local_discards(),
        }
    }

    fn local_discards(&self) -> (RequestOutcome, Statement) {
        let what = || format!("mount options of {}", self.path);
        let online = match self.mount {
            Some(mount) => Context::known(mount.has_option("discard"), what),
            None => Err(Missing::new(what(), Missing::NOT_COLLECTED)),
        };
        match online {
            Ok(Some(true)) => RequestOutcome::Passed.by(
                "the blocks are freed, and discarded on the devices later",
                StatementBasis::fact(format!("{} has discard", self.point())),
            ),
            Ok(Some(false) | None) => RequestOutcome::Freed.by(
                "the blocks are freed; fstrim informs the devices",
                StatementBasis::fact(format!("{} has no discard", self.point())),
            ),
            Err(missing) => unknown(missing, collect(&[], self.path)),
        }
    }

    /// The mount point.
    fn point(&self) -> &str {
        self.mount.map_or("the mount", |mount| &mount.point)
    }

    fn kind(&self) -> StatementBasis {
        StatementBasis::fact(format!(
            "{} kind = {}",
            self.filesystem.id, self.filesystem.kind
        ))
    }
}

/// The result of a flush on ZFS, which the `sync` property decides.
fn zfs_flushes(
    effect: &FlushEffect,
    sync: Fact<String>,
    id: &str,
    command: &[String],
) -> (RequestOutcome, Statement) {
    let what = || "the sync property of ZFS".to_owned();
    let (outcome, text) = match effect {
        FlushEffect::Dropped(_) => (RequestOutcome::Dropped, "ZFS ignores flushes"),
        _ => (
            RequestOutcome::Passed,
            "written to the intent log, and flushed",
        ),
    };
    match Context::known(sync, what) {
        Ok(Some(sync)) => outcome.by(text, StatementBasis::fact(format!("{id} sync = {sync}"))),
        Ok(None) => unknown(Missing::new(what(), "absent"), command.to_vec()),
        Err(missing) => unknown(missing, command.to_vec()),
    }
}

/// Results of a ZFS volume.
pub(crate) fn zvol(sync: Fact<String>, name: &str, path: &str) -> Results {
    const SOURCE: &str = "OpenZFS module/os/linux/zfs/zvol_os.c";
    [
        RequestOutcome::Passed.by("through the cache of ZFS", StatementBasis::source(SOURCE)),
        RequestOutcome::Cached.by(
            "completes in the cache of ZFS",
            StatementBasis::source(SOURCE),
        ),
        zfs_flushes(&stack::of_zfs(&sync), sync, name, &collect(&["zfs"], path)),
        RequestOutcome::Freed.by(
            "the blocks are freed; autotrim informs the drives",
            StatementBasis::source(SOURCE),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_without_sync_drops_flushes() {
        for (sync, outcome) in [
            (Fact::Known("disabled".to_owned()), RequestOutcome::Dropped),
            (Fact::Known("standard".to_owned()), RequestOutcome::Passed),
            (Fact::NotCollected, RequestOutcome::Unknown),
        ] {
            assert_eq!(
                zfs_flushes(&stack::of_zfs(&sync), sync, "f1", &[]).0,
                outcome
            );
        }
    }
}
