//! The mounts of the sandbox.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_move, mount_remount,
};

use crate::event::{CaptureEvent, FailedStep};
use crate::recorder;

/// The most that all writes together may take, and the most files.
const LIMIT: &std::ffi::CStr = c"size=256m,nr_inodes=100k,mode=0755";

/// Devices that do no harm.
const DEVICES: [&str; 6] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Folders that are empty in the sandbox: what is there belongs to people, or talks to services.
const HIDDEN: [&str; 8] = [
    "/dev/shm",
    "/home",
    "/mnt/wslg",
    "/root",
    "/run",
    "/tmp",
    "/var/run",
    "/var/tmp",
];

/// Where the recorders are.
const RECORDERS: &str = "/tmp/.vmdisk-capture";

/// What is mounted.
pub(crate) struct Mounts<'a> {
    /// The folder of the command.
    pub(crate) current: &'a Path,
    /// The folders that stay visible, the current one among them. None is in another.
    pub(crate) shown: Vec<PathBuf>,
    /// Sockets of the host.
    pub(crate) sockets: Vec<PathBuf>,
}

/// A memory file system that has all that is written.
struct Scratch(OwnedFd);

impl Scratch {
    /// A new folder in it.
    fn folder(&self, name: String, mode: u32) -> io::Result<PathBuf> {
        let path = self.path(&name);
        fs::create_dir_all(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        Ok(path)
    }

    /// A path that holds whatever is mounted over it.
    fn path(&self, name: &str) -> PathBuf {
        through(&self.0).join(name)
    }
}

/// The path of an open folder.
fn through(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

fn opened(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

impl Mounts<'_> {
    /// Makes the mounts; returns the folder of the recorders.
    pub(crate) fn make(&self) -> Result<PathBuf, FailedStep> {
        let at = |step: &str| {
            let step = step.to_owned();
            move |error: io::Error| FailedStep::new(step, error)
        };
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
        .map_err(|error| FailedStep::new("keep mounts from the host", error))?;
        // Root's folders of programs are not those of another owner of the current folder.
        let is_needed = |path: &Path| self.current.starts_with(path);
        let mut shown = Vec::new();
        for path in &self.shown {
            match opened(path) {
                Ok(folder) => shown.push((path, folder)),
                Err(error) if is_needed(path) => return Err(at("open the folder")(error)),
                Err(_) => {}
            }
        }
        for device in DEVICES {
            // A system without one of them needs none.
            let _ = mount_bind(device, device);
        }
        self.protect()?;
        let scratch = scratch().map_err(at("mount a memory file system on /tmp"))?;
        let recorders = scratch.folder("recorders".to_owned(), 0o755);
        let recorders = recorders.map_err(at("make a folder for recorders"))?;
        recorder::make(&recorders).map_err(at("make recorders"))?;
        let (mut layers, mut layered) = (Vec::new(), Vec::new());
        for (number, (path, folder)) in shown.iter().enumerate() {
            let layer = layer(&scratch, number, path, folder);
            let (layer, takes_writes) = layer.map_err(at("make a layer over a folder"))?;
            layers.push(layer);
            // Nobody connects to a socket through a layer, and the command may remove it.
            layered.extend(takes_writes.then_some(*path));
        }
        hide(&scratch).map_err(at("hide folders of the host"))?;
        for (layer, (path, _)) in layers.iter().zip(&shown) {
            fs::create_dir_all(path)
                .and_then(|()| Ok(mount_move(layer, *path)?))
                .map_err(at(&format!("show {}", path.display())))?;
        }
        let is_open = |socket: &&PathBuf| !layered.iter().any(|it| socket.starts_with(it));
        for socket in self.sockets.iter().filter(is_open) {
            cover(socket).map_err(at(&format!("hide the socket {}", socket.display())))?;
        }
        // `/usr/libexec/qemu-kvm` is asked for by its path.
        for folder in ["/usr/bin", "/usr/libexec"] {
            merge(Path::new(folder), &recorders);
        }
        let pts = c"newinstance,ptmxmode=0666,mode=620";
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        // Only programs that want a terminal miss it.
        if mount("devpts", "/dev/pts", "devpts", flags, pts).is_ok() {
            let _ = mount_bind("/dev/pts/ptmx", "/dev/ptmx");
        }
        let placed = Path::new(RECORDERS);
        fs::create_dir_all(placed)
            .and_then(|()| Ok(mount_bind(&recorders, placed)?))
            .and_then(|()| read_only(placed, MountFlags::NOSUID | MountFlags::NODEV))
            .map_err(at("place the recorders"))?;
        std::env::set_current_dir(self.current).map_err(at("enter the folder"))?;
        Ok(placed.to_owned())
    }

    /// Makes every mount read-only and without devices.
    fn protect(&self) -> Result<(), FailedStep> {
        let table = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| FailedStep::new("read the mounts", error))?;
        for line in table.lines() {
            let mut fields = line.split(' ').skip(4);
            let (Some(point), Some(options)) = (fields.next(), fields.next()) else {
                continue;
            };
            let point = unescaped(point);
            let mut flags = MountFlags::NOSUID;
            if !DEVICES.iter().any(|device| point == Path::new(device)) {
                flags |= MountFlags::NODEV;
            }
            if options.split(',').any(|option| option == "noexec") {
                flags |= MountFlags::NOEXEC;
            }
            match read_only(&point, flags) {
                Ok(()) => {}
                // Nothing in the sandbox reaches it, either: it is covered, or in a folder of another user.
                Err(error) if is_unreachable(&error) && point != Path::new("/") => {}
                Err(error) => {
                    let step = format!("make {} read-only", point.display());
                    return Err(FailedStep::new(step, error));
                }
            }
        }
        Ok(())
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    let errors = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|it| errors.contains(&it))
}

/// Makes a mount read-only.
pub(crate) fn read_only(point: &Path, flags: MountFlags) -> io::Result<()> {
    let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
    Ok(mount_remount(point, flags, c"")?)
}

fn scratch() -> io::Result<Scratch> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/tmp", "tmpfs", flags, LIMIT)?;
    Ok(Scratch(opened(Path::new("/tmp"))?))
}

/// A view of a folder: with a layer that takes writes, or read-only where the kernel has none for it, such as a folder with
/// mounts in it; true for the first.
fn layer(
    scratch: &Scratch,
    number: usize,
    path: &Path,
    folder: &OwnedFd,
) -> io::Result<(PathBuf, bool)> {
    let view = scratch.folder(format!("view{number}"), 0o755)?;
    let mode = fs::metadata(through(folder))?.permissions().mode();
    let upper = scratch.folder(format!("upper{number}"), mode)?;
    let work = scratch.folder(format!("work{number}"), 0o700)?;
    let (lower, upper, work) = (through(folder), upper.display(), work.display());
    let options = format!(
        "lowerdir={},upperdir={upper},workdir={work},userxattr",
        lower.display()
    );
    let Err(error) = overlay(&view, &options) else {
        return Ok((view, true));
    };
    mount_bind_recursive(&lower, &view)?;
    CaptureEvent::ReadOnly(path.display().to_string(), error.to_string()).report();
    Ok((view, false))
}

fn overlay(target: &Path, options: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = CString::new(options)?;
    Ok(mount(
        "overlay",
        target,
        "overlay",
        flags,
        options.as_c_str(),
    )?)
}

/// Adds the recorders to a folder of programs, behind those that are there. Without, they are on PATH.
fn merge(folder: &Path, recorders: &Path) {
    let options = format!("lowerdir={}:{}", folder.display(), recorders.display());
    let _ = overlay(folder, &options);
}

/// The folders that are hidden on this machine.
fn hidden() -> BTreeSet<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let all = HIDDEN.map(PathBuf::from).into_iter().chain(home);
    let all = all.filter_map(|it| it.canonicalize().ok());
    all.filter(|it| it.is_dir() && it.parent().is_some())
        .collect()
}

/// True for a folder in one that is hidden.
pub(crate) fn is_hidden(folder: &Path) -> bool {
    hidden().iter().any(|it| folder.starts_with(it))
}

/// Covers the folders that are hidden with empty ones.
fn hide(scratch: &Scratch) -> io::Result<()> {
    for (number, path) in hidden().iter().enumerate() {
        let mode = if path.starts_with("/home") || path.starts_with("/root") {
            0o755
        } else {
            0o1777
        };
        let folder = scratch.folder(format!("hidden{number}"), mode)?;
        // NixOS has its programs behind links.
        for link in fs::read_dir(path).into_iter().flatten().flatten() {
            if path.ends_with("run")
                && let Ok(target) = fs::read_link(link.path())
            {
                symlink(target, folder.join(link.file_name()))?;
            }
        }
        match mount_bind(&folder, path) {
            // It was in one that is hidden already.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Covers a socket that is still visible.
fn cover(socket: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|it| it.file_type().is_socket());
    match is_socket {
        true => Ok(mount_bind("/dev/null", socket)?),
        false => Ok(()),
    }
}

/// A path of mountinfo, in which blanks are `\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut pieces = text.split('\\');
    let mut path = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => path.extend([char::from(code).to_string().as_str(), &piece[3..]]),
            None => path.extend(["\\", piece]),
        }
    }
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_mountinfo_has_its_blanks() {
        assert_eq!(unescaped("/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped("/"), Path::new("/"));
    }
}
