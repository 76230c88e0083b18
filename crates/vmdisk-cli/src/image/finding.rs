//! Findings about an image and its backing chain.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use vmdisk::Severity;
use vmdisk::image::chain::{End, MAX_IMAGES, ResolvedName, place};
use vmdisk::image::{BackingReference, Defect, DefectKind, Effect, FileRole, Header, ImageFormat};
use vmdisk::plan::shell_word;
use vmdisk_collect::{ImageFileError, without_secrets};

use super::look::{DataFile, Image, Link};

/// Longer chains are reported: each layer is another table to look up and another cache.
pub(crate) const LONG_CHAIN: usize = 8;

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(crate) struct ImageFinding {
    /// What kind of thing; `header` is a defect of a header.
    pub(crate) name: &'static str,
    /// `error`, `warning` or `advice`.
    #[serde(serialize_with = "word")]
    #[schemars(with = "String")]
    pub(crate) severity: Severity,
    /// The image it is about.
    pub(crate) image: String,
    /// Where in it, in bytes.
    pub(crate) offset: Option<u64>,
    /// The mistake.
    pub(crate) message: String,
    /// What follows.
    pub(crate) note: Option<String>,
    /// The remedy.
    pub(crate) help: Option<String>,
}

fn word<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.as_str())
}

impl ImageFinding {
    fn new(name: &'static str, severity: Severity, link: &Link, message: String) -> Self {
        ImageFinding {
            name,
            severity,
            image: link.location.to_string(),
            offset: None,
            message,
            note: None,
            help: None,
        }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Everything there is to say, the top image first.
pub(crate) fn about(image: &Image) -> Vec<ImageFinding> {
    let mut findings = Vec::new();
    for (depth, link) in image.links.iter().enumerate() {
        findings.extend(
            link.header
                .defects()
                .iter()
                .map(|defect| of_defect(link, defect)),
        );
        if depth > 0 && link.format_differs {
            findings.push(of_format(&image.links[depth - 1], link));
        }
        if link.header.format() == ImageFormat::Raw && link.length == Some(0) {
            findings.push(of_empty(link));
        }
        of_backing_format(link, &mut findings);
        of_protocols(link, &mut findings);
        for data in &link.data {
            of_data(image, link, data, &mut findings);
        }
    }
    of_end(image, &mut findings);
    if image.links.len() > LONG_CHAIN {
        let top = &image.links[0];
        let message = format!("the chain has {} images", image.links.len());
        findings.push(
            ImageFinding::new("chain-too-long", Severity::Warning, top, message)
                .note("a read of a block that was never written looks into each of them")
                .help("merge the images that are not needed separately: `qemu-img commit`, or `virsh blockcommit` while the guest runs"),
        );
    }
    findings
}

/// As the rule `image-empty`, for a file that no guest uses yet.
fn of_empty(link: &Link) -> ImageFinding {
    let message = "the image is empty (0 bytes)".to_owned();
    ImageFinding::new("image-empty", Severity::Warning, link, message)
        .note("the guest sees a disk without sectors")
        .help("copy the image again, or give the file a size with `truncate -s SIZE FILE`")
}

fn of_defect(link: &Link, defect: &Defect) -> ImageFinding {
    let (severity, note) = match defect.effect() {
        Effect::Refused => (Severity::Error, Some("QEMU does not open the image")),
        Effect::ReadOnly => (
            Severity::Error,
            Some("QEMU opens the image for reading only"),
        ),
        Effect::Damaged => (
            Severity::Error,
            Some("QEMU opens the image, and the guest reads wrong data"),
        ),
        Effect::Noted if is_oddity(&defect.kind) => (Severity::Advice, None),
        Effect::Noted => (Severity::Warning, None),
    };
    let mut finding = ImageFinding::new("header", severity, link, defect.kind.to_string());
    finding.offset = Some(defect.offset);
    finding.note = note.map(str::to_owned);
    finding.help = help(&defect.kind).map(str::to_owned);
    finding
}

/// Whether a defect harms nobody.
fn is_oddity(kind: &DefectKind) -> bool {
    matches!(
        kind,
        DefectKind::HeaderLengthUnaligned { .. }
            | DefectKind::ExtensionRepeated { .. }
            | DefectKind::TooManyExtensions { .. }
            | DefectKind::FeatureName
            | DefectKind::DataFileUnused
            | DefectKind::NotRead { .. }
            | DefectKind::SnapshotsNotRead { .. }
    )
}

fn help(kind: &DefectKind) -> Option<&'static str> {
    let is_cut = matches!(
        kind,
        DefectKind::TruncatedHeader { .. }
            | DefectKind::TableEndsImage { .. }
            | DefectKind::TableBeyondEnd { .. }
    );
    if *kind == DefectKind::Corrupt {
        Some(
            "`qemu-img check` lists the damage; copy the image before `qemu-img check -r all`, or restore a backup",
        )
    } else if *kind == DefectKind::Dirty {
        Some("if the guest is not running, run `qemu-img check -r leaks`")
    } else if is_cut {
        Some("the file is truncated, for example by an interrupted copy: copy it again")
    } else {
        None
    }
}

fn of_format(above: &Link, link: &Link) -> ImageFinding {
    let found = link.header.format();
    let says = match (&link.recorded, link.opened_as) {
        (Some(recorded), _) => format!("the image above records {recorded}"),
        (None, Some(format)) => format!("QEMU probes it as {format}"),
        (None, None) => "QEMU does not know its format".to_owned(),
    };
    let finding = ImageFinding::new(
        "backing-format-mismatch",
        Severity::Error,
        link,
        format!("the header is {found}, and {says}"),
    );
    let finding = match link.opened_as {
        Some(vmdisk::image::ImageFormat::Raw) => finding
            .note("the image above shows the bytes of the container instead of the disk in it"),
        Some(_) | None => finding.note("QEMU does not open the chain"),
    };
    match found.qemu_name() {
        Some(format) => finding.help(format!(
            "`qemu-img rebase -u -F {format} -b BACKING {}` records another, if the header is right",
            shell_word(&above.location.to_string())
        )),
        None => finding,
    }
}

/// Only qcow2 has a place for the format.
fn of_backing_format(link: &Link, findings: &mut Vec<ImageFinding>) {
    let Header::Qcow2(qcow2) = &link.header else {
        return;
    };
    if let (Some(backing), None) = (&qcow2.backing_file, &qcow2.backing_format) {
        let message = format!(
            "the format of the backing file {} is not recorded",
            shown(backing)
        );
        findings.push(
            ImageFinding::new("backing-format-missing", Severity::Warning, link, message)
                .note("libvirt (6.0 and later) refuses a chain that continues below it; QEMU probes its first bytes, which a guest may have written")
                .help(format!(
                    "run `qemu-img rebase -u -F FORMAT -b BACKING {}` with the format that the backing file was created with",
                    shell_word(&link.location.to_string())
                )),
        );
    }
}

fn of_protocols(link: &Link, findings: &mut Vec<ImageFinding>) {
    for (role, reference) in link.header.files() {
        let what = match role {
            FileRole::Backing => "backing file",
            FileRole::Data => "data file",
        };
        let where_to = match place(&link.location, reference) {
            ResolvedName::Protocol(_) => "leads to another protocol",
            ResolvedName::Json(_) => {
                "is a block device tree that can name any file, host or driver"
            }
            ResolvedName::WorkingDirectory(_) => "is relative to the working directory of QEMU",
            ResolvedName::Path(_) | ResolvedName::Unresolvable => continue,
        };
        let message = format!("the {what} {} {where_to}", shown(reference));
        findings.push(
            ImageFinding::new("backing-protocol-url", Severity::Warning, link, message)
                .note("the creator of the image decides what the host opens")
                .help("open it only if you trust the creator of the image"),
        );
    }
}

fn of_data(image: &Image, link: &Link, data: &DataFile, findings: &mut Vec<ImageFinding>) {
    let name = shown(&data.reference);
    match &data.found {
        Some(Ok(file)) => {
            if let Some(other) = image
                .links
                .iter()
                .find(|other| other.identity == file.identity)
            {
                let message = format!(
                    "the data file {name} is the image {} itself",
                    other.location
                );
                findings.push(
                    ImageFinding::new("data-file-loop", Severity::Error, link, message)
                        .note("writing the guest's data destroys the header"),
                );
            }
        }
        Some(Err(error)) => {
            let what = match error {
                ImageFileError::Missing => "data-file-missing",
                _ => "data-file-unreadable",
            };
            let message = format!("the data file {name} could not be read: {error}");
            findings.push(
                ImageFinding::new(what, Severity::Error, link, message)
                    .note("the image holds no data without it"),
            );
        }
        None => {}
    }
}

fn of_end(image: &Image, findings: &mut Vec<ImageFinding>) {
    let Some(last) = image.links.last() else {
        return;
    };
    let error = |name, message| ImageFinding::new(name, Severity::Error, last, message);
    findings.push(match &image.end {
        // A different format is reported for its image.
        End::Base | End::NotOpened => return,
        End::Loop { to } => {
            let above = &image.links[*to].location;
            let message = format!(
                "the backing file is {above}, which is above it in the chain: the chain is a loop"
            );
            error("backing-loop", message).note("QEMU and libvirt refuse it")
        }
        End::Missing { place, reason } => {
            let message = format!("the backing file {} is missing: {reason}", at(place));
            error("backing-missing", message)
                .note("QEMU does not open the image")
                .help("restore it, or run `qemu-img rebase -u` with its new path; relative names start at the directory of the image")
        }
        End::Unreadable { place, reason } => {
            let message = format!("the backing file {} could not be read: {reason}", at(place));
            error("backing-unreadable", message)
        }
        End::Unresolvable => {
            let message = "the name of the backing file is relative, but to no known directory";
            error("backing-unresolvable", message.to_owned())
        }
        End::TooDeep => {
            let message = format!("the chain has more than {MAX_IMAGES} images");
            error("chain-too-deep", message)
                .note("libvirt refuses more; the images below were not read")
        }
        // Protocols are reported for the image that names them.
        End::NotFollowed { place, reason }
            if image.is_followed && matches!(place, ResolvedName::Path(_)) =>
        {
            let message = format!("the backing file {} was not followed: {reason}", at(place));
            error("backing-unreadable", message)
        }
        End::NotFollowed { .. } => return,
    });
}

/// A name without the credentials in it.
pub(crate) fn shown(reference: &BackingReference) -> String {
    without_secrets(&reference.name().to_string())
}

/// A place for people.
pub(crate) fn at(place: &ResolvedName) -> String {
    match place {
        ResolvedName::Path(name)
        | ResolvedName::WorkingDirectory(name)
        | ResolvedName::Protocol(name)
        | ResolvedName::Json(name) => without_secrets(&name.to_string()),
        ResolvedName::Unresolvable => "(nowhere)".to_owned(),
    }
}
