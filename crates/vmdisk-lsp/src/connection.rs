//! Messages from the editor: they are read ahead, so that a request can be cancelled before its turn.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, TryRecvError};

use lsp_server::{Message, Notification, Request, RequestId};

/// Bytes of the largest message. A document of 16 MiB, the most that is checked, has at most six times as many as JSON.
const MAX_MESSAGE: usize = 128 * 1024 * 1024;

/// Bytes of the largest header.
const MAX_HEADER: u64 = 4096;

/// A message, or a reason why one could not be read.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    /// The message is not JSON-RPC; the next one can be read.
    Malformed(String),
    /// The stream is not the protocol.
    Broken(io::Error),
}

/// The messages that were read and not taken.
pub(crate) struct Queue {
    receiver: Receiver<Incoming>,
    pending: VecDeque<Incoming>,
    is_open: bool,
}

impl Queue {
    /// Reads messages in a thread of its own, which ends with the stream.
    pub(crate) fn read(input: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            let mut input = BufReader::new(input);
            loop {
                let incoming = match read_one(&mut input) {
                    Ok(Some(incoming)) => incoming,
                    Ok(None) => return,
                    Err(error) => Incoming::Broken(error),
                };
                let is_last = matches!(incoming, Incoming::Broken(_));
                if sender.send(incoming).is_err() || is_last {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("messages".to_owned())
            .spawn(read)?;
        Ok(Queue {
            receiver,
            pending: VecDeque::new(),
            is_open: true,
        })
    }

    /// True if a message waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.fetch();
        !self.pending.is_empty()
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Incoming> {
        self.fetch();
        if self.pending.is_empty() && self.is_open {
            let next = self.receiver.recv().ok();
            self.pending.extend(next);
        }
        self.pending.pop_front()
    }

    /// Takes a request out of the queue that waits there to be answered.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> Option<Request> {
        self.fetch();
        let is_it = |incoming: &Incoming| matches!(incoming, Incoming::Message(Message::Request(request)) if request.id == *id);
        let at = self.pending.iter().position(is_it)?;
        match self.pending.remove(at)? {
            Incoming::Message(Message::Request(request)) => Some(request),
            _ => None,
        }
    }

    /// Cancellations that wait in the queue: each is of a request before it.
    pub(crate) fn take_cancellations(&mut self) -> Vec<Notification> {
        self.fetch();
        let mut found = Vec::new();
        self.pending.retain_mut(|incoming| match incoming {
            Incoming::Message(Message::Notification(it)) if it.method == "$/cancelRequest" => {
                found.push(it.clone());
                false
            }
            _ => true,
        });
        found
    }

    fn fetch(&mut self) {
        loop {
            match self.receiver.try_recv() {
                Ok(incoming) => self.pending.push_back(incoming),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_open = false;
                    return;
                }
            }
        }
    }
}

/// Reads a message; `None` at the end of the stream.
///
/// lsp-server allocates as many bytes as the header says, whatever that is, so the header is read first.
fn read_one(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut header = Vec::new();
    let mut length = None;
    loop {
        let before = header.len();
        let mut limited = input.take(MAX_HEADER - before as u64);
        if limited.read_until(b'\n', &mut header)? == 0 {
            return match before {
                0 => Ok(None),
                _ => Err(invalid("a header ends too early, or is too long")),
            };
        }
        let line = header[before..].trim_ascii();
        if line.is_empty() {
            break;
        }
        let line = String::from_utf8_lossy(line).to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse::<usize>().ok();
        }
    }
    let length = length.ok_or_else(|| invalid("a header without a valid Content-Length"))?;
    if length > MAX_MESSAGE {
        return Err(invalid("a message is too large"));
    }
    // Reading in steps: the length may be more than what follows.
    let mut body = Vec::new();
    input.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let message = serde_json::from_slice(&body);
    Ok(Some(match message {
        Ok(message) => Incoming::Message(message),
        Err(error) => Incoming::Malformed(error.to_string()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &'static [u8]) -> Vec<String> {
        let mut queue = Queue::read(bytes).unwrap();
        let mut read = Vec::new();
        while let Some(incoming) = queue.next() {
            read.push(match incoming {
                Incoming::Message(Message::Request(request)) => request.method,
                Incoming::Message(other) => format!("{other:?}"),
                Incoming::Malformed(_) => "malformed".to_owned(),
                Incoming::Broken(error) => error.to_string(),
            });
        }
        read
    }

    #[test]
    fn a_malformed_message_is_skipped_and_a_broken_stream_ends() {
        assert_eq!(
            read_all(
                b"Content-Length: 3\r\n\r\n{\"aContent-Length: 2\r\nX: y\r\n\r\n\xff\xfe\
                  content-length: 26\r\n\r\n{\"id\":1,\"method\":\"abc/de\"}"
            ),
            ["malformed", "malformed", "abc/de"]
        );
        for bytes in [
            &b"Content-Length: 99999999999999\r\n\r\n"[..],
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: 18446744073709551615\r\n\r\n",
            b"\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"Content-Length: 5\r\n\r\n{}",
            b"Content-Len",
        ] {
            assert_eq!(read_all(bytes).len(), 1, "{bytes:?}");
        }
        assert!(read_all(b"").is_empty());
        assert_eq!(read_all(&[b'x'; 10_000]).len(), 1);
    }
}
