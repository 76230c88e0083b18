//! Backing chains: the images below an image, and the reason why the chain ends.
//!
//! [`walk`] goes from an image to its backing file, then to that file's backing file, and so on. It opens no files: for
//! each reference it calls a function of the caller, which returns the image's identity, location and header. Names
//! are resolved here, by QEMU's rules and without file system access.
//!
//! ```
//! use std::collections::BTreeMap;
//! use vmdisk_image::chain::{End, Found, ResolvedName, Resolution, Top, walk};
//! use vmdisk_image::{Header, ImageFormat, probe};
//!
//! # fn overlay(backing: &[u8]) -> Vec<u8> {
//! #     let mut image = vec![0; 4 * 65536];
//! #     image[..8].copy_from_slice(b"QFI\xfb\x00\x00\x00\x02");
//! #     image[8..16].copy_from_slice(&88u64.to_be_bytes());
//! #     image[16..20].copy_from_slice(&(backing.len() as u32).to_be_bytes());
//! #     image[20..24].copy_from_slice(&16u32.to_be_bytes());
//! #     image[40..48].copy_from_slice(&(3u64 * 65536).to_be_bytes());
//! #     image[48..56].copy_from_slice(&65536u64.to_be_bytes());
//! #     image[56..60].copy_from_slice(&1u32.to_be_bytes());
//! #     image[72..84].copy_from_slice(&[0xe2, 0x79, 0x2a, 0xca, 0, 0, 0, 3, b'r', b'a', b'w', 0]);
//! #     image[88..88 + backing.len()].copy_from_slice(backing);
//! #     image
//! # }
//! // A directory of images, by path.
//! let files = BTreeMap::from([
//!     (&b"/images/top.qcow2"[..], overlay(b"base.img")),
//!     (b"/images/base.img", vec![0; 512]),
//! ]);
//! let header = |path: &[u8]| probe(&mut files[path].as_slice()).unwrap();
//!
//! let top = Top {
//!     identity: b"/images/top.qcow2".to_vec(),
//!     location: b"/images/top.qcow2".as_slice().into(),
//!     header: header(b"/images/top.qcow2"),
//!     format: Some(ImageFormat::Qcow2),
//! };
//! let chain = walk(top, |reference| match &reference.place {
//!     ResolvedName::Path(path) if files.contains_key(path.as_bytes()) => Resolution::Found(Box::new(Found {
//!         identity: path.as_bytes().to_vec(),
//!         location: path.clone(),
//!         header: header(path.as_bytes()),
//!     })),
//!     _ => Resolution::Missing { reason: "no such file".into() },
//! });
//! assert_eq!(chain.links.len(), 2);
//! assert_eq!(chain.links[1].location.as_bytes(), b"/images/base.img");
//! assert_eq!(chain.end, End::Base);
//! ```

use std::collections::HashMap;
use std::hash::Hash;

use crate::format::ImageFormat;
use crate::header::Header;
use crate::name::Name;
use crate::reference::BackingReference;

/// Maximum number of images in a chain: libvirt refuses more (`backing chains more than 200 layers deep are not
/// supported`); QEMU has no limit.
pub const MAX_IMAGES: usize = 200;

/// The first image of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top<I> {
    /// The image's identity: device and inode number, or a canonical path.
    pub identity: I,
    /// The name under which it was opened; relative backing files are relative to its directory.
    pub location: Name,
    /// Its header.
    pub header: Header,
    /// The format it is opened with; `None` if QEMU probes it.
    pub format: Option<ImageFormat>,
}

/// A request to the caller to find a backing file and read its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The recorded name.
    pub backing: &'a BackingReference,
    /// The resolved name.
    pub place: ResolvedName,
    /// The recorded format.
    pub format: RecordedFormat,
    /// The number of images above it.
    pub depth: usize,
}

/// A resolved name, without file system access.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ResolvedName {
    /// A path, absolute or relative like the location of the referencing image. Neither `..` nor links are resolved.
    Path(Name),
    /// `file:` with a relative path, which QEMU resolves in its working directory.
    WorkingDirectory(Name),
    /// Another protocol, with the whole name.
    Protocol(Name),
    /// `json:`, with the whole name.
    Json(Name),
    /// A relative name in an image that is not a file, which QEMU refuses.
    Unresolvable,
}

/// The format recorded for a backing file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordedFormat {
    /// No format: QEMU probes, libvirt (6.0) refuses.
    None,
    /// A known format.
    Known(ImageFormat),
    /// The name of a protocol driver, such as `file` or `nbd`, which means raw.
    Protocol(Name),
    /// An unknown format.
    Unknown(Name),
}

/// QEMU's protocol drivers that old tools recorded as a backing file's format.
const PROTOCOLS: [&[u8]; 17] = [
    b"file",
    b"host_device",
    b"host_cdrom",
    b"nbd",
    b"http",
    b"https",
    b"ftp",
    b"ftps",
    b"iscsi",
    b"nfs",
    b"rbd",
    b"ssh",
    b"gluster",
    b"nvme",
    b"sheepdog",
    b"vxhs",
    b"vvfat",
];

impl RecordedFormat {
    /// Interprets a recorded format name.
    #[must_use]
    pub fn from_name(name: &Name) -> Self {
        match ImageFormat::from_qemu_name(name.as_bytes()) {
            Some(format) => Self::Known(format),
            None if PROTOCOLS.contains(&name.as_bytes()) => Self::Protocol(name.clone()),
            None => Self::Unknown(name.clone()),
        }
    }
}

/// The caller's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution<I> {
    /// The image exists.
    Found(Box<Found<I>>),
    /// The image does not exist.
    Missing {
        /// The reason, for messages.
        reason: String,
    },
    /// The image exists but could not be read.
    Unreadable {
        /// The reason, for messages.
        reason: String,
    },
    /// The caller does not follow such references.
    NotFollowed {
        /// The reason, for messages.
        reason: String,
    },
}

/// A resolved image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<I> {
    /// The image's identity.
    pub identity: I,
    /// The name under which it was opened.
    pub location: Name,
    /// Its header.
    pub header: Header,
}

/// A chain from the first image down to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain<I> {
    /// The images, the first one first; never empty, at most [`MAX_IMAGES`].
    pub links: Vec<Link<I>>,
    /// The reason why the chain ends.
    pub end: End,
}

/// An image in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<I> {
    /// The image's identity.
    pub identity: I,
    /// The name under which it was opened.
    pub location: Name,
    /// Its header.
    pub header: Header,
    /// The format recorded in the image above; for the first image, the one it is opened with.
    pub recorded: RecordedFormat,
}

impl<I> Link<I> {
    /// Returns the format that QEMU opens the image with; `None` for an unknown driver.
    #[must_use]
    pub fn opened_as(&self) -> Option<ImageFormat> {
        match &self.recorded {
            RecordedFormat::None => Some(self.header.probed_by_qemu()),
            RecordedFormat::Known(format) => Some(*format),
            RecordedFormat::Protocol(_) => Some(ImageFormat::Raw),
            RecordedFormat::Unknown(_) => None,
        }
    }

    /// Returns true if the image is opened with another format than its header shows.
    ///
    /// Opened as raw, the guest sees the header instead of the disk; opened as another format, QEMU refuses the image.
    #[must_use]
    pub fn format_differs(&self) -> bool {
        self.opened_as() != Some(self.header.format())
    }
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The image has no backing file, or is opened as raw, which has none.
    Base,
    /// The backing file is already in the chain: a loop, which QEMU and libvirt refuse.
    Loop {
        /// The index of that link.
        to: usize,
    },
    /// The backing file does not exist.
    Missing {
        /// Its location.
        place: ResolvedName,
        /// The caller's reason.
        reason: String,
    },
    /// The backing file could not be read.
    Unreadable {
        /// Its location.
        place: ResolvedName,
        /// The caller's reason.
        reason: String,
    },
    /// The caller did not follow the reference.
    NotFollowed {
        /// Its location.
        place: ResolvedName,
        /// The caller's reason.
        reason: String,
    },
    /// QEMU does not open the last image with its recorded format.
    NotOpened,
    /// The relative name in the last image has no base directory.
    Unresolvable,
    /// The chain has more than [`MAX_IMAGES`] images.
    TooDeep,
}

/// Follows an image's backing files to the end of the chain.
///
/// Calls `resolve` at most once for each link. The walk does not recurse.
pub fn walk<I, F>(top: Top<I>, mut resolve: F) -> Chain<I>
where
    I: Clone + Eq + Hash,
    F: FnMut(&Reference<'_>) -> Resolution<I>,
{
    let Top {
        identity,
        location,
        header,
        format,
    } = top;
    let recorded = format.map_or(RecordedFormat::None, RecordedFormat::Known);
    let mut seen = HashMap::from([(identity.clone(), 0)]);
    let mut links = Vec::new();
    let mut current = Link {
        identity,
        location,
        header,
        recorded,
    };
    loop {
        let step = step(&current, links.len(), &mut resolve);
        links.push(current);
        let next = match step {
            Ok(next) => next,
            Err(end) => return Chain { links, end },
        };
        if let Some(&to) = seen.get(&next.identity) {
            return Chain {
                links,
                end: End::Loop { to },
            };
        }
        if links.len() == MAX_IMAGES {
            return Chain {
                links,
                end: End::TooDeep,
            };
        }
        seen.insert(next.identity.clone(), links.len());
        current = next;
    }
}

fn step<I>(
    link: &Link<I>,
    depth: usize,
    resolve: &mut impl FnMut(&Reference<'_>) -> Resolution<I>,
) -> Result<Link<I>, End> {
    if link.opened_as() == Some(ImageFormat::Raw) {
        return Err(End::Base);
    }
    if link.format_differs() {
        return Err(End::NotOpened);
    }
    let Some(backing) = link.header.backing() else {
        return Err(End::Base);
    };
    let recorded = match backing.format {
        Some(name) => RecordedFormat::from_name(name),
        None => backing
            .implied
            .map_or(RecordedFormat::None, RecordedFormat::Known),
    };
    let place = place(&link.location, backing.reference);
    if place == ResolvedName::Unresolvable {
        return Err(End::Unresolvable);
    }
    let reference = Reference {
        backing: backing.reference,
        place,
        format: recorded,
        depth: depth + 1,
    };
    match resolve(&reference) {
        Resolution::Found(found) => {
            let Found {
                identity,
                location,
                header,
            } = *found;
            Ok(Link {
                identity,
                location,
                header,
                recorded: reference.format,
            })
        }
        Resolution::Missing { reason } => Err(End::Missing {
            place: reference.place,
            reason,
        }),
        Resolution::Unreadable { reason } => Err(End::Unreadable {
            place: reference.place,
            reason,
        }),
        Resolution::NotFollowed { reason } => Err(End::NotFollowed {
            place: reference.place,
            reason,
        }),
    }
}

/// Resolves a name in an image at `location`: a backing file, data file or extent.
///
/// QEMU's rules: a name with a protocol or an absolute path is used unchanged; a relative one is appended to the
/// directory of the referencing image's name. The path is not normalized, because the kernel may find links in it.
///
/// ```
/// use vmdisk_image::BackingReference;
/// use vmdisk_image::chain::{ResolvedName, place};
///
/// let base = BackingReference::from_bytes(b"../base.img");
/// assert_eq!(place(&"/srv/vm/top.qcow2".into(), &base), ResolvedName::Path("/srv/vm/../base.img".into()));
/// ```
#[must_use]
pub fn place(location: &Name, reference: &BackingReference) -> ResolvedName {
    match reference {
        BackingReference::Absolute(path) => ResolvedName::Path(path.clone()),
        BackingReference::Json(name) => ResolvedName::Json(name.clone()),
        BackingReference::Protocol { scheme, name } if scheme.as_bytes() == b"file" => {
            let path = &name.as_bytes()[b"file:".len()..];
            match path.first() {
                Some(b'/') => ResolvedName::Path(path.into()),
                Some(_) | None => ResolvedName::WorkingDirectory(path.into()),
            }
        }
        BackingReference::Protocol { scheme: _, name } => ResolvedName::Protocol(name.clone()),
        BackingReference::Relative(path) => relative(location, path),
    }
}

fn relative(location: &Name, path: &Name) -> ResolvedName {
    let join = |place: &[u8]| {
        let directory = place
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        Name::new([&place[..directory], path.as_bytes()].concat())
    };
    match BackingReference::from_bytes(location.as_bytes()) {
        BackingReference::Json(_) => ResolvedName::Unresolvable,
        BackingReference::Absolute(base) => ResolvedName::Path(join(base.as_bytes())),
        // An image without a name has an empty location.
        BackingReference::Relative(base) if base.is_empty() => ResolvedName::Unresolvable,
        BackingReference::Relative(base) => ResolvedName::Path(join(base.as_bytes())),
        BackingReference::Protocol { scheme, name } => {
            let after = scheme.as_bytes().len() + 1;
            let (protocol, rest) = name.as_bytes().split_at(after.min(name.as_bytes().len()));
            let joined = join(rest);
            if scheme.as_bytes() == b"file" {
                return place(
                    location,
                    &BackingReference::from_bytes(&[protocol, joined.as_bytes()].concat()),
                );
            }
            ResolvedName::Protocol(Name::new([protocol, joined.as_bytes()].concat()))
        }
    }
}
