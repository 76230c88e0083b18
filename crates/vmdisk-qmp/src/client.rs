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

/// Longest message; the schema of QEMU 11.1, the longest answer there is, has a quarter of a MiB.
const LONGEST: usize = 64 << 20;

/// Events kept for somebody to ask for; the oldest go first.
const MOST_EVENTS: usize = 10_000;

/// What a QEMU says of itself at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Its version.
    pub version: Version,
    /// What the distribution says of its build, such as `Debian 1:7.2+dfsg-7+deb12u18`; often empty.
    pub package: String,
}

/// A connection to the monitor of a QEMU.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// What came and was not looked at yet.
    pending: Vec<u8>,
    events: VecDeque<Event>,
    greeting: Greeting,
    patience: Duration,
    asked: u64,
}

impl Client {
    /// Connects to the QMP socket of a QEMU that runs, and takes `patience` as the longest wait for anything.
    ///
    /// A socket serves one client at a time: while another has it, this waits and then gives up.
    ///
    /// # Errors
    /// If there is no socket, nobody answers in time, or what answers is no QMP.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, QmpError> {
        let stream = connect(path, patience).map_err(|error| QmpError::Connect {
            path: path.to_owned(),
            error,
        })?;
        Self::over(stream, patience)
    }

    /// Greets the QEMU at the other end of a socket.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over(stream: UnixStream, patience: Duration) -> Result<Self, QmpError> {
        let mut client = Client {
            stream,
            pending: Vec::new(),
            events: VecDeque::new(),
            greeting: Greeting {
                version: Version(0, 0, 0),
                package: String::new(),
            },
            patience,
            asked: 0,
        };
        let greeting = client.message("the greeting", Instant::now(), patience)?;
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
            // Some builds put it into brackets.
            package: package.trim().trim_matches(['(', ')']).to_owned(),
        };
        client.ask("qmp_capabilities", json!({}))?;
        Ok(client)
    }

    /// What the QEMU said of itself.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Sets the longest wait for an answer.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The answer to a command.
    ///
    /// An answer that comes too late is thrown away when it comes; the next command gets its own.
    ///
    /// # Errors
    /// If QEMU refuses, ends, or does not answer in time.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        let begun = Instant::now();
        self.asked += 1;
        let id = Value::from(self.asked);
        let request = json!({ "execute": command, "arguments": arguments, "id": id });
        self.stream.set_write_timeout(Some(self.patience))?;
        let sent = self.stream.write_all(format!("{request}\r\n").as_bytes());
        if let Err(error) = sent {
            return Err(self.failure(error, command, self.patience));
        }
        loop {
            let mut answer = self.message(command, begun, self.patience)?;
            if let Some(event) = Event::of(&mut answer) {
                self.keep(event);
            } else if answer.get("id").is_some_and(|theirs| *theirs != id) {
                // The answer to a question that was given up.
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

    /// The next event, waiting up to `limit` for one; `None` when none came.
    ///
    /// # Errors
    /// If QEMU ends, or what comes is no QMP.
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
                Err(QmpError::Late { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn keep(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// The next message of any kind.
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
            if looked_at > LONGEST {
                return Err(not_qmp(&String::from_utf8_lossy(&self.pending[..200])));
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(late(waiting_for, limit));
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

    /// What an error of the socket means.
    fn failure(&self, error: std::io::Error, waiting_for: &str, limit: Duration) -> QmpError {
        let kind = error.kind();
        if matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            late(waiting_for, limit)
        } else if matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            closed()
        } else {
            QmpError::Socket(error)
        }
    }
}

fn late(waiting_for: &str, limit: Duration) -> QmpError {
    QmpError::Late {
        waiting_for: waiting_for.to_owned(),
        limit,
        said: String::new(),
    }
}

fn closed() -> QmpError {
    QmpError::Ended {
        status: None,
        said: String::new(),
    }
}

/// The start of a text that should have been QMP.
fn not_qmp(text: &str) -> QmpError {
    QmpError::NotQmp(text.trim().chars().take(200).collect())
}
