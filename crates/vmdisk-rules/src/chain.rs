//! The chain of images below a disk, according to the image headers.

use vmdisk_rule::{Context, Missing};

use std::borrow::Cow;
use std::collections::HashSet;

use vmdisk_facts::path::BackingFact as Recorded;
use vmdisk_facts::{Fact, File, ImageHeader, NamedFile, named_file};
use vmdisk_fields::{Phrase, phrase};
use vmdisk_model::{Backing, Disk, FieldPath, Format, Image, ImageField};

use crate::host;

/// The maximum number of images in a chain that libvirt accepts.
pub(crate) const MAX_IMAGES: usize = 200;

/// The images of a disk from the last configured one downward, according to their headers.
pub(crate) struct Chain<'a> {
    /// The disk.
    pub(crate) disk: &'a Disk,
    /// The index of the disk.
    pub(crate) index: usize,
    /// The number of configured images above the first of the layers.
    pub(crate) written_above: usize,
    /// The images, the top first; empty if the header of the first is not known to match the configuration.
    pub(crate) layers: Vec<Layer<'a>>,
    /// The reason why the chain ends.
    pub(crate) end: End<'a>,
}

/// An image of a chain.
pub(crate) struct Layer<'a> {
    /// Its path.
    pub(crate) path: Cow<'a, str>,
    /// Its header; `None` if the image is opened as raw, because then the guest controls these bytes.
    pub(crate) header: Option<&'a ImageHeader>,
}

/// The end of a chain, and the reason.
pub(crate) enum End<'a> {
    /// An image without a backing file, or one that is opened as raw.
    Base,
    /// A backing file that does not exist.
    NotThere {
        /// Its path.
        path: Cow<'a, str>,
    },
    /// A name that is not a path on the host.
    Elsewhere {
        /// The name as recorded in the header.
        recorded: &'a Recorded,
        /// The target of the name.
        named: NamedFile,
    },
    /// An image that is already in the chain.
    Loop {
        /// Its path.
        path: Cow<'a, str>,
    },
    /// [`MAX_IMAGES`] is reached, and there are more.
    TooDeep,
    /// A required fact is missing.
    Unknown(Missing),
}

/// The chains of all disks whose lower images are determined by headers.
pub(crate) fn chains<'a>(context: &Context<'a>) -> impl Iterator<Item = Chain<'a>> {
    let images = context.images();
    images.filter_map(|(index, disk, image)| chain_of(context, index, disk, image))
}

/// The chain of a disk whose lower images are determined by headers.
///
/// Disks without one: those whose `<backingStore>` elements list every image, and those whose last configured image has
/// a format without backing files. libvirt (5.10) follows the configuration and reads headers only below it.
pub(crate) fn chain_of<'a>(
    context: &Context<'a>,
    index: usize,
    disk: &'a Disk,
    image: &'a Image,
) -> Option<Chain<'a>> {
    let (depth, last) = image.chain().enumerate().last()?;
    let is_for_the_header =
        last.backing == Backing::Unspecified && last.format.is_some_and(Format::has_backing);
    if !is_for_the_header || image.creation.is_some() {
        return None;
    }
    follow(context, disk, index, depth, last)
}

/// Ten rules ask for the chain of each disk, mostly without facts: nothing is copied before the first header is read.
fn follow<'a>(
    context: &Context<'a>,
    disk: &'a Disk,
    index: usize,
    written_above: usize,
    top: &'a Image,
) -> Option<Chain<'a>> {
    if !top.is_headed_by_its_format() {
        return None;
    }
    let mut path = Cow::Borrowed(top.host_path()?);
    let mut layers: Vec<Layer<'a>> = Vec::new();
    let mut seen = HashSet::new();
    let mut expected = top.format.map(Format::as_str);
    let end = loop {
        let what = || format!("the header of {path}");
        let host = match context.host(what) {
            Ok(host) => host,
            Err(missing) => break End::Unknown(missing),
        };
        let Some(file) = host.file(&path) else {
            break End::Unknown(Missing::new(what(), Missing::NOT_COLLECTED));
        };
        match Context::known(host::exists(host, &path), what) {
            Ok(Some(true)) => {}
            // `source-missing` reports a missing top image.
            Ok(Some(false) | None) if layers.is_empty() => return None,
            Ok(Some(false) | None) => break End::NotThere { path },
            Err(missing) => break End::Unknown(missing),
        }
        if !seen.insert(identity_of(file)) {
            break End::Loop { path };
        }
        if layers.len() + written_above == MAX_IMAGES {
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
        // Another rule reports a format mismatch; the names in such a header are meaningless.
        if expected.is_some_and(|expected| format != Some(expected)) {
            break End::Base;
        }
        let backing = header.backing.as_ref();
        let above = path.clone();
        layers.push(Layer {
            path: above.clone(),
            header: Some(header),
        });
        let recorded = match Context::known(backing, || format!("the backing file of {above}")) {
            Ok(Some(recorded)) => recorded,
            Ok(None) => break End::Base,
            Err(missing) => break End::Unknown(missing),
        };
        path = match named_file(&above, &recorded.path) {
            NamedFile::Path(path) => Cow::Owned(path),
            named @ (NamedFile::Protocol(_) | NamedFile::Json | NamedFile::Unresolvable) => {
                break End::Elsewhere { recorded, named };
            }
        };
        expected = match &recorded.format {
            // Old tools recorded the protocol instead, which means raw.
            Fact::Known(format) if matches!(format.as_str(), "file" | "host_device") => Some("raw"),
            Fact::Known(format) => Some(format),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
        };
    };
    Some(Chain {
        disk,
        index,
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
    /// The number of images, including the configured ones.
    pub(crate) fn length(&self) -> usize {
        self.written_above + self.layers.len()
    }

    /// The name of a layer in a title: ``the image of `vda` ``, ``an image below `vda` ``.
    pub(crate) fn name_of(&self, layer: usize) -> Phrase {
        if self.written_above + layer == 0 {
            phrase!("the image of {disk}")
        } else {
            phrase!("an image below {disk}")
        }
    }

    /// The field of the last configured image.
    pub(crate) fn at(&self) -> FieldPath {
        FieldPath::Image(self.index, self.written_above, ImageField::Path)
    }

    /// The field of an image below a layer, if it were configured.
    pub(crate) fn below(&self, layer: usize) -> FieldPath {
        let depth = self.written_above + layer + 1;
        FieldPath::Image(self.index, depth, ImageField::Image)
    }

    /// The reason why the chain could not be followed to its end.
    pub(crate) fn unknown(&self) -> Option<&Missing> {
        match &self.end {
            End::Unknown(missing) => Some(missing),
            _ => None,
        }
    }
}
