//! A vhost-user-blk device behind a socket, which another program serves: what it says about itself.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_socket, socket_with,
};

use crate::Error;

/// Timeout for the program behind a socket to answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Requests of the protocol that are used here; QEMU docs/interop/vhost-user.rst has the numbers.
#[derive(Clone, Copy, Debug)]
enum Message {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    GetConfig = 24,
}

/// Version 1 of the protocol, in the flags of a message.
const VERSION: u32 = 1;

/// Bits of the device: read-only, several queues, protocol features, virtio 1.
const READ_ONLY: u64 = 1 << 5;
const SEVERAL_QUEUES: u64 = 1 << 12;
const PROTOCOL_FEATURES: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;

/// Bits of the protocol.
const PROTOCOL_MQ: u64 = 1;
const PROTOCOL_CONFIG: u64 = 1 << 9;

/// Size of the device's configuration that is read; the fields used here lie in it.
const CONFIGURATION_BYTES: usize = 60;

/// A device as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketDisk {
    /// Its size, in bytes.
    pub(crate) capacity: u64,
    /// Its number of queues.
    pub(crate) queues: u32,
    /// True if it refuses writes.
    pub(crate) is_read_only: bool,
}

/// Returns the device behind a socket. Nothing is written.
pub(crate) fn describe(path: &Path) -> Result<SocketDisk, Error> {
    let refused = |why: String| Error::refused(format!("to use {}", path.display()), why);
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !metadata.file_type().is_socket() {
        return Err(refused("it is not a socket".to_owned()));
    }
    let described = open(path).and_then(|stream| Connection(stream).describe());
    described.map_err(|error| match error.kind() {
        // A program that already has a client accepts no other, or does not answer.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => refused(format!(
            "no answer within {} s; another client may be connected, such as a running guest",
            TIMEOUT.as_secs()
        )),
        _ => refused(format!("it is not a vhost-user-blk device: {error}")),
    })
}

/// Opens a socket without waiting for its program to accept.
fn open(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_socket(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// The control connection of a device.
struct Connection(UnixStream);

impl Connection {
    /// Agrees on the features that tell size and queues, and returns the device.
    fn describe(mut self) -> io::Result<SocketDisk> {
        self.send(Message::SetOwner, &[])?;
        let offered = self.number(Message::GetFeatures)?;
        let needed = PROTOCOL_FEATURES | VERSION_1;
        if offered & needed != needed {
            return Err(io::Error::other("it does not support virtio 1"));
        }
        let protocol = self.number(Message::GetProtocolFeatures)? & (PROTOCOL_MQ | PROTOCOL_CONFIG);
        if protocol & PROTOCOL_CONFIG == 0 {
            return Err(io::Error::other("it does not tell its size"));
        }
        self.send(Message::SetProtocolFeatures, &protocol.to_ne_bytes())?;
        let used = offered & (needed | READ_ONLY | SEVERAL_QUEUES);
        self.send(Message::SetFeatures, &used.to_ne_bytes())?;
        let most = match protocol & PROTOCOL_MQ {
            0 => 1,
            _ => self.number(Message::GetQueueNum)?,
        };
        let mut request = [0; 12 + CONFIGURATION_BYTES];
        request[4..8].copy_from_slice(&(CONFIGURATION_BYTES as u32).to_ne_bytes());
        let answer = self.ask(Message::GetConfig, &request)?;
        let configuration = answer
            .get(12..)
            .filter(|bytes| bytes.len() >= CONFIGURATION_BYTES)
            .ok_or_else(|| io::Error::other("it does not tell its size"))?;
        let sectors = u64::from_le_bytes(configuration[..8].try_into().expect("8 bytes"));
        let configured = u16::from_le_bytes([configuration[34], configuration[35]]);
        let queues = match offered & SEVERAL_QUEUES {
            0 => 1,
            _ => most.min(u64::from(configured)).max(1),
        };
        Ok(SocketDisk {
            capacity: sectors.saturating_mul(512),
            queues: u32::try_from(queues).unwrap_or(1),
            is_read_only: offered & READ_ONLY != 0,
        })
    }

    /// Asks for a number.
    fn number(&mut self, message: Message) -> io::Result<u64> {
        let answer = self.ask(message, &[])?;
        let bytes = answer.try_into();
        let bytes = bytes.map_err(|_| io::Error::other("its answer is not a number"))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn send(&mut self, message: Message, payload: &[u8]) -> io::Result<()> {
        let words = [message as u32, VERSION, payload.len() as u32];
        let head = words.iter().flat_map(|word| word.to_ne_bytes());
        let bytes: Vec<u8> = head.chain(payload.iter().copied()).collect();
        self.0.write_all(&bytes)
    }

    fn ask(&mut self, message: Message, payload: &[u8]) -> io::Result<Vec<u8>> {
        self.send(message, payload)?;
        let mut header = [0; 12];
        self.0.read_exact(&mut header)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let length = word(8) as usize;
        if word(0) != message as u32 || length > 4096 {
            let wrong = format!("its answer to {message:?} is wrong");
            return Err(io::Error::other(wrong));
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok(answer)
    }
}
