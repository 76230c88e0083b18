//! The disks that factors describe.

use std::path::PathBuf;

use vmdisk_model::{
    AioMode, BackendSource, Bytes, CacheMode, Creation, Format, Image, Preallocation,
    Qcow2Creation, Qcow2Preallocation, VhostUserSocket,
};

use super::factor::{EXISTING, Factor, SOCKET, Words, backend, engine};
use super::guest_choice::GuestChoice;
use super::limits::{Limits, NoMeaning};
use super::pinning::pinning;
use super::{Configuration, Storage};
use crate::EngineKind;

/// The placeholder for the path of an image; engines set the real path.
pub(crate) const PLACEHOLDER: &str = "/to/be/replaced";

fn possible(why: Option<String>) -> Result<(), NoMeaning> {
    why.map_or(Ok(()), |why| Err(NoMeaning::Impossible(why)))
}

fn impossible<T>(why: impl Into<String>) -> Result<T, NoMeaning> {
    Err(NoMeaning::Impossible(why.into()))
}

/// Returns the configuration that a combination of factors means, and its engine.
pub(super) fn meaning(
    name: String,
    words: &Words,
    size: Bytes,
    limits: &Limits,
) -> Result<(Configuration, EngineKind), NoMeaning> {
    let engine = engine(words)?;
    let format = Factor::Format.of(words)?.and_then(Format::from_word);
    let format = format.unwrap_or(Format::Raw);
    let cache = Factor::Cache.of(words)?.and_then(CacheMode::from_word);
    let aio = Factor::Aio.of(words)?.and_then(AioMode::from_word);
    let is_socket = backend(words)? == SOCKET;
    let frontend = Factor::Frontend.of(words)?.unwrap_or(if is_socket {
        "vhost-user-blk"
    } else {
        "virtio-blk"
    });
    let choice = GuestChoice {
        frontend,
        has_iothread: is_on(Factor::IoThread, words)?,
        queues: number(Factor::Queues, words)?,
        vcpus: number(Factor::Vcpus, words)?,
        has_huge_pages: is_on(Factor::HugePages, words)?,
    };
    let storage = storage(words, limits)?;
    if matches!(storage, Storage::Existing { .. }) && engine != EngineKind::HostFio {
        return impossible(
            "what exists is only read by host-fio, which never opens it for writing",
        );
    }
    if is_socket {
        possible(choice.impossible_on_socket(engine))?;
    }
    let pinning = pinning(
        Factor::Processors.of(words)?,
        Factor::NumaNode.of(words)?,
        limits,
    )?;
    if format != Format::Raw && !matches!(storage, Storage::File { .. }) {
        return impossible(format!(
            "devices and volumes are measured as raw disks, not as {format} images"
        ));
    }
    let creation = creation(words, &storage, format, size)?;
    let direct = cache.unwrap_or(CacheMode::Writeback).switches().direct;
    if aio == Some(AioMode::Native) && !direct {
        // The message of QEMU 7.2.
        return impossible(
            "aio=native was specified, but it requires cache.direct=on, which was not specified",
        );
    }
    possible(choice.impossible(limits, pinning.processors))?;
    let image = |mut image: Image| {
        image.format = Some(format);
        image.creation = creation;
        BackendSource::from(image)
    };
    let source = match &storage {
        Storage::Device { path, .. } => image(Image::host_device(path.display().to_string())),
        Storage::ThinVolume { .. } => image(Image::host_device(PLACEHOLDER)),
        Storage::Existing { path } => image(Image::file(path.display().to_string(), format)),
        Storage::File { .. } => image(Image::file(PLACEHOLDER, format)),
        Storage::Socket { path } => VhostUserSocket::new(path.display().to_string()).into(),
    };
    let (mut guest, mut disk) = choice.guest(source);
    disk.backend.cache = cache;
    disk.backend.aio = aio;
    guest.disks = vec![disk];
    let factors = words.iter();
    let configuration = Configuration {
        name,
        factors: factors
            .map(|(factor, value)| (factor.word().to_owned(), value.clone()))
            .collect(),
        guest,
        storage,
        size,
        fills: 1,
        is_served_by_daemon: choice.is_served_by_daemon(),
        is_buffered: words.contains_key(&Factor::Direct) && !is_on(Factor::Direct, words)?,
        launcher: pinning.launcher,
        findings: Vec::new(),
    };
    Ok((configuration, engine))
}

fn is_on(factor: Factor, words: &Words) -> Result<bool, String> {
    Ok(factor.of(words)? == Some("true"))
}

fn number(factor: Factor, words: &Words) -> Result<Option<u32>, String> {
    let read = |word: &str| {
        let number = word.parse().ok();
        let number = number.filter(|number| (1..=1024).contains(number));
        number.ok_or_else(|| format!("{}: `{word}` is not a number from 1 to 1024", factor.word()))
    };
    factor.of(words)?.map(read).transpose()
}

fn bytes(factor: Factor, words: &Words) -> Result<Option<Bytes>, String> {
    let read = |word: &str| {
        Bytes::parse(word)
            .map_err(|_| format!("{}: `{word}` is not a size such as 64K", factor.word()))
    };
    factor.of(words)?.map(read).transpose()
}

fn storage(words: &Words, limits: &Limits) -> Result<Storage, NoMeaning> {
    Ok(match backend(words)? {
        "device" => match &limits.device {
            Some((path, serial)) => Storage::Device {
                path: path.clone(),
                serial: serial.clone(),
                scheduler: words.get(&Factor::Scheduler).cloned(),
            },
            None => {
                return impossible(
                    "no prepared block device was given; see `vmdisk bench prepare-device`",
                );
            }
        },
        "thin" => match &limits.group {
            Some(group) => Storage::ThinVolume {
                group: group.clone(),
                chunk_bytes: bytes(Factor::Chunk, words)?.unwrap_or(Bytes(64 << 10)).0,
                zero: Factor::Zero.of(words)? != Some("false"),
            },
            None => return impossible("no volume group was given; use `--group`"),
        },
        SOCKET => match &limits.socket {
            Some(path) => Storage::Socket { path: path.clone() },
            None => {
                return impossible(
                    "no vhost-user-blk socket was given; use `--destroy-data-behind`",
                );
            }
        },
        EXISTING => match Factor::Path.of(words)? {
            Some(path) => Storage::Existing {
                path: PathBuf::from(path),
            },
            None => return impossible("no path was given; set `path`"),
        },
        _ => Storage::File {
            directory: Factor::Directory.of(words)?.map(PathBuf::from),
            no_cow: is_on(Factor::NoCow, words)?,
        },
    })
}

/// Returns how the image is created.
fn creation(
    words: &Words,
    storage: &Storage,
    format: Format,
    size: Bytes,
) -> Result<Option<Creation>, NoMeaning> {
    let preallocation = Factor::Preallocation.of(words)?;
    let preallocation = preallocation.and_then(Qcow2Preallocation::from_word);
    let cluster_size = bytes(Factor::ClusterSize, words)?;
    if format == Format::Qcow2 {
        return Ok(Some(Creation::Qcow2(Qcow2Creation {
            size: Some(size),
            preallocation,
            cluster_size,
            ..Qcow2Creation::default()
        })));
    }
    if let Some(cluster_size) = cluster_size {
        return impossible(format!(
            "cluster-size={} requires qcow2, not {format}",
            cluster_size.0
        ));
    }
    if !matches!(storage, Storage::File { .. }) {
        return Ok(None);
    }
    let preallocation = match preallocation {
        None => None,
        Some(Qcow2Preallocation::Off) => Some(Preallocation::Off),
        Some(Qcow2Preallocation::Falloc) => Some(Preallocation::Falloc),
        Some(Qcow2Preallocation::Full) => Some(Preallocation::Full),
        Some(Qcow2Preallocation::Metadata) => {
            return impossible("raw has no metadata to allocate");
        }
    };
    Ok(Some(Creation::RawFile {
        size: Some(size),
        preallocation,
    }))
}
