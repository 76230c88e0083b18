//! Connecting to a socket with a timeout, even if its queue is full.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// Connects a blocking socket.
pub(crate) fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let begun = Instant::now();
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            // Another client is connected, and the queue is full.
            Err(rustix::io::Errno::AGAIN) if begun.elapsed() < timeout => {
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
