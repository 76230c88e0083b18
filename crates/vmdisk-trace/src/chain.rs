//! The images below a disk that its configuration does not list: QEMU finds them in the headers.

use vmdisk_facts::path::{BackingFact, FileKind};
use vmdisk_facts::{Fact, File, NamedFile, named_file};
use vmdisk_model::{Backing, Format, Image, Protocol};
use vmdisk_rule::image_facts::header;
use vmdisk_rule::{Context, Missing};

use crate::backend::undescribed;
use crate::path::Layer;
use crate::tracer::{Results, Tracer, collect, not_written, unknown};

/// QEMU and libvirt refuse longer chains.
const MAX_IMAGES: usize = 200;

/// What lies below an image.
pub(crate) enum Below<'a> {
    /// No image.
    Nothing,
    /// An image of the configuration.
    Configured(&'a Image),
    /// An image that the header names.
    Recorded(&'a BackingFact),
    /// The header is not known.
    Unknown(Missing),
}

impl<'a> Tracer<'a> {
    /// What lies below an image of the configuration.
    pub(crate) fn below(&self, image: &'a Image, format: Format) -> Below<'a> {
        match &image.backing {
            Backing::Image(below) => return Below::Configured(below),
            Backing::Terminated => return Below::Nothing,
            Backing::Unspecified => {}
        }
        if !format.has_backing() || image.creation.is_some() {
            return Below::Nothing;
        }
        match image.host_path() {
            Some(path) if image.is_headed_by_its_format() => self.recorded(path, format),
            Some(path) => Below::Unknown(Missing::new(
                format!("the header of {path}"),
                "the image begins elsewhere in it",
            )),
            None => Below::Unknown(Missing::new(
                "the header of the image",
                "it is not a file on this host",
            )),
        }
    }

    /// What lies below an image according to its header.
    fn recorded(&self, path: &str, format: Format) -> Below<'a> {
        if !format.has_backing() {
            return Below::Nothing;
        }
        let found = header(self.context, path).and_then(|header| {
            let missing = || Missing::new(format!("the header of {path}"), "the image is missing");
            let header = header.ok_or_else(missing)?;
            let found = header.format.value().map(String::as_str);
            // The names in the header of another format mean nothing to this one.
            if found.is_some_and(|found| found != format.as_str()) {
                return Ok(None);
            }
            Context::known(header.backing.as_ref(), || {
                format!("the backing file of {path}")
            })
        });
        match found {
            Ok(Some(recorded)) => Below::Recorded(recorded),
            Ok(None) => Below::Nothing,
            Err(missing) => Below::Unknown(missing),
        }
    }

    /// Adds the images that headers name, from the backing file of the image at `path` on.
    pub(crate) fn recorded_chain(
        &mut self,
        above: usize,
        path: &'a str,
        recorded: &'a BackingFact,
        depth: usize,
    ) {
        let Ok(host) = self.context.host(String::new) else {
            return;
        };
        let (mut above, mut path, mut recorded) = (above, path, recorded);
        let identity_of = |path: &str| {
            host.identity(path)
                .known()
                .map_or_else(|| path.to_owned(), |it| format!("{it:?}"))
        };
        let mut seen = vec![identity_of(path)];
        for depth in depth..MAX_IMAGES {
            let below = match named_file(path, &recorded.path) {
                NamedFile::Path(below) => below,
                NamedFile::Protocol(_) | NamedFile::Json | NamedFile::Unresolvable => {
                    let results = from_backing(undescribed(&recorded.path, &decides(path)));
                    self.add(
                        Some(above),
                        Layer::Unknown,
                        &*recorded.path,
                        Vec::new(),
                        results,
                    );
                    return;
                }
            };
            let Some(file) = host.file(&below) else {
                let results = from_backing(not_collected(&below));
                self.add(Some(above), Layer::Unknown, below, Vec::new(), results);
                return;
            };
            let identity = identity_of(&file.path);
            // `chain-too-long` reports a loop.
            if seen.contains(&identity) {
                return;
            }
            seen.push(identity);
            let Some(format) = format_of(recorded, file) else {
                let results = from_backing(undescribed(&below, &decides(path)));
                self.add(Some(above), Layer::Unknown, below, Vec::new(), results);
                return;
            };
            let image = Image::new(Some(format), protocol_of(file));
            let next = self.recorded(&file.path, format);
            let number = self.format(above, &image, format, depth, &next);
            let storage = self.host_storage(number, &image, &file.path);
            self.steps[storage].image = Some(depth);
            self.recorded_data_file(number, &file.path, format);
            let Below::Recorded(next) = next else {
                return;
            };
            (above, path, recorded) = (number, &file.path, next);
        }
    }

    /// Adds the external data file that a header names.
    pub(crate) fn recorded_data_file(&mut self, above: usize, path: &'a str, format: Format) {
        let (Format::Qcow2, Ok(host)) = (format, self.context.host(String::new)) else {
            return;
        };
        let Ok(Some(header)) = header(self.context, path) else {
            return;
        };
        let Fact::Known(name) = &header.data_file else {
            return;
        };
        let results = match named_file(path, name) {
            NamedFile::Path(data) => match host.file(&data) {
                Some(file) => {
                    let image = Image::new(Some(Format::Raw), protocol_of(file));
                    self.host_storage(above, &image, &file.path);
                    return;
                }
                None => not_collected(&data),
            },
            _ => undescribed(name, &decides(path)),
        };
        self.add(Some(above), Layer::Unknown, &**name, Vec::new(), results);
    }
}

fn decides(path: &str) -> String {
    format!("the header of {path}")
}

/// Storage that no fact describes.
fn not_collected(path: &str) -> Results {
    let missing = Missing::new(format!("what {path} is"), Missing::NOT_COLLECTED);
    std::array::from_fn(|_| unknown(missing.clone(), collect(&[], path)))
}

/// The results at a backing image: only reads reach it.
fn from_backing([read, ..]: Results) -> Results {
    [read, not_written(), not_written(), not_written()]
}

/// The recorded format of a backing file, or the format that QEMU probes.
fn format_of(recorded: &BackingFact, file: &File) -> Option<Format> {
    match &recorded.format {
        // Old tools recorded the protocol instead, which means raw.
        Fact::Known(format) if matches!(format.as_str(), "file" | "host_device") => {
            Some(Format::Raw)
        }
        Fact::Known(format) => Format::of_qemu_driver(format),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => {
            let header = file.image.value()?;
            let probed = header.probed.value().or(header.format.value())?;
            Format::of_qemu_driver(probed)
        }
    }
}

fn protocol_of(file: &File) -> Protocol {
    match file.kind.value() {
        Some(FileKind::Block) => Image::host_device(&*file.path).protocol,
        _ => Protocol::File {
            path: file.path.clone(),
        },
    }
}
