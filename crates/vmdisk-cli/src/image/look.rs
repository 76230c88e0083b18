//! Looks at an image and, if asked to, at the files it names.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use vmdisk::image::chain::{self, End, Found, Reference, Resolution, ResolvedName, Top};
use vmdisk::image::{BackingReference, FileRole, Header, ImageFormat, Name};
use vmdisk_collect::{FileIdentity, ImageFile, ImageFileError, read_image};

/// How long to wait for one file: a hung network mount must not hang the command.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An image and its backing chain.
pub(crate) struct Image {
    /// The images, the top first; only the top where nothing was to be followed.
    pub(crate) links: Vec<Link>,
    /// Why there are no more.
    pub(crate) end: End,
    /// Whether the files it names were looked at.
    pub(crate) is_followed: bool,
}

/// One image of a chain.
pub(crate) struct Link {
    pub(crate) location: Name,
    pub(crate) identity: FileIdentity,
    pub(crate) header: Header,
    /// The format it is opened with by the image above; of the top, its own.
    pub(crate) opened_as: Option<ImageFormat>,
    /// The format the image above records, if it records one.
    pub(crate) recorded: Option<Name>,
    pub(crate) format_differs: bool,
    pub(crate) length: Option<u64>,
    pub(crate) allocated: Option<u64>,
    /// The files that hold its data.
    pub(crate) data: Vec<DataFile>,
}

/// A file that holds the data of an image.
pub(crate) struct DataFile {
    pub(crate) reference: BackingReference,
    pub(crate) place: ResolvedName,
    /// The result of reading it; `None` if it was not read.
    pub(crate) found: Option<Result<ImageFile, ImageFileError>>,
}

/// Looks at files, until one does not answer.
struct ImageReader {
    has_timed_out: bool,
    seen: HashMap<FileIdentity, (Option<u64>, Option<u64>)>,
}

impl ImageReader {
    fn read(&mut self, path: &Path) -> Result<ImageFile, ImageFileError> {
        if self.has_timed_out {
            return Err(ImageFileError::Refused(
                "not read, because another file timed out".to_owned(),
            ));
        }
        let read = read_image(path, TIMEOUT);
        match &read {
            Ok(file) => {
                self.seen
                    .insert(file.identity, (file.length, file.allocated));
            }
            Err(error) => self.has_timed_out = matches!(error, ImageFileError::Timeout(_)),
        }
        read
    }
}

/// Looks at an image, and at the files it names if `is_followed`.
pub(crate) fn look(path: &Path, is_followed: bool) -> Result<Image, ImageFileError> {
    let mut reader = ImageReader {
        has_timed_out: false,
        seen: HashMap::new(),
    };
    let file = reader.read(path)?;
    let top = Top {
        identity: file.identity,
        location: Name::from(path.as_os_str().as_bytes()),
        // The format given for the image elsewhere is unknown here; the request is about its own header.
        format: Some(file.header.format()),
        header: file.header,
    };
    let walked = chain::walk(top, |reference| {
        if is_followed {
            follow(&mut reader, reference)
        } else {
            Resolution::NotFollowed {
                reason: "not followed; use --chain".to_owned(),
            }
        }
    });
    let mut links: Vec<Link> = walked
        .links
        .into_iter()
        .map(|link| {
            let (length, allocated) = reader.seen.get(&link.identity).copied().unwrap_or_default();
            Link {
                opened_as: link.opened_as(),
                format_differs: link.format_differs(),
                recorded: recorded_name(&link.recorded),
                location: link.location,
                identity: link.identity,
                header: link.header,
                length,
                allocated,
                data: Vec::new(),
            }
        })
        .collect();
    for link in &mut links {
        let references = link
            .header
            .files()
            .filter(|(role, _)| *role == FileRole::Data && uses_data_files(&link.header))
            .map(|(_, reference)| reference.clone());
        link.data = references
            .map(|reference| {
                let place = chain::place(&link.location, &reference);
                let found = match &place {
                    ResolvedName::Path(name) if is_followed => Some(reader.read(as_path(name))),
                    _ => None,
                };
                DataFile {
                    reference,
                    place,
                    found,
                }
            })
            .collect();
    }
    Ok(Image {
        links,
        end: walked.end,
        is_followed,
    })
}

/// Whether QEMU opens the data files that a header names; qcow2 has a feature bit for that.
fn uses_data_files(header: &Header) -> bool {
    match header {
        Header::Qcow2(qcow2) => qcow2.incompatible.external_data_file(),
        _ => true,
    }
}

fn follow(reader: &mut ImageReader, reference: &Reference<'_>) -> Resolution<FileIdentity> {
    let name = match &reference.place {
        ResolvedName::Path(name) => name,
        ResolvedName::WorkingDirectory(_) => {
            return not_followed("it is relative to the working directory of QEMU");
        }
        ResolvedName::Protocol(_) => return not_followed("it is not a file on this host"),
        ResolvedName::Json(_) => return not_followed("block device trees in json: are not read"),
        ResolvedName::Unresolvable => {
            return not_followed("there is nothing it could be relative to");
        }
    };
    match reader.read(as_path(name)) {
        Ok(file) => Resolution::Found(Box::new(Found {
            identity: file.identity,
            location: name.clone(),
            header: file.header,
        })),
        Err(error @ ImageFileError::Missing) => Resolution::Missing {
            reason: error.to_string(),
        },
        Err(error) => Resolution::Unreadable {
            reason: error.to_string(),
        },
    }
}

fn not_followed(reason: &str) -> Resolution<FileIdentity> {
    Resolution::NotFollowed {
        reason: reason.to_owned(),
    }
}

fn as_path(name: &Name) -> &Path {
    Path::new(OsStr::from_bytes(name.as_bytes()))
}

fn recorded_name(recorded: &chain::RecordedFormat) -> Option<Name> {
    match recorded {
        chain::RecordedFormat::None => None,
        chain::RecordedFormat::Known(format) => Some(format.to_string().as_str().into()),
        chain::RecordedFormat::Protocol(name) | chain::RecordedFormat::Unknown(name) => {
            Some(name.clone())
        }
    }
}
