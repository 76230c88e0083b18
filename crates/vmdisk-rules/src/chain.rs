//! What the images of a disk stand on, as their headers say.

use vmdisk_rule::{Context, Missing};

use std::collections::HashSet;

use vmdisk_facts::path::Backing as Recorded;
use vmdisk_facts::{Fact, File, ImageHeader, NamedFile, named_file};
use vmdisk_fields::{DiskName, Phrase, phrase};
use vmdisk_model::{Backing, Disk, FieldPath, Format, Image, ImageField};

use crate::host;

/// The most images that a chain may have: libvirt refuses more.
pub(crate) const MOST_IMAGES: usize = 200;

/// The images of a disk from the last one that is written downward, as their headers say.
pub(crate) struct Chain<'a> {
    /// The disk.
    pub(crate) disk: &'a Disk,
    /// Where the last written image stands in the configuration.
    pub(crate) at: FieldPath,
    /// How many images are written above the first of the layers.
    pub(crate) written_above: usize,
    /// The images, the top first; none if the header of the first is not known to be what is written.
    pub(crate) layers: Vec<Layer<'a>>,
    /// Why there are no more.
    pub(crate) end: End<'a>,
}

/// An image of a chain.
pub(crate) struct Layer<'a> {
    /// Its path.
    pub(crate) path: String,
    /// Its header; `None` if it is opened as raw, so that the header would be the guest's.
    pub(crate) header: Option<&'a ImageHeader>,
}

/// Where a chain ends, and why.
pub(crate) enum End<'a> {
    /// At an image without a backing file, or one that is opened as raw.
    Base,
    /// At a backing file that was looked for and is not there.
    NotThere {
        /// Its path.
        path: String,
    },
    /// At a name that is no path on the host.
    Elsewhere {
        /// The name as it is recorded.
        recorded: &'a Recorded,
        /// Where it leads.
        named: NamedFile,
    },
    /// At an image that stands above already.
    Loop {
        /// Its path.
        path: String,
    },
    /// At [`MOST_IMAGES`], and there are more.
    TooDeep,
    /// Somebody would have to look.
    Unknown(Missing),
}

/// The chains of all disks whose lower images the headers decide.
///
/// A disk whose `<backingStore>` says everything has none, and neither has one whose last written image is of a format
/// that stands on nothing: libvirt (5.10) follows what is written and reads headers only below it.
pub(crate) fn chains<'a>(context: &Context<'a>) -> impl Iterator<Item = Chain<'a>> {
    context.images().filter_map(|(index, disk, image)| {
        let (depth, last) = image.chain().enumerate().last()?;
        let is_for_the_header =
            last.backing == Backing::Unspecified && last.format.is_some_and(Format::has_backing);
        if !is_for_the_header || image.creation.is_some() {
            return None;
        }
        let at = FieldPath::Image(index, depth, ImageField::Path);
        follow(context, disk, at, depth, last)
    })
}

fn follow<'a>(
    context: &Context<'a>,
    disk: &'a Disk,
    at: FieldPath,
    written_above: usize,
    top: &Image,
) -> Option<Chain<'a>> {
    if !top.is_headed_by_its_format() {
        return None;
    }
    let mut path = top.host_path()?.to_owned();
    let mut layers: Vec<Layer<'a>> = Vec::new();
    let mut seen = HashSet::new();
    let mut expected = top.format.map(Format::as_wire);
    let end = loop {
        let what = || format!("the header of {path}");
        let host = match context.host(what) {
            Ok(host) => host,
            Err(missing) => break End::Unknown(missing),
        };
        let Some(file) = host.file(&path) else {
            break End::Unknown(Missing::new(what(), "not collected"));
        };
        match Context::known(host::exists(host, &path), what) {
            Ok(Some(true)) => {}
            // That the image itself is missing is told of the image.
            Ok(Some(false) | None) if layers.is_empty() => return None,
            Ok(Some(false) | None) => break End::NotThere { path },
            Err(missing) => break End::Unknown(missing),
        }
        if !seen.insert(identity_of(file)) {
            break End::Loop { path };
        }
        if layers.len() + written_above == MOST_IMAGES {
            break End::TooDeep;
        }
        if expected == Some("raw") {
            layers.push(Layer { path, header: None });
            break End::Base;
        }
        let header = match Context::known(file.image.as_ref(), what) {
            Ok(Some(header)) => header,
            Ok(None) => break End::Base,
            Err(missing) => break End::Unknown(missing),
        };
        let format = header.format.value().map(String::as_str);
        if expected.is_none() && format == Some("raw") {
            layers.push(Layer { path, header: None });
            break End::Base;
        }
        // What is not what it is opened as is another rule's business, and its names are nobody's.
        if expected.is_some_and(|expected| format != Some(expected)) {
            break End::Base;
        }
        let backing = header.backing.as_ref();
        let above = path.clone();
        layers.push(Layer {
            path: above.clone(),
            header: Some(header),
        });
        let recorded = match Context::known(backing, || format!("what {above} stands on")) {
            Ok(Some(recorded)) => recorded,
            Ok(None) => break End::Base,
            Err(missing) => break End::Unknown(missing),
        };
        path = match named_file(&above, &recorded.path) {
            NamedFile::Path(path) => path,
            named @ (NamedFile::Protocol(_) | NamedFile::Json | NamedFile::Unresolvable) => {
                break End::Elsewhere { recorded, named };
            }
        };
        expected = match &recorded.format {
            // Old tools recorded the protocol, which means the bytes as they come.
            Fact::Known(format) if matches!(format.as_str(), "file" | "host_device") => Some("raw"),
            Fact::Known(format) => Some(format),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
        };
    };
    Some(Chain {
        disk,
        at,
        written_above,
        layers,
        end,
    })
}

/// One value for all names of a file: symbolic links and hard links are other names of it.
fn identity_of(file: &File) -> String {
    match (&file.inode, &file.real_path) {
        (Fact::Known(inode), _) => inode.to_string(),
        (_, Fact::Known(real)) => real.clone(),
        (_, _) => file.path.clone(),
    }
}

impl Chain<'_> {
    /// The number of images, those that are written included.
    pub(crate) fn length(&self) -> usize {
        self.written_above + self.layers.len()
    }

    /// How a layer is called in a title: ``the image of `vda` ``, ``an image below `vda` ``.
    pub(crate) fn name_of(&self, layer: usize) -> Phrase {
        let disk = self.disk_name();
        if self.written_above + layer == 0 {
            phrase!("the image of {disk}", disk)
        } else {
            phrase!("an image below {disk}", disk)
        }
    }

    /// The name of the disk.
    pub(crate) fn disk_name(&self) -> DiskName {
        DiskName(self.at.disk().unwrap_or_default())
    }

    /// Where an image below a layer would be written.
    pub(crate) fn below(&self, layer: usize) -> FieldPath {
        let depth = self.written_above + layer + 1;
        FieldPath::Image(self.disk_name().0, depth, ImageField::Image)
    }

    /// What kept the chain from being followed to its end.
    pub(crate) fn unknown(&self) -> Option<&Missing> {
        match &self.end {
            End::Unknown(missing) => Some(missing),
            _ => None,
        }
    }
}
