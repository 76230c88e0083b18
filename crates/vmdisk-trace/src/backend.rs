//! The storage of an image, as QEMU opens it: a file, a device, a server or a daemon.

use vmdisk_facts::{DirectIo, DirectIoEffect};
use vmdisk_model::{
    AioMode, DiskField, FieldPath, HostStorage, Image, ImageField, NvmeSource, Protocol,
};
use vmdisk_rule::Missing;
use vmdisk_rule::image_facts::direct_io;

use crate::frontend::{SG_IO, same};
use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{FactProperties, Results, Tracer, collect, lacking, property, unknown};

const PAGE_CACHE: &str =
    "QEMU block/file-posix.c: without cache.direct the file is opened without O_DIRECT";

impl<'a> Tracer<'a> {
    /// Adds the storage of an image, and returns the number of its step.
    pub(crate) fn backend(&mut self, above: usize, image: &'a Image, depth: usize) -> usize {
        match image.host_path() {
            Some(path) => self.host_storage(above, image, path),
            None => self.elsewhere(above, image, depth),
        }
    }

    pub(crate) fn host_storage(&mut self, above: usize, image: &Image, path: &'a str) -> usize {
        let is_device = matches!(image.protocol.on_host(), Some(HostStorage::Device(_)));
        let direct = self.direct_io(image, path);
        let by_command =
            |text: &str| RequestOutcome::Passed.by(text, StatementBasis::source(SG_IO));
        let discard = match is_device {
            true if self.is_passed_through() => by_command("UNMAP, with SG_IO"),
            true => RequestOutcome::Passed.by(
                "BLKDISCARD on the device",
                StatementBasis::source("QEMU block/file-posix.c, handle_aiocb_discard"),
            ),
            false => RequestOutcome::Passed.by(
                "fallocate punches a hole into the file",
                StatementBasis::source("QEMU block/file-posix.c, handle_aiocb_discard"),
            ),
        };
        let flush = match self.is_passed_through() {
            true => by_command("SYNCHRONIZE CACHE, with SG_IO"),
            false => RequestOutcome::Passed.by(
                "fdatasync",
                StatementBasis::source("QEMU block/file-posix.c, handle_aiocb_flush"),
            ),
        };
        let [read, write] = match (self.is_passed_through(), &direct) {
            // With O_DIRECT, QEMU reads and writes as it does for other disks.
            (true, None) => [
                by_command("READ, with SG_IO"),
                by_command("WRITE, with SG_IO"),
            ],
            _ => [self.host_reads(&direct), self.host_writes(&direct, path)],
        };
        let results = [read, write, flush, discard];
        let layer = match is_device {
            true => Layer::HostDevice,
            false => Layer::File,
        };
        let properties = self.host_properties(&direct);
        let number = self.add(Some(above), layer, path, properties, results);
        match is_device {
            true => self.host_device(number, path),
            false => self.host_file(number, path),
        }
        number
    }

    /// The effect of `O_DIRECT` on the storage; `None` if the page cache is used, the basis if it is unknown.
    fn direct_io(&self, image: &Image, path: &str) -> Option<Result<DirectIo, StatementBasis>> {
        if !self.disk.backend.is_direct() {
            return None;
        }
        let found = direct_io(self.context, image)?;
        Some(found.map_err(|missing| lacking(missing, collect(&[], path))))
    }

    fn host_properties(&self, direct: &Option<Result<DirectIo, StatementBasis>>) -> Vec<Property> {
        let mut properties = Vec::new();
        let aio = self.disk.backend.aio.unwrap_or(AioMode::Threads);
        properties.push(property(
            "asynchronous I/O",
            aio.as_str(),
            self.setting(DiskField::Aio),
        ));
        if let Some(Ok(DirectIo {
            alignment: Some(alignment),
            because,
            ..
        })) = direct
        {
            let value = format!(
                "{} bytes, memory {} bytes",
                alignment.offset, alignment.memory
            );
            properties.push(property(
                "alignment",
                value,
                StatementBasis::fact(because.clone()),
            ));
        }
        properties
    }

    fn host_reads(
        &self,
        direct: &Option<Result<DirectIo, StatementBasis>>,
    ) -> (RequestOutcome, Statement) {
        match direct {
            None => RequestOutcome::Cached.by(
                "the host's page cache answers, or reads ahead",
                StatementBasis::source(PAGE_CACHE),
            ),
            Some(Err(basis)) => RequestOutcome::Unknown.by("unknown", basis.clone()),
            Some(Ok(direct)) => {
                let basis = StatementBasis::fact(direct.because.clone());
                match direct.verdict {
                    DirectIoEffect::Unsupported => RequestOutcome::Refused.by(NO_START, basis),
                    DirectIoEffect::AcceptedButBuffered(_) => RequestOutcome::Cached.by(
                        "O_DIRECT is accepted and ignored; the host's page cache can answer",
                        basis,
                    ),
                    DirectIoEffect::Direct
                    | DirectIoEffect::DirectUnstableChecksums
                    | DirectIoEffect::DirectUnstableMirrors => {
                        RequestOutcome::Passed.by("O_DIRECT: past the host's page cache", basis)
                    }
                }
            }
        }
    }

    fn host_writes(
        &self,
        direct: &Option<Result<DirectIo, StatementBasis>>,
        path: &'a str,
    ) -> (RequestOutcome, Statement) {
        let is_native = self.disk.backend.aio == Some(AioMode::Native);
        let direct = match direct {
            None => {
                return RequestOutcome::Cached.by(
                    "completes in the host's page cache",
                    StatementBasis::source(PAGE_CACHE),
                );
            }
            Some(Err(basis)) => return RequestOutcome::Unknown.by("unknown", basis.clone()),
            Some(Ok(direct)) => direct,
        };
        let basis = StatementBasis::fact(direct.because.clone());
        let sector = u64::from(self.guest_sector());
        match direct.verdict {
            DirectIoEffect::Unsupported => RequestOutcome::Refused.by(NO_START, basis),
            DirectIoEffect::AcceptedButBuffered(_) if is_native => RequestOutcome::Cached.by("O_DIRECT is ignored: the write uses the page cache, and blocks the event loop in io_submit",
                basis,
            ),
            DirectIoEffect::AcceptedButBuffered(_) => RequestOutcome::Cached.by("O_DIRECT is ignored: the write uses the host's page cache",
                basis,
            ),
            DirectIoEffect::Direct
            | DirectIoEffect::DirectUnstableChecksums
            | DirectIoEffect::DirectUnstableMirrors => {
                let of_file = direct.alignment.map_or(0, |alignment| alignment.offset);
                let host = self.context.host;
                let of_devices = host.and_then(|host| host.sector_under(path).known());
                match of_file.max(of_devices.unwrap_or(0)) {
                    block if block > sector => RequestOutcome::Split.by(format!(
                            "O_DIRECT; QEMU reads and rewrites blocks of {block} bytes for smaller writes"
                        ),
                        basis,
                    ),
                    _ => RequestOutcome::Passed.by(unstable(direct.verdict), basis),
                }
            }
        }
    }

    /// Storage without a path on the host.
    fn elsewhere(&mut self, above: usize, image: &'a Image, depth: usize) -> usize {
        let (layer, name) = match &image.protocol {
            Protocol::Network(network) => {
                let host = network
                    .hosts
                    .first()
                    .and_then(|host| host.name.as_deref().or(host.socket.as_deref()));
                let name = network.name.as_deref().unwrap_or_default();
                let place = [host.unwrap_or_default(), name].map(str::to_owned);
                let place: Vec<String> =
                    place.into_iter().filter(|part| !part.is_empty()).collect();
                (
                    Layer::Server,
                    format!("{} {}", network.protocol, place.join("/")),
                )
            }
            Protocol::Volume(volume) => (
                Layer::Unknown,
                format!("volume {} of pool {}", volume.volume, volume.pool),
            ),
            Protocol::Nvme(nvme) => {
                return self.own_nvme(above, nvme);
            }
            Protocol::Directory { path } => (Layer::File, format!("{path} shown as FAT")),
            Protocol::VhostVdpa { path } => (Layer::Daemon, path.clone()),
            Protocol::Other(word) => (Layer::Unknown, word.clone()),
            Protocol::File { path } => (Layer::File, path.clone()),
            Protocol::HostDevice { path } => (Layer::HostDevice, path.0.clone()),
        };
        let results = match layer {
            Layer::Server => served(&name),
            _ => {
                let at = FieldPath::Image(self.index, depth, ImageField::Source);
                let StatementBasis::Configuration { setting } = self.field(at) else {
                    unreachable!("a field is configuration");
                };
                undescribed(&name, &setting)
            }
        };
        self.add(Some(above), layer, name, Vec::new(), results)
    }

    /// An NVMe controller that QEMU drives itself.
    fn own_nvme(&mut self, above: usize, nvme: &NvmeSource) -> usize {
        const SOURCE: &str =
            "QEMU block/nvme.c: requests enter the queues of the drive, without the host's kernel";
        let read = RequestOutcome::Honoured.by("the drive", StatementBasis::source(SOURCE));
        let write = RequestOutcome::Cached.by(
            "the drive's write cache, if it has one",
            StatementBasis::source(SOURCE),
        );
        let flush = RequestOutcome::Honoured.by(
            "the drive empties its cache",
            StatementBasis::source(SOURCE),
        );
        let discard =
            RequestOutcome::Honoured.by("dataset management", StatementBasis::source(SOURCE));
        let results = [read, write, flush, discard];
        let name = format!(
            "NVMe controller {:?}, namespace {}",
            nvme.address, nvme.namespace
        );
        self.add(Some(above), Layer::Drive, name, Vec::new(), results)
    }

    /// Whether the daemon listens on its socket, if the facts have it.
    fn listener(&self, path: &str) -> Vec<Property> {
        let file = self.context.host.and_then(|host| host.file(path));
        let socket = file.and_then(|file| file.socket.value());
        let mut facts = FactProperties::new(format!("{path} socket."), &[], path);
        if let Some(socket) = socket {
            facts.add(
                "listens",
                &socket.listening,
                "listening",
                |listens| match listens {
                    true => "yes".to_owned(),
                    false => "no: QEMU cannot connect, and does not start".to_owned(),
                },
            );
        }
        facts.properties
    }

    /// The daemon of a vhost-user device, and the image that it serves, if that is known.
    pub(crate) fn daemon(&mut self, above: usize) {
        let disk = self.disk;
        let Some(socket) = disk.backend.socket() else {
            return;
        };
        let Some(served) = socket.served.as_deref() else {
            let heard = self.listener(&socket.path);
            self.add(
                Some(above),
                Layer::Daemon,
                &*socket.path,
                heard,
                undescribed(&socket.path, "the daemon"),
            );
            return;
        };
        let results = same(
            RequestOutcome::Passed,
            "the daemon reads the request from the guest's memory",
            "QEMU docs/interop/vhost-user.rst; storage-daemon",
        );
        let number = self.add(
            Some(above),
            Layer::Daemon,
            &*socket.path,
            self.listener(&socket.path),
            results,
        );
        let layer = self.block_layer(number);
        self.image(layer, served, 0);
    }
}

const NO_START: &str = "open refuses O_DIRECT, and QEMU does not start";

const fn unstable(verdict: DirectIoEffect) -> &'static str {
    match verdict {
        DirectIoEffect::DirectUnstableChecksums => {
            "O_DIRECT: past the host's page cache; a buffer that changes in flight leaves a wrong checksum"
        }
        DirectIoEffect::DirectUnstableMirrors => {
            "O_DIRECT: past the host's page cache; a buffer that changes in flight leaves mirrors that differ"
        }
        DirectIoEffect::Direct
        | DirectIoEffect::Unsupported
        | DirectIoEffect::AcceptedButBuffered(_) => "O_DIRECT: past the host's page cache",
    }
}

/// A server, of which only the protocol is known.
fn served(name: &str) -> Results {
    let sent = || {
        RequestOutcome::Passed.by(
            "sent to the server",
            StatementBasis::source("QEMU: the driver of the protocol sends a request"),
        )
    };
    let flush = unknown(
        Missing::new(
            format!("what {name} does with flushes"),
            "the server decides",
        ),
        Vec::new(),
    );
    let discard = unknown(
        Missing::new(
            format!("what {name} does with discards"),
            "the server decides",
        ),
        Vec::new(),
    );
    [sent(), sent(), flush, discard]
}

/// Storage that nothing describes.
pub(crate) fn undescribed(name: &str, decides: &str) -> Results {
    std::array::from_fn(|_| {
        let missing = Missing::new(format!("what {name} is"), format!("{decides} decides"));
        unknown(missing, Vec::new())
    })
}
