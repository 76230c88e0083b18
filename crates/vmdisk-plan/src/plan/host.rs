//! What planning asks of the facts, each answer with the words for a reason.

use vmdisk_facts::{
    Answer, Basis, BlockDevice, BlockKind, Buffered, Bug, Capability, DirectIo, DirectIoEffect,
    Fact, Facts, FsKind, HostIndex, Target, io_uring,
};
use vmdisk_model::{Bytes, Creation, Format, HostStorage, Image, LogicalVolumeName, Protocol};

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

    /// Why direct I/O cannot write a raw file to its end, if it cannot: QEMU up to 10.0 refuses it then, and takes the
    /// alignment for 4096 bytes where nothing is allocated.
    pub(crate) fn end_is_out_of_reach(&self, image: &Image) -> Option<String> {
        const SAFE: u64 = 4096;
        let is_mended = self.target.has_bug(Bug::RawEndUnaligned).is_no();
        let is_raw_file =
            matches!(image.protocol, Protocol::File { .. }) && image.format == Some(Format::Raw);
        if !is_raw_file || is_mended {
            return None;
        }
        let (size, needs) = match image.creation {
            Some(Creation::RawFile { size, .. }) => (size?.0, SAFE),
            _ => {
                let file = self.index.file(image.host_path()?)?;
                let needs = match file.alloc.value() {
                    Some(0) => SAFE,
                    Some(_) | None => file.dio.off.value().copied()?,
                };
                (file.size.value().copied()?, needs)
            }
        };
        let sectors = size.next_multiple_of(512);
        (needs > 0 && !sectors.is_multiple_of(needs))
            .then(|| format!("direct I/O cannot write {size} bytes to their end"))
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

    /// Whether QEMU may use io_uring on this host, and the words for it.
    pub(crate) fn io_uring(&self) -> Result<String, String> {
        let limits = &self.index.facts().limits;
        let kernel = &self.index.facts().kernel;
        if let Some(why) = io_uring::lacking(kernel) {
            return Err(why);
        }
        match &limits.io_uring_disabled {
            Fact::Known(0) => {}
            // A kernel without the switch does not restrict io_uring.
            Fact::Absent if kernel.version.is_known() => {}
            Fact::Known(_) => return Err("kernel.io_uring_disabled forbids io_uring".to_owned()),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => {
                return Err("it is not known whether io_uring is allowed here".to_owned());
            }
        }
        // A ring needs some pages of locked memory on older kernels.
        if let Fact::Known(bytes) = limits.memlock_bytes
            && bytes < Bytes::MIB
        {
            return Err(format!("RLIMIT_MEMLOCK is {}", Bytes(bytes)));
        }
        if !self.target.can(Capability::AioIoUring).is_yes() {
            return Err("it is not known that this QEMU has io_uring".to_owned());
        }
        for capability in [Capability::LibvirtIoUring, Capability::KernelIoUring] {
            if !self.may(capability) {
                return Err(format!("the target lacks {}", capability.name()));
            }
        }
        if let Answer::Yes(Basis::Assumed(qemu)) = self.target.has_bug(Bug::IoUringInIothread) {
            return Err(format!("io_uring hangs in QEMU {qemu}"));
        }
        Ok("the kernel, QEMU and libvirt allow io_uring".to_owned())
    }

    /// Whether so many more AIO contexts of QEMU fit what the kernel hands out; each takes 1024 requests.
    pub(crate) fn has_aio_requests(&self, contexts: u64) -> bool {
        let limits = &self.index.facts().limits;
        match (&limits.aio_max_nr, &limits.aio_nr) {
            (Fact::Known(most), Fact::Known(taken)) => taken + contexts * 1024 <= *most,
            _ => true,
        }
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

    /// Whether every drive under a path, or under a device, is known not to turn.
    pub(crate) fn is_fast(
        &self,
        image: &Image,
        kindred: Option<&'a BlockDevice>,
    ) -> Option<String> {
        let leaves = match (self.device(image).or(kindred), image.host_path()) {
            (Some(device), _) => self.index.leaves(device),
            (None, Some(path)) => self.index.leaves_of(path).known()?,
            (None, None) => return None,
        };
        let first = leaves.first()?;
        let is_fast = |device: &&BlockDevice| {
            device.kind == BlockKind::Nvme || device.queue.rotational == Fact::Known(false)
        };
        leaves
            .iter()
            .all(is_fast)
            .then(|| format!("{} is not a rotating disk", first.name()))
    }
}

/// A device that shows what a volume to be made will be like: its pool or another volume in it, or another volume of the
/// group.
pub(super) fn kindred<'f>(
    facts: &'f Facts,
    group: &str,
    pool: Option<&str>,
) -> Option<&'f BlockDevice> {
    facts.blockdevs.iter().find(|device| {
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
    })
}
