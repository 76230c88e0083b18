//! Backing chains: which image stands on which, and where that ends.
//!
//! [`walk`] goes from an image to its backing file, to that one's, and so on. It opens nothing: a caller's function is
//! asked for each reference, and answers with the image's identity, its place and its header. Names are put together
//! here, by QEMU's rules and by text alone.
//!
//! ```
//! use std::collections::BTreeMap;
//! use vmdisk_image::chain::{End, Found, Place, Resolved, Top, walk};
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
//!     Place::Path(path) if files.contains_key(path.as_bytes()) => Resolved::Found(Box::new(Found {
//!         identity: path.as_bytes().to_vec(),
//!         location: path.clone(),
//!         header: header(path.as_bytes()),
//!     })),
//!     _ => Resolved::Missing { reason: "no such file".into() },
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

/// How many images a chain may have: libvirt refuses more (`backing chains more than 200 layers deep are not
/// supported`); QEMU has no bound of its own.
pub const MAX_IMAGES: usize = 200;

/// The image a chain begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top<I> {
    /// What tells this image from every other: device and inode number, or a canonical path.
    pub identity: I,
    /// The name it was opened by; relative backing files count from its directory.
    pub location: Name,
    /// Its header.
    pub header: Header,
    /// The format it is opened with; `None` where QEMU is left to probe.
    pub format: Option<ImageFormat>,
}

/// A question for the caller: where is this backing file, and what is in it?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The name as recorded.
    pub backing: &'a BackingReference,
    /// What the name comes to.
    pub place: Place,
    /// The recorded format.
    pub format: RecordedFormat,
    /// How many images stand above it.
    pub depth: usize,
}

/// Where a name leads, by text alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// A path, absolute or relative as the location of the referencing image is. Neither `..` nor links are resolved.
    Path(Name),
    /// `file:` with a relative path, which QEMU takes relative to its own working directory.
    WorkingDirectory(Name),
    /// Another protocol, with the whole name.
    Protocol(Name),
    /// `json:`, with the whole name.
    Json(Name),
    /// A relative name in an image that is not a file, which QEMU refuses.
    Unresolvable,
}

/// What an image says of its backing file's format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordedFormat {
    /// Nothing: QEMU probes, libvirt (6.0) refuses.
    None,
    /// A format known here.
    Known(ImageFormat),
    /// The name of a protocol driver, as `file` or `nbd`: the bytes as they come, which is raw.
    Protocol(Name),
    /// A name that is none of a format known here.
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
    /// What a name that an image records says.
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
pub enum Resolved<I> {
    /// The image is there.
    Found(Box<Found<I>>),
    /// There is no such image.
    Missing {
        /// Why not, for a person.
        reason: String,
    },
    /// The image is there and could not be read.
    Unreadable {
        /// Why not, for a person.
        reason: String,
    },
    /// The caller does not follow such a reference, or was told not to.
    NotFollowed {
        /// Why not, for a person.
        reason: String,
    },
}

/// An image that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<I> {
    /// What tells this image from every other.
    pub identity: I,
    /// The name it was opened by.
    pub location: Name,
    /// Its header.
    pub header: Header,
}

/// A chain, from the image that was asked for down to where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain<I> {
    /// The images, the top first; never empty, never more than [`MAX_IMAGES`].
    pub links: Vec<Link<I>>,
    /// Why there are no more.
    pub end: End,
}

/// An image in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<I> {
    /// What tells this image from every other.
    pub identity: I,
    /// The name it was opened by.
    pub location: Name,
    /// Its header.
    pub header: Header,
    /// The format the image above records for it; of the top, the one it is opened with.
    pub recorded: RecordedFormat,
}

impl<I> Link<I> {
    /// The format QEMU opens the image with; `None` for a name it has no driver for, as far as known here.
    #[must_use]
    pub fn opened_as(&self) -> Option<ImageFormat> {
        match &self.recorded {
            RecordedFormat::None => Some(self.header.probed_by_qemu()),
            RecordedFormat::Known(format) => Some(*format),
            RecordedFormat::Protocol(_) => Some(ImageFormat::Raw),
            RecordedFormat::Unknown(_) => None,
        }
    }

    /// Whether the image is opened with a format other than the one its header shows.
    ///
    /// Opened as raw, whoever reads it sees the header instead of the disk; opened as anything else, QEMU refuses.
    #[must_use]
    pub fn format_differs(&self) -> bool {
        self.opened_as() != Some(self.header.format())
    }
}

/// Where a chain ends, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// At an image without a backing file, or opened as raw, so that nobody looks for one.
    Base,
    /// At an image that is there already: a loop, which QEMU and libvirt refuse.
    Loop {
        /// Which of the links it leads back to.
        to: usize,
    },
    /// At a backing file that is not there.
    Missing {
        /// Where it would be.
        place: Place,
        /// The caller's reason.
        reason: String,
    },
    /// At a backing file that could not be read.
    Unreadable {
        /// Where it is.
        place: Place,
        /// The caller's reason.
        reason: String,
    },
    /// At a backing file the caller did not follow.
    NotFollowed {
        /// Where it would be.
        place: Place,
        /// The caller's reason.
        reason: String,
    },
    /// At the last link, which QEMU does not open with the format recorded for it.
    NotOpened,
    /// At the last link, whose relative backing file name has nothing to be relative to.
    Unresolvable,
    /// At [`MAX_IMAGES`]; there would be more.
    TooDeep,
}

/// Follows an image's backing files to the end.
///
/// `resolve` is called at most once for each link. The walk does not recurse.
pub fn walk<I, F>(top: Top<I>, mut resolve: F) -> Chain<I>
where
    I: Clone + Eq + Hash,
    F: FnMut(&Reference<'_>) -> Resolved<I>,
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
    resolve: &mut impl FnMut(&Reference<'_>) -> Resolved<I>,
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
        None if backing.is_raw => RecordedFormat::Known(ImageFormat::Raw),
        None => RecordedFormat::None,
    };
    let place = place(&link.location, backing.reference);
    if place == Place::Unresolvable {
        return Err(End::Unresolvable);
    }
    let reference = Reference {
        backing: backing.reference,
        place,
        format: recorded,
        depth: depth + 1,
    };
    match resolve(&reference) {
        Resolved::Found(found) => {
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
        Resolved::Missing { reason } => Err(End::Missing {
            place: reference.place,
            reason,
        }),
        Resolved::Unreadable { reason } => Err(End::Unreadable {
            place: reference.place,
            reason,
        }),
        Resolved::NotFollowed { reason } => Err(End::NotFollowed {
            place: reference.place,
            reason,
        }),
    }
}

/// Where a name in an image at `location` leads; for backing files, data files and extents alike.
///
/// QEMU's rules: a name with a protocol or an absolute path stands for itself; a relative one is put behind the last
/// slash of the referencing image's name, as it was opened. Nothing is cleaned up, as the kernel may see links there.
///
/// ```
/// use vmdisk_image::BackingReference;
/// use vmdisk_image::chain::{Place, place};
///
/// let base = BackingReference::from_bytes(b"../base.img");
/// assert_eq!(place(&"/srv/vm/top.qcow2".into(), &base), Place::Path("/srv/vm/../base.img".into()));
/// ```
#[must_use]
pub fn place(location: &Name, reference: &BackingReference) -> Place {
    match reference {
        BackingReference::Absolute(path) => Place::Path(path.clone()),
        BackingReference::Json(name) => Place::Json(name.clone()),
        BackingReference::Protocol { scheme, name } if scheme.as_bytes() == b"file" => {
            let path = &name.as_bytes()[b"file:".len()..];
            match path.first() {
                Some(b'/') => Place::Path(path.into()),
                Some(_) | None => Place::WorkingDirectory(path.into()),
            }
        }
        BackingReference::Protocol { scheme: _, name } => Place::Protocol(name.clone()),
        BackingReference::Relative(path) => relative(location, path),
    }
}

fn relative(location: &Name, path: &Name) -> Place {
    let join = |place: &[u8]| {
        let directory = place
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        Name::new([&place[..directory], path.as_bytes()].concat())
    };
    match BackingReference::from_bytes(location.as_bytes()) {
        BackingReference::Json(_) => Place::Unresolvable,
        BackingReference::Absolute(base) => Place::Path(join(base.as_bytes())),
        // An empty location is one of an image without a name.
        BackingReference::Relative(base) if base.is_empty() => Place::Unresolvable,
        BackingReference::Relative(base) => Place::Path(join(base.as_bytes())),
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
            Place::Protocol(Name::new([protocol, joined.as_bytes()].concat()))
        }
    }
}
