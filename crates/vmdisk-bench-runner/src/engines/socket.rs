//! A vhost-user-blk device behind a socket, which another program serves.

use std::fs;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect as connect_socket, sendmsg, socket_with,
};

use super::generator::{Layout, SharedMemory, VirtQueue};
use crate::Error;

/// Timeout for the program behind a socket to answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Requests of the protocol that are used here; QEMU docs/interop/vhost-user.rst has the numbers.
#[derive(Clone, Copy, Debug)]
enum Message {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    SetMemTable = 5,
    SetVringNum = 8,
    SetVringAddr = 9,
    SetVringBase = 10,
    SetVringKick = 12,
    SetVringCall = 13,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    SetVringEnable = 18,
    GetConfig = 24,
}

/// Version 1 of the protocol, in the flags of a message.
const VERSION: u32 = 1;
/// The flag that asks for an acknowledgement.
const NEED_REPLY: u32 = 1 << 3;

/// Bits of the device: read-only, flushes, several queues, protocol features, virtio 1.
const READ_ONLY: u64 = 1 << 5;
const FLUSH: u64 = 1 << 9;
const SEVERAL_QUEUES: u64 = 1 << 12;
const PROTOCOL_FEATURES: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;

/// Bits of the protocol.
const PROTOCOL_MQ: u64 = 1;
const PROTOCOL_REPLY_ACK: u64 = 1 << 3;
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
    connect(path).map(|(_, disk)| disk)
}

/// Connects to a socket.
pub(super) fn connect(path: &Path) -> Result<(Connection, SocketDisk), Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !metadata.file_type().is_socket() {
        return Err(refused(path, "it is not a socket"));
    }
    let connected = open(path).and_then(|stream| {
        let mut connection = Connection {
            stream,
            acknowledges: false,
        };
        let disk = connection.begin()?;
        Ok((connection, disk))
    });
    connected.map_err(|error| match error.kind() {
        // A program that already has a client accepts no other, or does not answer.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => refused(
            path,
            &format!(
                "no answer within {} s; another client may be connected, such as a running guest",
                TIMEOUT.as_secs()
            ),
        ),
        _ => refused(path, &format!("it is not a vhost-user-blk device: {error}")),
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
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// True if the device acknowledges messages without an answer of their own.
    acknowledges: bool,
}

impl Connection {
    /// Agrees on the features, and returns the device.
    fn begin(&mut self) -> io::Result<SocketDisk> {
        self.tell(Message::SetOwner, &[], None)?;
        let offered = self.number(Message::GetFeatures)?;
        let needed = PROTOCOL_FEATURES | VERSION_1;
        if offered & needed != needed {
            return Err(io::Error::other("it does not support virtio 1"));
        }
        let protocol = self.number(Message::GetProtocolFeatures)?
            & (PROTOCOL_MQ | PROTOCOL_REPLY_ACK | PROTOCOL_CONFIG);
        if protocol & PROTOCOL_CONFIG == 0 {
            return Err(io::Error::other("it does not tell its size"));
        }
        self.tell(Message::SetProtocolFeatures, &[protocol], None)?;
        self.acknowledges = protocol & PROTOCOL_REPLY_ACK != 0;
        let used = offered & (needed | READ_ONLY | FLUSH | SEVERAL_QUEUES);
        self.tell(Message::SetFeatures, &[used], None)?;
        let most = match protocol & PROTOCOL_MQ {
            0 => 1,
            _ => self.number(Message::GetQueueNum)?,
        };
        let mut request = [0; 12 + CONFIGURATION_BYTES];
        request[4..8].copy_from_slice(&(CONFIGURATION_BYTES as u32).to_ne_bytes());
        self.send(Message::GetConfig, VERSION, &request, None)?;
        let answer = self.answer(Message::GetConfig)?;
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

    /// Starts queues in memory that is shared with the device.
    pub(super) fn start(
        &mut self,
        memory: &Arc<SharedMemory>,
        layouts: &[Layout],
        depth: usize,
    ) -> io::Result<Vec<VirtQueue>> {
        // The device addresses the memory as this program does.
        let (address, length) = (memory.address() as u64, memory.length() as u64);
        let regions = 1;
        let table = [regions, address, length, address, 0];
        self.tell(Message::SetMemTable, &table, Some(memory.file()))?;
        let mut queues = Vec::new();
        for (number, layout) in layouts.iter().enumerate() {
            let stream = self.stream.try_clone()?;
            let queue = VirtQueue::new(memory.clone(), *layout, depth, stream)?;
            let with = |value: usize| number as u64 | (value as u64) << 32;
            let place = |offset: usize| address + offset as u64;
            self.tell(Message::SetVringNum, &[with(layout.size)], None)?;
            self.tell(Message::SetVringBase, &[with(0)], None)?;
            let places = [
                with(0),
                place(layout.descriptors),
                place(layout.used),
                place(layout.available),
                0,
            ];
            self.tell(Message::SetVringAddr, &places, None)?;
            self.tell(Message::SetVringCall, &[with(0)], Some(queue.call()))?;
            self.tell(Message::SetVringKick, &[with(0)], Some(queue.kick()))?;
            self.tell(Message::SetVringEnable, &[with(1)], None)?;
            queues.push(queue);
        }
        Ok(queues)
    }

    /// Asks for a number.
    fn number(&mut self, message: Message) -> io::Result<u64> {
        self.send(message, VERSION, &[], None)?;
        number_in(&self.answer(message)?)
    }

    /// Sends a message that has no answer of its own.
    fn tell(
        &mut self,
        message: Message,
        words: &[u64],
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if !self.acknowledges {
            return self.send(message, VERSION, &bytes, file);
        }
        self.send(message, VERSION | NEED_REPLY, &bytes, file)?;
        match number_in(&self.answer(message)?)? {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("it refused {message:?}"))),
        }
    }

    fn send(
        &self,
        message: Message,
        flags: u32,
        payload: &[u8],
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        for word in [message as u32, flags, payload.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(payload);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let sent = sendmsg(
            &self.stream,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(Errno::AGAIN.into())
        }
    }

    fn answer(&mut self, to: Message) -> io::Result<Vec<u8>> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let length = word(8) as usize;
        if word(0) != to as u32 || length > 4096 {
            return Err(io::Error::other(format!("its answer to {to:?} is wrong")));
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok(payload)
    }
}

fn number_in(payload: &[u8]) -> io::Result<u64> {
    let bytes = payload
        .try_into()
        .map_err(|_| io::Error::other("its answer is not a number"))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Refused {
        what: format!("to use {}", path.display()),
        why: why.to_owned(),
    }
}
