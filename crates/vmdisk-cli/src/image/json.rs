//! Version 1 of what `vmdisk image --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::image::chain::{End, ResolvedName};
use vmdisk::image::{Header, PartitionTable, Qcow2Compression, Qcow2Encryption, RawContent};
use vmdisk_collect::without_secrets;

use super::finding::{ImageFinding, at, shown};
use super::look::{DataFile as Data, Image as Looked, Link as LookedLink};
use super::shown::Shown;
use crate::output::pretty_json;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// The result of one `vmdisk image` run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "vmdisk image report, version 1", rename = "ImageReport")]
struct Envelope<'a> {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The images in the order of the arguments, without the unreadable ones.
    images: Vec<Image<'a>>,
    /// The unreadable images.
    failed: &'a [Failed],
}

/// An unreadable image.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Failed {
    /// The given path.
    pub(super) path: String,
    /// Why not.
    pub(super) reason: String,
}

/// An image and its backing chain.
#[derive(Debug, Serialize, JsonSchema)]
struct Image<'a> {
    /// The given path.
    path: String,
    /// Whether the files it names were looked at (`--chain`).
    followed: bool,
    /// The images, the top first; only the top where nothing was followed.
    chain: Vec<Link>,
    /// Why there are no more.
    end: ChainEnd,
    /// The mistake.
    findings: &'a [ImageFinding],
}

/// One image of a chain. Names that are not UTF-8 are shown escaped, credentials as `redacted`.
#[derive(Debug, Serialize, JsonSchema)]
struct Link {
    /// The name it was opened by.
    path: String,
    /// The format its header shows, by QEMU's name.
    format: String,
    /// The format that QEMU probes if none is given.
    probed: String,
    /// The format the image above records; null for the top and where none is recorded.
    recorded: Option<String>,
    /// The size the guest sees, in bytes.
    virtual_size: Option<u64>,
    /// The length of the file or device, in bytes.
    length: Option<u64>,
    /// The bytes allocated for the file.
    allocated: Option<u64>,
    /// The unit of allocation in bytes.
    cluster_size: Option<u64>,
    /// Whether the format encrypts the guest's data.
    encrypted: bool,
    /// The recorded backing file.
    backing: Option<Backing>,
    /// The files that hold its data.
    data_files: Vec<DataFile>,
    /// What only qcow2 has.
    qcow2: Option<Qcow2>,
    /// Guesses at an image without a header.
    raw: Option<Raw>,
}

/// A recorded backing file.
#[derive(Debug, Serialize, JsonSchema)]
struct Backing {
    /// Its name.
    name: String,
    /// Its format; null where none is recorded.
    format: Option<String>,
}

/// A file that holds the data of an image.
#[derive(Debug, Serialize, JsonSchema)]
struct DataFile {
    /// Its recorded name.
    name: String,
    /// Where that leads.
    place: String,
    /// The format its header shows; null where it was not looked at.
    format: Option<String>,
    /// The reason why it is unreadable.
    error: Option<String>,
}

/// What only qcow2 has.
#[derive(Debug, Serialize, JsonSchema)]
struct Qcow2 {
    /// 2 or 3.
    version: u32,
    /// Not closed after it was written; also true while a guest with lazy reference counts runs.
    dirty: bool,
    /// Marked corrupt.
    corrupt: bool,
    /// The guest's data is in another file.
    external_data_file: bool,
    /// Clusters have subclusters.
    extended_l2: bool,
    /// Reference counts may be written late.
    lazy_refcounts: bool,
    /// The three fields of feature bits as they stand: incompatible, compatible, autoclear.
    feature_bits: [u64; 3],
    /// `zlib`, `zstd` or `type N`.
    compression: String,
    /// `aes`, `luks` or `method N`; null where there is none.
    encryption: Option<String>,
    /// Snapshots inside.
    snapshots: u32,
    /// Bits of a reference count, as a power of two.
    refcount_order: u32,
    /// The L2 tables that map the whole disk, in bytes.
    l2_bytes: Option<u64>,
    /// Whether there are persistent bitmaps that can be trusted; null where there are none.
    bitmaps_consistent: Option<bool>,
}

/// Guesses at an image without a header.
#[derive(Debug, Serialize, JsonSchema)]
struct Raw {
    /// `empty`, `zero` or `data`.
    content: &'static str,
    /// How many bytes from the beginning were looked at.
    looked_at: u64,
    /// `mbr`, `gpt` or `protective-mbr`.
    partition_table: Option<&'static str>,
    /// What has a signature.
    signatures: Vec<Signature>,
}

/// Something that has a signature.
#[derive(Debug, Serialize, JsonSchema)]
struct Signature {
    /// The kind of the image.
    kind: String,
    /// Where it stands, in bytes.
    offset: u64,
}

/// Where a chain ends.
#[derive(Debug, Serialize, JsonSchema)]
struct ChainEnd {
    /// `base`, `loop`, `missing`, `unreadable`, `not-followed`, `not-opened`, `unresolvable` or `too-deep`.
    kind: &'static str,
    /// The next image of the chain.
    place: Option<String>,
    /// Why it does not.
    reason: Option<String>,
    /// Of a loop: the number of the image it leads back to, from 0.
    to: Option<usize>,
}

/// The JSON Schema of the report.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope)
}

/// The report as text.
pub(super) fn write(images: &[Shown], failed: &[Failed]) -> String {
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        images: images.iter().map(image).collect(),
        failed,
    };
    pretty_json(&envelope)
}

fn image(seen: &Shown) -> Image<'_> {
    let Shown {
        path,
        image,
        findings,
    } = seen;
    let Looked {
        links,
        end,
        is_followed,
    } = image;
    Image {
        path: path.clone(),
        followed: *is_followed,
        chain: links
            .iter()
            .enumerate()
            .map(|(depth, one)| link(depth, one))
            .collect(),
        end: chain_end(end),
        findings,
    }
}

fn link(depth: usize, link: &LookedLink) -> Link {
    let LookedLink {
        location,
        identity: _, // A number of this host that means nothing elsewhere.
        header,
        opened_as: _,      // Follows from `recorded` and `probed`.
        format_differs: _, // As well.
        recorded,
        length,
        allocated,
        data,
    } = link;
    Link {
        path: location.to_string(),
        format: header.format().to_string(),
        probed: header.probed_by_qemu().to_string(),
        recorded: recorded
            .as_ref()
            .filter(|_| depth > 0)
            .map(ToString::to_string),
        virtual_size: header.virtual_size(),
        length: *length,
        allocated: *allocated,
        cluster_size: header.cluster_size(),
        encrypted: header.is_encrypted(),
        backing: header.backing().map(|backing| Backing {
            name: shown(backing.reference),
            format: match (backing.format, backing.implied) {
                (Some(format), _) => Some(format.to_string()),
                (None, implied) => implied.map(|format| format.to_string()),
            },
        }),
        data_files: data.iter().map(data_file).collect(),
        qcow2: qcow2(header),
        raw: raw(header),
    }
}

fn data_file(data: &Data) -> DataFile {
    let (format, error) = match &data.found {
        None => (None, None),
        Some(Ok(file)) => (Some(file.header.format().to_string()), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    DataFile {
        name: shown(&data.reference),
        place: at(&data.place),
        format,
        error,
    }
}

fn qcow2(header: &Header) -> Option<Qcow2> {
    let Header::Qcow2(qcow2) = header else {
        return None;
    };
    Some(Qcow2 {
        version: qcow2.version,
        dirty: qcow2.incompatible.dirty(),
        corrupt: qcow2.incompatible.corrupt(),
        external_data_file: qcow2.incompatible.external_data_file(),
        extended_l2: qcow2.incompatible.extended_l2(),
        lazy_refcounts: qcow2.compatible.lazy_refcounts(),
        feature_bits: [
            qcow2.incompatible.bits,
            qcow2.compatible.bits,
            qcow2.autoclear.bits,
        ],
        compression: match qcow2.compression {
            Qcow2Compression::Zlib => "zlib".to_owned(),
            Qcow2Compression::Zstd => "zstd".to_owned(),
            Qcow2Compression::Unknown(number) => format!("type {number}"),
        },
        encryption: match qcow2.encryption {
            Qcow2Encryption::None => None,
            Qcow2Encryption::Aes => Some("aes".to_owned()),
            Qcow2Encryption::Luks => Some("luks".to_owned()),
            Qcow2Encryption::Unknown(number) => Some(format!("method {number}")),
        },
        snapshots: qcow2.snapshots.entries,
        refcount_order: qcow2.refcount_order,
        l2_bytes: qcow2.l2_bytes_for_whole_disk(),
        bitmaps_consistent: qcow2.has_bitmaps().then(|| qcow2.autoclear.bitmaps()),
    })
}

fn raw(header: &Header) -> Option<Raw> {
    let Header::Raw(guess) = header else {
        return None;
    };
    Some(Raw {
        content: match guess.content {
            RawContent::Empty => "empty",
            RawContent::Zero => "zero",
            RawContent::Data => "data",
        },
        looked_at: guess.looked_at,
        partition_table: guess.partition_table.as_ref().map(|table| match table {
            PartitionTable::Mbr { partitions: _ } => "mbr",
            PartitionTable::Gpt { sector_size: _ } => "gpt",
            PartitionTable::ProtectiveMbrOnly => "protective-mbr",
        }),
        signatures: guess
            .signatures
            .iter()
            .map(|signature| Signature {
                kind: signature.kind.to_string(),
                offset: signature.offset,
            })
            .collect(),
    })
}

fn chain_end(end: &End) -> ChainEnd {
    let told = |kind, place: Option<&ResolvedName>, reason: Option<&String>| ChainEnd {
        kind,
        place: place.map(at),
        reason: reason.map(|reason| without_secrets(reason)),
        to: None,
    };
    match end {
        End::Base => told("base", None, None),
        End::Loop { to } => ChainEnd {
            to: Some(*to),
            ..told("loop", None, None)
        },
        End::Missing { place, reason } => told("missing", Some(place), Some(reason)),
        End::Unreadable { place, reason } => told("unreadable", Some(place), Some(reason)),
        End::NotFollowed { place, reason } => told("not-followed", Some(place), Some(reason)),
        End::NotOpened => told("not-opened", None, None),
        End::Unresolvable => told("unresolvable", None, None),
        End::TooDeep => told("too-deep", None, None),
    }
}
