//! The protocol: a greeting, then lines of JSON in both directions.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vmdisk_facts::Version;

use crate::connect::connect;
use crate::error::QmpError;
use crate::event::Event;

/// Maximum size of a message; the schema of QEMU 11.1, the longest known answer, has 0.25 MiB.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Maximum number of stored events; the oldest are dropped first.
const MAX_EVENTS: usize = 10_000;

/// The identity of a QEMU in its greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Its version.
    pub version: Version,
    /// The distribution's package version, such as `Debian 1:7.2+dfsg-7+deb12u18`; often empty.
    pub package: String,
}

/// A connection to the monitor of a QEMU.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// Received bytes that are not parsed yet.
    pending: Vec<u8>,
    events: VecDeque<Event>,
    greeting: Greeting,
    timeout: Duration,
    asked: u64,
}

impl Client {
    /// Connects to the QMP socket of a running QEMU; `timeout` limits each wait.
    ///
    /// A socket serves one client at a time: while another client is connected, this waits until the timeout.
    ///
    /// # Errors
    /// If there is no socket, no answer before the timeout, or the answer is not QMP.
    pub fn connect(path: &Path, timeout: Duration) -> Result<Self, QmpError> {
        let stream = connect(path, timeout).map_err(|error| QmpError::Connect {
            path: path.to_owned(),
            error,
        })?;
        Self::over(stream, timeout)
    }

    /// Negotiates with the QEMU at the other end of a connected socket.
    ///
    /// # Errors
    /// See [`Client::connect`].
    pub fn over(stream: UnixStream, timeout: Duration) -> Result<Self, QmpError> {
        let mut client = Client {
            stream,
            pending: Vec::new(),
            events: VecDeque::new(),
            greeting: Greeting {
                version: Version(0, 0, 0),
                package: String::new(),
            },
            timeout,
            asked: 0,
        };
        let greeting = client.message("the greeting", Instant::now(), timeout)?;
        let qemu = &greeting["QMP"]["version"]["qemu"];
        let number = |part: &str| {
            qemu[part]
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
        };
        let (Some(major), Some(minor), Some(micro)) =
            (number("major"), number("minor"), number("micro"))
        else {
            return Err(not_qmp(&greeting.to_string()));
        };
        let package = greeting["QMP"]["version"]["package"]
            .as_str()
            .unwrap_or_default();
        client.greeting = Greeting {
            version: Version(major, minor, micro),
            // Some builds enclose it in parentheses.
            package: package.trim().trim_matches(['(', ')']).to_owned(),
        };
        client.ask("qmp_capabilities", json!({}))?;
        Ok(client)
    }

    /// Returns the greeting.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Sets the timeout for answers.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Executes a command and returns its answer.
    ///
    /// An answer after the timeout is discarded when it arrives; the next command gets its own answer.
    ///
    /// # Errors
    /// If QEMU refuses, exits, or does not answer before the timeout.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        let begun = Instant::now();
        self.asked += 1;
        let id = Value::from(self.asked);
        let request = json!({ "execute": command, "arguments": arguments, "id": id });
        self.stream.set_write_timeout(Some(self.timeout))?;
        let sent = self.stream.write_all(format!("{request}\r\n").as_bytes());
        if let Err(error) = sent {
            return Err(self.failure(error, command, self.timeout));
        }
        loop {
            let mut answer = self.message(command, begun, self.timeout)?;
            if let Some(event) = Event::of(&mut answer) {
                self.keep(event);
            } else if answer.get("id").is_some_and(|theirs| *theirs != id) {
                // The answer to a command that timed out.
            } else if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            } else if let Some(error) = answer.get("error") {
                let text = |part: &str| error[part].as_str().unwrap_or_default().to_owned();
                return Err(QmpError::Refused {
                    command: command.to_owned(),
                    class: text("class"),
                    description: text("desc"),
                });
            } else {
                return Err(not_qmp(&answer.to_string()));
            }
        }
    }

    /// Returns the next event, waiting up to `limit`; `None` if there was none.
    ///
    /// # Errors
    /// If QEMU exits, or a message is not QMP.
    pub fn next_event(&mut self, limit: Duration) -> Result<Option<Event>, QmpError> {
        let begun = Instant::now();
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match self.message("an event", begun, limit) {
                Ok(mut message) => {
                    if let Some(event) = Event::of(&mut message) {
                        self.keep(event);
                    }
                }
                Err(QmpError::Timeout { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn keep(&mut self, event: Event) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Returns the next message of any kind.
    fn message(
        &mut self,
        waiting_for: &str,
        begun: Instant,
        limit: Duration,
    ) -> Result<Value, QmpError> {
        let mut looked_at = 0;
        loop {
            if let Some(end) = self.pending[looked_at..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let line: Vec<u8> = self.pending.drain(..=looked_at + end).collect();
                if line.trim_ascii().is_empty() {
                    looked_at = 0;
                    continue;
                }
                return serde_json::from_slice(&line)
                    .map_err(|_| not_qmp(&String::from_utf8_lossy(&line)));
            }
            looked_at = self.pending.len();
            if looked_at > MAX_MESSAGE_BYTES {
                return Err(not_qmp(&String::from_utf8_lossy(&self.pending[..200])));
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(timed_out(waiting_for, limit));
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut block = [0; 16 << 10];
            match self.stream.read(&mut block) {
                Ok(0) => return Err(closed()),
                Ok(read) => self.pending.extend_from_slice(&block[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error, waiting_for, limit)),
            }
        }
    }

    /// Converts an error of the socket.
    fn failure(&self, error: std::io::Error, waiting_for: &str, limit: Duration) -> QmpError {
        let kind = error.kind();
        if matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            timed_out(waiting_for, limit)
        } else if matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            closed()
        } else {
            QmpError::Socket(error)
        }
    }
}

fn timed_out(waiting_for: &str, limit: Duration) -> QmpError {
    QmpError::Timeout {
        waiting_for: waiting_for.to_owned(),
        limit,
        stderr: String::new(),
    }
}

fn closed() -> QmpError {
    QmpError::Ended {
        status: None,
        stderr: String::new(),
    }
}

/// Creates an error with the start of a text that is not QMP.
fn not_qmp(text: &str) -> QmpError {
    QmpError::NotQmp(text.trim().chars().take(200).collect())
}
