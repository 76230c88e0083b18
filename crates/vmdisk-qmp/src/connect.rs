//! Connecting to a socket without waiting for ever where its queue is full.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// A connected socket that blocks.
pub(crate) fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let begun = Instant::now();
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            // Somebody else is being served, and the queue behind is full.
            Err(rustix::io::Errno::AGAIN) if begun.elapsed() < patience => {
                sleep(Duration::from_millis(10))
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}
