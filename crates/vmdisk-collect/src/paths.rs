//! Facts about one path, collected in a separate thread because the path may be on a hung mount.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, IFlags, OFlags, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use vmdisk_facts::libvirt::QemuUser;
use vmdisk_facts::path::{Dio, DioAlign, Inode, Mode};
use vmdisk_facts::{DeviceNumber, Directory, Fact, File, FileKind, Reason, Unknown};

use crate::access;
use crate::extents::{self, Extents};
use crate::header;
use crate::obstacle::{missing, obstacle};
use crate::record::{RealPath, Space};
use crate::root::Root;

/// Collects the facts about a file, and its location in the mount table.
pub(crate) fn file(root: &Root, path: &str, user: &Fact<QemuUser>) -> (File, Option<RealPath>) {
    let mut file = File {
        path: path.to_owned(),
        ..File::default()
    };
    let real = match root.resolve(Path::new(path)) {
        Ok(real) => real,
        Err(error) => {
            let file = if missing(&error) {
                File {
                    present: Fact::Known(false),
                    ..file
                }
            } else {
                unknown_file(path, &obstacle(path, &error))
            };
            return (file, None);
        }
    };
    file.present = Fact::Known(true);
    file.real_path = text_of(&real);
    let place = if root.is_live() {
        file.label = access::label(&real);
        file.qemu_access = access::of(Path::new(path), &real, user);
        live_file(&mut file, &real)
    } else {
        recorded_file(root, &mut file, &real)
    };
    (file, Some(place))
}

/// Finds the nearest existing directory: the path itself, or one of its parents.
pub(crate) fn directory(
    root: &Root,
    path: &str,
    user: &Fact<QemuUser>,
) -> (Directory, Option<RealPath>) {
    let mut nearest = Path::new(path);
    loop {
        let given = nearest.to_str().unwrap_or("/");
        let mut directory = Directory {
            path: given.to_owned(),
            ..Directory::default()
        };
        match root.resolve(nearest) {
            Ok(real) => {
                let is_directory =
                    fs::symlink_metadata(root.host(&real)).is_ok_and(|metadata| metadata.is_dir());
                if is_directory {
                    directory.present = Fact::Known(true);
                    directory.real_path = text_of(&real);
                    let place = if root.is_live() {
                        directory.label = access::label(&real);
                        directory.qemu_access = access::of(Path::new(given), &real, user);
                        live_directory(&mut directory, &real)
                    } else {
                        RealPath {
                            real,
                            ..RealPath::default()
                        }
                    };
                    return (directory, Some(place));
                }
            }
            Err(error) if missing(&error) => {}
            Err(error) => {
                return (unknown_directory(given, &obstacle(given, &error)), None);
            }
        }
        match nearest.parent() {
            Some(parent) => nearest = parent,
            None => return (directory, None),
        }
    }
}

/// Returns a directory that does not exist.
pub(crate) fn missing_directory(path: &str) -> Directory {
    Directory {
        path: path.to_owned(),
        present: Fact::Known(false),
        ..Directory::default()
    }
}

/// Returns a file with only unknown facts.
pub(crate) fn unknown_file(path: &str, unknown: &Unknown) -> File {
    let extents = Extents::unknown(unknown);
    File {
        path: path.to_owned(),
        present: Fact::Unknown(unknown.clone()),
        kind: Fact::Unknown(unknown.clone()),
        inode: Fact::Unknown(unknown.clone()),
        size: Fact::Unknown(unknown.clone()),
        nocow: Fact::Unknown(unknown.clone()),
        compressed: Fact::Unknown(unknown.clone()),
        extents: extents.count,
        extents_capped: extents.is_capped,
        shared_extents: extents.shared,
        unwritten: extents.unwritten,
        label: Fact::Unknown(unknown.clone()),
        qemu_access: Fact::Unknown(unknown.clone()),
        socket: Fact::Unknown(unknown.clone()),
        lock: Fact::Unknown(unknown.clone()),
        image: Fact::Unknown(unknown.clone()),
        dio: Dio {
            dioalign: Fact::Unknown(unknown.clone()),
            ..Dio::default()
        },
        ..File::default()
    }
}

/// Returns a directory with only unknown facts.
pub(crate) fn unknown_directory(path: &str, unknown: &Unknown) -> Directory {
    Directory {
        path: path.to_owned(),
        present: Fact::Unknown(unknown.clone()),
        nocow: Fact::Unknown(unknown.clone()),
        compressed: Fact::Unknown(unknown.clone()),
        label: Fact::Unknown(unknown.clone()),
        qemu_access: Fact::Unknown(unknown.clone()),
        ..Directory::default()
    }
}

fn text_of(path: &Path) -> Fact<String> {
    match path.to_str() {
        Some(text) => Fact::Known(text.to_owned()),
        None => Fact::unknown(
            Reason::Parse,
            format!("{}: the real path is not valid UTF-8", path.display()),
        ),
    }
}

fn recorded_file(root: &Root, file: &mut File, real: &Path) -> RealPath {
    if let Ok(metadata) = fs::symlink_metadata(root.host(real)) {
        // A device node cannot be recorded; an empty file stands in for it, and its facts are in sysfs.
        let device = real
            .strip_prefix("/dev")
            .ok()
            .and_then(|name| recorded_device(root, name));
        if let Some(device) = device {
            file.kind = Fact::Known(FileKind::Block);
            file.device = Fact::Known(device);
        } else {
            file.kind = Fact::Known(if metadata.is_dir() {
                FileKind::Directory
            } else {
                FileKind::Regular
            });
            file.device = Fact::Absent;
            if metadata.is_file() {
                file.size = Fact::Known(metadata.len());
                file.image = match fs::File::open(root.host(real)) {
                    Ok(opened) => header::read(&opened, Some(metadata.len())),
                    Err(error) => Fact::Unknown(obstacle(&file.path, &error)),
                };
            }
        }
    }
    RealPath {
        real: real.to_owned(),
        ..RealPath::default()
    }
}

fn recorded_device(root: &Root, name: &Path) -> Option<DeviceNumber> {
    let name = name
        .to_str()
        .filter(|name| !name.is_empty() && !name.contains('/'))?;
    DeviceNumber::parse(&root.text(format!("/sys/class/block/{name}/dev")).ok()?)
}

fn live_file(file: &mut File, real: &Path) -> RealPath {
    let mut place = RealPath {
        real: real.to_owned(),
        ..RealPath::default()
    };
    let stat = match statx(real) {
        Ok(stat) => stat,
        Err(error) => {
            // It vanished after its links were resolved, or became inaccessible.
            file.present = if missing(&error) {
                Fact::Known(false)
            } else {
                Fact::Unknown(obstacle(&file.path, &error))
            };
            return place;
        }
    };
    place.mount_id = mount_id(&stat);
    let kind = kind(&stat);
    file.kind = Fact::Known(kind);
    file.mode = Fact::Known(Mode(u32::from(stat.stx_mode) & 0o7777));
    file.uid = Fact::Known(stat.stx_uid);
    file.gid = Fact::Known(stat.stx_gid);
    file.inode = Fact::Known(Inode {
        device: DeviceNumber {
            major: stat.stx_dev_major,
            minor: stat.stx_dev_minor,
        },
        number: stat.stx_ino,
    });
    let node = DeviceNumber {
        major: stat.stx_rdev_major,
        minor: stat.stx_rdev_minor,
    };
    file.device = match kind {
        FileKind::Block | FileKind::Character => Fact::Known(node),
        _ => Fact::Absent,
    };
    file.socket = Fact::Absent;
    match kind {
        FileKind::Regular => {
            file.size = Fact::Known(stat.stx_size);
            // st_blocks is in units of 512 bytes on every filesystem.
            file.alloc = Fact::Known(stat.stx_blocks.saturating_mul(512));
            let flag = |flag| match stat.stx_attributes_mask.contains(flag) {
                true => Fact::Known(stat.stx_attributes.contains(flag)),
                false => Fact::Absent,
            };
            file.immutable = flag(StatxAttributes::IMMUTABLE);
            file.append_only = flag(StatxAttributes::APPEND);
            file.dio = alignment(&stat);
            place.space = space(real);
            inspect_contents(file, real, Some(stat.stx_size));
        }
        FileKind::Block => {
            file.dio = alignment(&stat);
            inspect_contents(file, real, None);
        }
        FileKind::Directory => place.space = space(real),
        FileKind::Socket => {
            file.socket = Fact::Known(access::socket(Path::new(&file.path), real));
        }
        // Opening other kinds of nodes can have side effects.
        FileKind::Character | FileKind::Fifo | FileKind::Other => {}
    }
    place
}

/// Collects facts that need an open file: flags and the header.
fn inspect_contents(file: &mut File, real: &Path, length: Option<u64>) {
    let opened = match open(real, OFlags::NONBLOCK) {
        Ok(opened) => opened,
        Err(error) => {
            let unknown = obstacle(&file.path, &error);
            (file.nocow, file.compressed) = match length {
                Some(_) => (
                    Fact::Unknown(unknown.clone()),
                    Fact::Unknown(unknown.clone()),
                ),
                // A device has no such flags, even if it cannot be opened.
                None => (Fact::Absent, Fact::Absent),
            };
            if length.is_some() {
                pieces(file, Extents::unknown(&unknown));
            }
            file.image = Fact::Unknown(unknown);
            return;
        }
    };
    // The path may refer to another file by now; a pipe must not be read.
    let still = opened
        .metadata()
        .is_ok_and(|now| now.is_file() || now.file_type().is_block_device());
    if !still {
        file.image = Fact::unknown(
            Reason::Conflict,
            format!("{}: changed during the inspection", file.path),
        );
        return;
    }
    if length.is_some() {
        (file.nocow, file.compressed) = flags(&opened, &file.path);
        let extents = extents::of(&opened, &file.path);
        pieces(file, extents);
    } else {
        (file.nocow, file.compressed) = (Fact::Absent, Fact::Absent);
    }
    let length = length.or_else(|| device_length(&opened));
    file.image = header::read(&opened, length);
}

/// Sets the facts about extents; a device has none.
fn pieces(file: &mut File, extents: Extents) {
    let Extents {
        count,
        is_capped,
        shared,
        unwritten,
    } = extents;
    file.extents = count;
    file.extents_capped = is_capped;
    file.shared_extents = shared;
    file.unwritten = unwritten;
}

/// Opens for reading without updating the access time, if that is allowed.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<fs::File> {
    let attempt = |flags: OFlags| {
        fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
    };
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    match attempt(flags | OFlags::NOATIME) {
        // Only the owner may use O_NOATIME.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => attempt(flags),
        opened => opened,
    }
}

pub(crate) fn device_length(device: &fs::File) -> Option<u64> {
    rustix::fs::seek(device, rustix::fs::SeekFrom::End(0)).ok()
}

/// Returns NOCOW and compression, from FS_IOC_GETFLAGS.
fn flags(opened: &fs::File, path: &str) -> (Fact<bool>, Fact<bool>) {
    match rustix::fs::ioctl_getflags(opened) {
        Ok(flags) => (
            Fact::Known(flags.contains(IFlags::NOCOW)),
            Fact::Known(flags.contains(IFlags::COMPRESSED)),
        ),
        // FUSE and similar filesystems have no such flags.
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS) => (Fact::Absent, Fact::Absent),
        Err(error) => {
            let unknown = obstacle(&format!("{path}: FS_IOC_GETFLAGS"), &error.into());
            (Fact::Unknown(unknown.clone()), Fact::Unknown(unknown))
        }
    }
}

fn live_directory(directory: &mut Directory, real: &Path) -> RealPath {
    let mut place = RealPath {
        real: real.to_owned(),
        mount_id: None,
        space: space(real),
    };
    match statx(real) {
        Ok(stat) => {
            place.mount_id = mount_id(&stat);
            directory.mode = Fact::Known(Mode(u32::from(stat.stx_mode) & 0o7777));
            directory.uid = Fact::Known(stat.stx_uid);
            directory.gid = Fact::Known(stat.stx_gid);
        }
        Err(error) => directory.mode = Fact::Unknown(obstacle(&directory.path, &error)),
    }
    (directory.nocow, directory.compressed) = match open(real, OFlags::DIRECTORY) {
        Ok(opened) => flags(&opened, &directory.path),
        Err(error) => {
            let unknown = obstacle(&directory.path, &error);
            (Fact::Unknown(unknown.clone()), Fact::Unknown(unknown))
        }
    };
    place
}

fn statx(real: &Path) -> io::Result<Statx> {
    // Not STATX_MNT_ID_UNIQUE, which does not appear in mountinfo.
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN;
    // Do not trigger automounts.
    Ok(rustix::fs::statx(CWD, real, AtFlags::NO_AUTOMOUNT, wanted)?)
}

fn answered(stat: &Statx, flag: StatxFlags) -> bool {
    StatxFlags::from_bits_retain(stat.stx_mask).contains(flag)
}

fn mount_id(stat: &Statx) -> Option<u64> {
    answered(stat, StatxFlags::MNT_ID).then_some(stat.stx_mnt_id)
}

fn alignment(stat: &Statx) -> Dio {
    if !answered(stat, StatxFlags::DIOALIGN) {
        return Dio {
            dioalign: Fact::Known(DioAlign::Unset),
            ..Dio::default()
        };
    }
    Dio {
        dioalign: Fact::Known(DioAlign::Set),
        mem: Fact::Known(u64::from(stat.stx_dio_mem_align)),
        off: Fact::Known(u64::from(stat.stx_dio_offset_align)),
        ..Dio::default()
    }
}

fn kind(stat: &Statx) -> FileKind {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::BlockDevice => FileKind::Block,
        FileType::CharacterDevice => FileKind::Character,
        FileType::Socket => FileKind::Socket,
        FileType::Fifo => FileKind::Fifo,
        FileType::Symlink | FileType::Unknown => FileKind::Other,
    }
}

fn space(real: &Path) -> Fact<Space> {
    match rustix::fs::statfs(real) {
        Ok(stat) => {
            let block = u64::try_from(stat.f_frsize).ok().filter(|size| *size > 0);
            let block = block
                .or_else(|| u64::try_from(stat.f_bsize).ok())
                .unwrap_or(0);
            Fact::Known(Space {
                magic: u64::from(stat.f_type.cast_unsigned() as u32),
                free: stat.f_bavail.saturating_mul(block),
                total: stat.f_blocks.saturating_mul(block),
            })
        }
        Err(error) => Fact::Unknown(obstacle(
            &format!("{}: statfs", real.display()),
            &error.into(),
        )),
    }
}
