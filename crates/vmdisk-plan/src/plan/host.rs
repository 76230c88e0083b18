//! What planning asks of the facts, each answer with the words for a reason.

use vmdisk_facts::stack::StackLayer;
use vmdisk_facts::verdict::aio::AioSlots;
use vmdisk_facts::verdict::io_uring::IoUring;
use vmdisk_facts::verdict::media::SlowestDrive;
use vmdisk_facts::verdict::raw_end::UnreachableEnd;
use vmdisk_facts::{
    BlockDevice, BlockKind, Buffered, Bug, Capability, DirectIo, DirectIoEffect, Fact, Facts,
    FsKind, HostIndex, Missing, NamedFile, Target, named_file,
};
use vmdisk_model::{
    Backing, Bytes, Creation, Format, HostStorage, Image, LogicalVolumeName, Protocol,
};

/// The most headers that are followed; the linter reports longer chains.
const MAX_HEADERS: usize = 200;

/// The effect of `O_DIRECT` on an image.
pub(crate) enum Direct {
    /// Writes bypass the page cache, and nothing goes wrong.
    Works {
        /// The facts that decided.
        because: String,
        /// Alignment of offsets, if it was seen.
        alignment: Option<u64>,
    },
    /// It is refused, ignored, or goes wrong.
    Fails {
        /// The facts that decided.
        because: String,
        /// True if the file system refuses it, so that nothing starts.
        is_refused: bool,
        /// The rule that would say so, if there is one.
        rule: Option<&'static str>,
    },
    /// The facts do not say.
    Unknown {
        /// The missing fact.
        why: String,
    },
}

/// The facts and the target, with the questions of a planner.
pub(crate) struct Host<'a> {
    pub(crate) index: &'a HostIndex<'a>,
    pub(crate) target: Target,
}

impl<'a> Host<'a> {
    pub(crate) fn new(index: &'a HostIndex<'a>, target: Target) -> Self {
        Host { index, target }
    }

    /// True unless the target is known not to have it.
    pub(crate) fn may(&self, capability: Capability) -> bool {
        !self.target.can(capability).is_no()
    }

    /// Why direct I/O cannot write a raw file to its end, if it cannot.
    pub(crate) fn end_is_out_of_reach(&self, image: &Image) -> Option<String> {
        let (Protocol::File { .. }, Some(Format::Raw)) = (&image.protocol, image.format) else {
            return None;
        };
        let path = image.host_path()?;
        let end = match image.creation {
            Some(Creation::RawFile { size, .. }) => UnreachableEnd::of_new(size?.0, &self.target),
            _ => UnreachableEnd::of(self.index.file(path)?, path, &self.target).ok()?,
        }?;
        let (size, why) = (end.size, end.reason(path));
        Some(format!(
            "direct I/O cannot write {size} bytes to their end: {why}"
        ))
    }

    /// The effect of `O_DIRECT` at the path of an image.
    pub(crate) fn direct_io(&self, image: &Image) -> Direct {
        let Some(path) = image.host_path() else {
            return Direct::Unknown {
                why: "the image has no path on this host".to_owned(),
            };
        };
        if let Protocol::HostDevice { .. } = image.protocol
            && !self.index.block_device(path).is_known()
        {
            // The facts would answer for the file system of the device node.
            return Direct::Unknown {
                why: format!("the facts do not describe {path}"),
            };
        }
        match self.index.direct_io(path) {
            Fact::Known(direct) => self.judge(path, direct),
            Fact::Unknown(unknown) => Direct::Unknown {
                why: unknown.to_string(),
            },
            Fact::Absent | Fact::NotCollected => Direct::Unknown {
                why: format!("the facts do not describe {path} or its directory"),
            },
        }
    }

    /// The first image that only the headers of those above name, and on which `O_DIRECT` is refused.
    pub(crate) fn refused_below(&self, image: &Image) -> Option<Direct> {
        let last = image.chain().last()?;
        let has_backing = last.format.is_some_and(Format::has_backing);
        if last.backing != Backing::Unspecified || !has_backing || last.creation.is_some() {
            return None;
        }
        let mut path = last.host_path()?.to_owned();
        for _ in 0..MAX_HEADERS {
            let header = self.index.file(&path)?.image.value()?;
            let NamedFile::Path(below) = named_file(&path, &header.backing.value()?.path) else {
                return None;
            };
            let is_device = below.starts_with("/dev/");
            if let Fact::Known(direct) = self.index.direct_io(&below)
                && direct.verdict == DirectIoEffect::Unsupported
                && (!is_device || self.index.block_device(&below).is_known())
            {
                return Some(self.judge(&below, direct));
            }
            path = below;
        }
        None
    }

    fn judge(&self, path: &str, direct: DirectIo) -> Direct {
        let DirectIo {
            verdict,
            confidence,
            alignment,
            because,
        } = direct;
        let because = format!("{because} ({confidence})");
        let rule = match verdict {
            DirectIoEffect::Direct => match self.trouble_beyond_the_verdict(path) {
                Some(trouble) => return trouble,
                None => {
                    return Direct::Works {
                        because,
                        alignment: alignment.map(|alignment| alignment.offset),
                    };
                }
            },
            DirectIoEffect::Unsupported => Some("odirect-unsupported"),
            DirectIoEffect::DirectUnstableChecksums => Some("btrfs-dio-csum-corruption"),
            DirectIoEffect::DirectUnstableMirrors => Some("btrfs-dio-raid-mirror-divergence"),
            DirectIoEffect::AcceptedButBuffered(
                Buffered::BtrfsChecksums | Buffered::BtrfsRedundant,
            ) => Some("btrfs-dio-buffered"),
            DirectIoEffect::AcceptedButBuffered(
                Buffered::Ext4DataJournal
                | Buffered::SaysNo
                | Buffered::Tmpfs
                | Buffered::ZfsIgnored
                | Buffered::ZfsDisabled
                | Buffered::Declared,
            ) => Some("odirect-silently-buffered"),
        };
        Direct::Fails {
            because,
            is_refused: verdict == DirectIoEffect::Unsupported,
            rule,
        }
    }

    /// Direct I/O that is done, and goes wrong later.
    fn trouble_beyond_the_verdict(&self, path: &str) -> Option<Direct> {
        let kind = &self.index.filesystem_of(path).known()?.kind;
        let is_older_qemu = !self.target.has_bug(Bug::BcachefsWriteAlignment).is_no();
        if *kind == FsKind::Zfs {
            return Some(Direct::Fails {
                because:
                    "ZFS checks direct writes and fails writes that the guest changes in flight"
                        .to_owned(),
                is_refused: false,
                rule: None,
            });
        }
        (*kind == FsKind::Bcachefs && is_older_qemu).then(|| Direct::Fails {
            because:
                "QEMU before 11.1 learns alignment from reads, and bcachefs needs more for writes"
                    .to_owned(),
            is_refused: false,
            rule: None,
        })
    }

    /// Whether QEMU may use io_uring on this host for an image, and the words for it.
    pub(crate) fn io_uring(&self, image: &Image) -> Result<String, String> {
        let filesystem = image.host_path().map(|path| self.index.filesystem_of(path));
        let filesystem = filesystem.and_then(Fact::known);
        match filesystem.map(|it| &it.kind) {
            Some(FsKind::Cifs) if !self.target.has_bug(Bug::IoUringOnCifs).is_no() => {
                return Err("io_uring on CIFS fails or hangs since Linux 5.15".to_owned());
            }
            Some(FsKind::Btrfs) if self.target.has_bug(Bug::IoUringShortRead).is_yes() => {
                return Err("io_uring on btrfs reads wrong data with this QEMU".to_owned());
            }
            _ => {}
        }
        match IoUring::of(Ok(self.index), &self.target) {
            Ok(IoUring::Allowed) => Ok("the kernel, QEMU and libvirt allow io_uring".to_owned()),
            Ok(IoUring::Doubtful(why) | IoUring::Denied(why)) => Err(why),
            Err(Missing { what, why }) => Err(format!(
                "it is not known whether io_uring is allowed here: {what}: {why}"
            )),
        }
    }

    /// Why so many threads with native AIO do not fit what the kernel hands out beside what is taken.
    pub(crate) fn lacks_aio_slots(&self, threads: u64) -> Option<String> {
        let slots = AioSlots::of(self.index.facts(), threads).ok()??;
        slots.are_too_few_now().then(|| slots.reason())
    }

    /// The block device that an image lies on, if it is one and the facts describe it.
    pub(crate) fn device(&self, image: &Image) -> Option<&'a BlockDevice> {
        match image.protocol.on_host() {
            Some(HostStorage::Device(path)) => self.index.block_device(&path.0).known(),
            Some(HostStorage::File(_)) | None => None,
        }
    }

    /// A device that shows what a volume to be made will be like: its pool, or another volume of the group.
    pub(crate) fn kindred(&self, group: &str, pool: Option<&str>) -> Option<&'a BlockDevice> {
        kindred(self.index.facts(), group, pool)
    }

    /// The chunk size of a pool that exists.
    pub(crate) fn chunk_of(&self, name: &LogicalVolumeName, pool: &str) -> Option<Bytes> {
        let lvm = self
            .kindred(&name.group, Some(pool))?
            .lvm
            .as_ref()
            .known()?;
        lvm.chunk.clone().known().map(Bytes)
    }

    /// Why an image is on fast drives, if it is; a device shows what it will be like.
    pub(crate) fn is_fast(
        &self,
        image: &Image,
        kindred: Option<&'a BlockDevice>,
    ) -> Option<String> {
        let path = image.host_path()?;
        let slowest = match self.device(image).or(kindred) {
            Some(device) => SlowestDrive::of(&self.index.leaves(device), String::new),
            None => self.index.slowest_drive(path),
        };
        let slowest = slowest.ok()?;
        (slowest.media.is_fast() == Some(true)).then(|| slowest.reason(path))
    }

    /// Why the storage of an image drops discards, if it does; a device shows what it will be like.
    ///
    /// # Errors
    /// Fails if the facts do not show it.
    pub(crate) fn drops_discards(
        &self,
        path: &str,
        device: &'a BlockDevice,
    ) -> Result<Option<String>, Fact<()>> {
        let lost = self.index.lost_discard_of(StackLayer::Device(device))?;
        Ok(lost.map(|(layer, loss)| layer.drops_discards(path, loss)))
    }
}

/// A device that shows what a volume to be made will be like: its pool or another volume in it, or another volume of the
/// group.
pub(super) fn kindred<'f>(
    facts: &'f Facts,
    group: &str,
    pool: Option<&str>,
) -> Option<&'f BlockDevice> {
    let devices = facts.blockdevs.iter().filter(|device| {
        let Some(lvm) = device.lvm.value() else {
            return false;
        };
        let is_kindred = match pool {
            Some(pool) => {
                let is_in = lvm.pool.as_str() == Fact::Known(pool);
                let is_pool = lvm.lv.as_str() == Fact::Known(pool);
                is_in || (device.kind == BlockKind::LvmThinPool && is_pool)
            }
            None => device.kind == BlockKind::Lvm,
        };
        is_kindred && lvm.vg.as_str() == Fact::Known(group)
    });
    // The same one in any order of the facts.
    devices.min_by_key(|it| (it.kind != BlockKind::LvmThinPool, &it.paths))
}
