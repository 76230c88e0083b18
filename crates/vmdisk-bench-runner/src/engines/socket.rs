//! A vhost-user-blk device behind a socket, which another program serves.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use blkio::Blkio;

use crate::Error;

/// Timeout for the program behind a socket to answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A device as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketDisk {
    /// Its size, in bytes.
    pub(crate) capacity: u64,
    /// Its number of queues.
    pub(crate) queues: u32,
}

/// Returns the device behind a socket. Nothing is written.
pub(crate) fn describe(path: &Path) -> Result<SocketDisk, Error> {
    let blkio = connect(path)?;
    let failed = |error: blkio::Error| refused(path, error.message());
    Ok(SocketDisk {
        capacity: blkio.get_u64("capacity").map_err(failed)?,
        queues: u32::try_from(blkio.get_i32("max-queues").map_err(failed)?).unwrap_or(1),
    })
}

/// Connects to a socket.
pub(super) fn connect(path: &Path) -> Result<Blkio, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !metadata.file_type().is_socket() {
        return Err(refused(path, "it is not a socket"));
    }
    let text = path
        .to_str()
        .ok_or_else(|| refused(path, "its path is not valid UTF-8"))?
        .to_owned();
    let (sender, receiver) = mpsc::channel();
    // Connecting has no timeout, and a program that already has a client does not answer.
    std::thread::spawn(move || {
        let _ = sender.send(connected(&text));
    });
    match receiver.recv_timeout(TIMEOUT) {
        Ok(Ok(blkio)) => Ok(blkio),
        Ok(Err(error)) => Err(refused(
            path,
            &format!("it is not a vhost-user-blk device: {}", error.message()),
        )),
        Err(_) => Err(refused(
            path,
            &format!(
                "no answer within {} s; another client may be connected, such as a running guest",
                TIMEOUT.as_secs()
            ),
        )),
    }
}

fn connected(path: &str) -> Result<Blkio, blkio::Error> {
    let mut blkio = Blkio::new("virtio-blk-vhost-user")?;
    blkio.set_str("path", path)?;
    blkio.connect()?;
    Ok(blkio)
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Refused {
        what: format!("to use {}", path.display()),
        why: why.to_owned(),
    }
}
