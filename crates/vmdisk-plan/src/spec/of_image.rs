//! From the source of a disk that exists to the backend of a spec.

use vmdisk_fields::Label;
use vmdisk_model::{
    BackendSource, Backing, Device, Disk, DiskField, FieldPath, Format, Image, ImageField,
    Protocol, Switch, VhostUserSocket,
};

use super::dropped::DroppedFields;
use super::of_network::network_of;
use super::{
    BackendSpec, BackingSpec, DeviceAccess, DeviceSpec, DirectorySpec, EmptySpec, EncryptionSpec,
    NvmeSpec, Qcow2Spec, RawSpec, VhostUserBlkSpec, VhostVdpaSpec, VolumeSpec,
};

/// The backend of a disk; `None` if no spec can express it.
pub(super) fn backend_of(
    nth: usize,
    disk: &Disk,
    report: &mut DroppedFields,
) -> Option<BackendSpec> {
    let image = match &disk.backend.source {
        BackendSource::Image(image) => image,
        BackendSource::VhostUser(socket) => {
            return Some(vhost_user_of(nth, socket, report).into());
        }
        BackendSource::Empty => {
            if matches!(
                disk.frontend.effective_device(),
                Device::Cdrom | Device::Floppy
            ) {
                return Some(EmptySpec {}.into());
            }
            let at = FieldPath::Disk(nth, DiskField::Source);
            report.report_dropped(at, "a disk without a source", true);
            return None;
        }
    };
    let Image {
        format,
        protocol,
        backing: _,    // with what is inside
        data_file: _,  // the same
        encryption: _, // the same
        slice,
        authentication: _, // with the server
        reservations,
        fd_group,
        metadata_cache_size: _, // of images below
        creation: _,            // the image exists
        made_as: _,             // the same
    } = &**image;
    let at = |field| FieldPath::Image(nth, 0, field);
    for (field, is_set, what) in [
        (ImageField::Slice, slice.is_some(), "a part of a file"),
        (
            ImageField::FdGroup,
            fd_group.is_some(),
            "an image with passed file descriptors",
        ),
    ] {
        if is_set {
            report.report_dropped(at(field), what, true);
            return None;
        }
    }
    if reservations.is_some() {
        let what = "the helper for persistent reservations";
        report.report_dropped(at(ImageField::Reservations), what, false);
    }
    let inside = inside_of(nth, image, report)?;
    if let Protocol::Network(source) = protocol {
        if inside != Inside::default() {
            let what = "encryption or a data file of an image behind a server";
            report.report_dropped(at(ImageField::Encryption), what, true);
            return None;
        }
        return network_of(nth, disk, image, source, report).map(BackendSpec::from);
    }
    let is_lun = disk.frontend.effective_device() == Device::Lun;
    let spec = storage_of(protocol, *format, is_lun, inside);
    spec.map_err(|(field, what)| report.report_dropped(at(field), what, true))
        .ok()
}

/// Encryption, data file and backing images, as a spec has them.
#[derive(Default, PartialEq)]
struct Inside {
    encryption: Option<EncryptionSpec>,
    data_file: Option<String>,
    backing_chain: Option<Vec<BackingSpec>>,
}

/// Encryption, data file and backing images; `None` if no spec can express them.
fn inside_of(nth: usize, image: &Image, report: &mut DroppedFields) -> Option<Inside> {
    let at = |field| FieldPath::Image(nth, 0, field);
    let mut inside = Inside::default();
    if let Some(encryption) = &image.encryption {
        inside.encryption = EncryptionSpec::of_model(encryption);
        if inside.encryption.is_none() {
            let what = "an image that is not encrypted with LUKS and one secret of libvirt";
            report.report_dropped(at(ImageField::Encryption), what, true);
            return None;
        }
    }
    if let Some(data_file) = &image.data_file {
        let Some(path) = plain_file(data_file) else {
            let what = "an image whose data is not in a plain file";
            report.report_dropped(at(ImageField::DataFile), what, true);
            return None;
        };
        inside.data_file = Some(path.to_owned());
    }
    if image.format == Some(Format::Qcow2) && image.host_path().is_some() {
        inside.backing_chain = chain_of(image);
    }
    if let (Backing::Image(_), None) = (&image.backing, &inside.backing_chain) {
        let what = "the chain of backing images, for which the spec relies on the image headers,";
        report.report_dropped(FieldPath::Image(nth, 1, ImageField::Image), what, false);
    }
    Some(inside)
}

/// The path of a raw file that is nothing else.
fn plain_file(image: &Image) -> Option<&str> {
    let path = image.host_path()?;
    let is_raw = matches!(image.format, None | Some(Format::Raw));
    let plain = Image {
        format: image.format,
        backing: image.backing.clone(),
        ..Image::file(path, Format::Raw)
    };
    (is_raw && plain == *image).then_some(path)
}

/// The images below an image, if paths and formats say all of it, to the end of the chain.
fn chain_of(image: &Image) -> Option<Vec<BackingSpec>> {
    let is_complete = |image: &Image| match (&image.backing, image.format) {
        (Backing::Unspecified, Some(format)) => !format.has_backing(),
        (Backing::Unspecified, None) => false,
        (Backing::Terminated | Backing::Image(_), _) => true,
    };
    let is_complete = image.chain().all(is_complete);
    let below = image.chain().skip(1).map(served_of);
    let chain: Option<Vec<BackingSpec>> = below.collect();
    chain.filter(|_| is_complete)
}

/// The backend for the storage of an image; without one, the field that no spec expresses, and its description.
fn storage_of(
    protocol: &Protocol,
    format: Option<Format>,
    is_lun: bool,
    inside: Inside,
) -> Result<BackendSpec, (ImageField, String)> {
    let format = format.unwrap_or(Format::Raw);
    let Inside {
        encryption,
        data_file,
        backing_chain,
    } = inside;
    let is_plain = encryption.is_none() && data_file.is_none();
    let backend = match (protocol, format) {
        (Protocol::File { path }, Format::Raw) if data_file.is_none() => RawSpec {
            path: path.clone(),
            encryption,
            ..RawSpec::default()
        }
        .into(),
        (Protocol::File { path }, Format::Qcow2) => Qcow2Spec {
            path: path.clone(),
            backing_chain,
            data_file,
            encryption,
            ..Qcow2Spec::default()
        }
        .into(),
        (Protocol::HostDevice { path }, format)
            if is_plain && format.qemu_driver().is_some() && format != Format::Luks =>
        {
            DeviceSpec {
                path: path.0.clone(),
                access: is_lun.then_some(DeviceAccess::Lun),
                format: (format != Format::Raw).then_some(format),
                backing_chain,
            }
            .into()
        }
        (Protocol::Nvme(source), Format::Raw) if is_plain => NvmeSpec::of_model(source).into(),
        (Protocol::VhostVdpa { path }, Format::Raw) if is_plain => {
            VhostVdpaSpec { path: path.clone() }.into()
        }
        // The format of a directory follows from what it is.
        (Protocol::Directory { path }, Format::Fat | Format::Raw) if is_plain => {
            DirectorySpec { path: path.clone() }.into()
        }
        (Protocol::Volume(source), format) if is_plain => {
            VolumeSpec::of_model(source, Some(format)).into()
        }
        (Protocol::File { .. }, other) if is_plain => {
            return Err((ImageField::Format, format!("a file of format '{other}'")));
        }
        (protocol, other) => {
            let word = protocol.source_type().unwrap_or("unknown");
            let what = match is_plain {
                true => format!("a source of type '{word}' and format '{other}'"),
                false => format!("an encrypted image of type '{word}'"),
            };
            let field = match (is_plain, other) {
                (false, _) => ImageField::Encryption,
                (true, Format::Raw) => ImageField::Source,
                (true, _) => ImageField::Format,
            };
            return Err((field, what));
        }
    };
    Ok(backend)
}

/// The backend for a vhost-user daemon.
fn vhost_user_of(
    nth: usize,
    socket: &VhostUserSocket,
    report: &mut DroppedFields,
) -> VhostUserBlkSpec {
    let VhostUserSocket {
        path,
        reconnect,
        reconnect_timeout,
        config_wce,
        served,
    } = socket;
    // In a spec it is off, so that the guest's flushes are kept.
    if *config_wce == Some(Switch::On) {
        let what = format!("`{}`", DiskField::ConfigWce.label());
        report.report_dropped(FieldPath::Disk(nth, DiskField::ConfigWce), what, false);
    }
    let serves = served.as_deref().and_then(served_of);
    if served.is_some() && serves.is_none() {
        let at = FieldPath::Disk(nth, DiskField::Source);
        report.report_dropped(at, "the image that the daemon serves", false);
    }
    VhostUserBlkSpec {
        serves,
        socket: path.clone(),
        // The default of a spec is on.
        reconnect: Some(*reconnect == Some(Switch::On)),
        reconnect_timeout: *reconnect_timeout,
    }
}

/// The image of a daemon, if a path and a format say all of it.
fn served_of(image: &Image) -> Option<BackingSpec> {
    let path = image.host_path()?.to_owned();
    let format = image.format?;
    let plain = match &image.protocol {
        Protocol::File { path } => Image::file(path.as_str(), format),
        Protocol::HostDevice { path } => {
            let mut plain = Image::host_device(path.0.as_str());
            plain.format = Some(format);
            plain
        }
        _ => return None,
    };
    let is_plain = Image {
        backing: image.backing.clone(),
        ..plain
    } == *image;
    is_plain.then_some(BackingSpec { path, format })
}
