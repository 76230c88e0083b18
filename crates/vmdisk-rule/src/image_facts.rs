//! Facts about image files.

use vmdisk_facts::{DirectIo, Fact, File, FsKind, ImageHeader};
use vmdisk_model::{Format, HostStorage, Image, MadeAs};

use crate::{Consumer, Context, Missing};

/// The facts of a file; `what` names them in the error.
///
/// # Errors
/// Fails if they were not collected.
pub fn file<'a>(
    context: &Context<'a>,
    path: &str,
    what: impl Fn() -> String,
) -> Result<&'a File, Missing> {
    let host = context.host(&what)?;
    host.file(path)
        .ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED))
}

/// The header of an image; `None` if the path does not exist.
///
/// # Errors
/// Fails if it was not collected.
pub fn header<'a>(context: &Context<'a>, path: &str) -> Result<Option<&'a ImageHeader>, Missing> {
    let what = || format!("the header of {path}");
    let file = file(context, path, what)?;
    if file.is_missing() {
        return Ok(None);
    }
    Context::known(file.image.as_ref(), what)
}

/// The format that an image has for QEMU, which probes one that is not set; libvirt takes such an image for raw. Without a
/// header, it is the one that the text makes it with.
///
/// # Errors
/// Fails if QEMU probes it, and the header was not collected.
pub fn format_in_use(context: &Context<'_>, image: &Image) -> Result<Format, Missing> {
    let path = match (image.format, image.host_path()) {
        (Some(format), _) => return Ok(format),
        (None, _) if context.consumer == Consumer::Libvirt => return Ok(Format::Raw),
        (None, path) => path.unwrap_or("the image"),
    };
    let made = match image.made_as {
        Some(MadeAs::Format(format)) => Some(format),
        Some(MadeAs::Unclear) | None => None,
    };
    let probed = match image.is_headed_by_its_format() {
        true => match header(context, path) {
            Ok(header) => header.and_then(|it| it.probed.value()),
            Err(missing) => return made.ok_or(missing),
        },
        false => None,
    };
    let format = probed.and_then(|format| Format::of_qemu_driver(format));
    format
        .or(made)
        .ok_or_else(|| Missing::new(format!("the format of {path}"), "QEMU probes it"))
}

/// The header of the top image of a disk that is opened as qcow2; `None` for other disks.
pub fn qcow2_header<'a>(
    context: &Context<'a>,
    image: &Image,
) -> Option<Result<Option<&'a ImageHeader>, Missing>> {
    let path = image.host_path()?;
    let is_there =
        format_in_use(context, image) == Ok(Format::Qcow2) && image.is_headed_by_its_format();
    is_there.then(|| {
        let header = header(context, path)?;
        let is_qcow2 = |header: &&ImageHeader| {
            header
                .format
                .value()
                .is_some_and(|format| format == "qcow2")
        };
        Ok(header.filter(is_qcow2))
    })
}

/// The effect of `O_DIRECT` on an image that has a path on the host; `None` for other images.
///
/// # Errors
/// Fails if the facts do not decide it.
pub fn direct_io(context: &Context<'_>, image: &Image) -> Option<Result<DirectIo, Missing>> {
    let path = image.host_path()?;
    let is_device = matches!(image.protocol.on_host(), Some(HostStorage::Device(_)));
    Some(direct_io_at(context, path, is_device))
}

/// The effect of `O_DIRECT` on a path, which a device is named by or a file.
///
/// # Errors
/// Fails if the facts do not decide it.
pub fn direct_io_at(
    context: &Context<'_>,
    path: &str,
    is_device: bool,
) -> Result<DirectIo, Missing> {
    let what = || format!("the effect of O_DIRECT on {path}");
    let host = context.host(what)?;
    // Without facts about the device, the file system of its node would be judged instead.
    let is_judged_by_its_node = match is_device {
        true => !host.block_device(path).is_known(),
        false => matches!(
            host.filesystem_of(path),
            Fact::Known(filesystem) if filesystem.kind == FsKind::Devtmpfs
        ),
    };
    if is_judged_by_its_node {
        return Err(Missing::new(what(), "the device was not collected"));
    }
    Context::known(host.direct_io(path), what)?
        .ok_or_else(|| Missing::new(what(), "the facts name no file system for it"))
}
