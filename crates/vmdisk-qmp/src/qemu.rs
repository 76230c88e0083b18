//! A QEMU of ours that runs.

use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::client::{Client, Greeting};
use crate::error::QmpError;
use crate::event::Event;
use crate::said::Said;

/// A running QEMU; the process is killed when this goes.
#[derive(Debug)]
pub struct Qemu {
    process: Process,
    client: Client,
}

/// A process that ends with its value, however that goes.
#[derive(Debug)]
struct Process {
    child: Child,
    said: Said,
}

impl Qemu {
    pub(crate) fn greet(
        child: Child,
        said: Said,
        stream: UnixStream,
        patience: Duration,
    ) -> Result<Self, QmpError> {
        let mut process = Process { child, said };
        match Client::over(stream, patience) {
            Ok(client) => Ok(Qemu { process, client }),
            Err(error) => Err(process.explained(error)),
        }
    }

    /// What it said of itself.
    pub fn greeting(&self) -> &Greeting {
        self.client.greeting()
    }

    /// The number of its process.
    pub fn process_id(&self) -> u32 {
        self.process.child.id()
    }

    /// What it wrote to its standard error so far, such as warnings.
    pub fn said(&self) -> String {
        self.process.said.so_far()
    }

    /// Ends it, and gives everything that it wrote to its standard error.
    pub fn end(mut self) -> String {
        // Both fail only where it is gone already.
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
        self.process.said.all()
    }

    /// Sets the longest wait for an answer.
    pub fn set_patience(&mut self, patience: Duration) {
        self.client.set_patience(patience);
    }

    /// The answer to a command.
    ///
    /// # Errors
    /// As [`Client::ask`]; where the process ended, the error has its status and what it wrote.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        let answer = self.client.ask(command, arguments);
        answer.map_err(|error| self.process.explained(error))
    }

    /// The next event, waiting up to `limit` for one; `None` when none came.
    ///
    /// # Errors
    /// As [`Client::next_event`].
    pub fn next_event(&mut self, limit: Duration) -> Result<Option<Event>, QmpError> {
        let event = self.client.next_event(limit);
        event.map_err(|error| self.process.explained(error))
    }

    /// A property of an object, such as `serial` of `/machine/peripheral/vda`.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn property(&mut self, path: &str, property: &str) -> Result<Value, QmpError> {
        self.ask("qom-get", json!({ "path": path, "property": property }))
    }

    /// What `query-named-block-nodes` tells of each node, by its name.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn nodes(&mut self) -> Result<Map<String, Value>, QmpError> {
        // Without `flat` each node brings its whole chain again, which for long chains is quadratic.
        let answer = self.ask("query-named-block-nodes", json!({ "flat": true }))?;
        let Value::Array(nodes) = answer else {
            return Err(QmpError::NotQmp(
                "query-named-block-nodes gives no list".to_owned(),
            ));
        };
        let named = nodes.into_iter().filter_map(|node| {
            let name = node["node-name"].as_str()?.to_owned();
            Some((name, node))
        });
        Ok(named.collect())
    }

    /// Tells it to end, and waits for that.
    ///
    /// # Errors
    /// If it does not end within `limit`; it is killed then.
    pub fn quit(mut self, limit: Duration) -> Result<ExitStatus, QmpError> {
        // The answer may get lost in the end.
        match self.client.ask("quit", json!({})) {
            Ok(_) | Err(QmpError::Ended { .. }) => {}
            Err(error) => return Err(self.process.explained(error)),
        }
        match self.process.wait(limit)? {
            Some(status) => Ok(status),
            None => Err(QmpError::Late {
                waiting_for: "quit".to_owned(),
                limit,
                said: self.process.said.so_far(),
            }),
        }
    }
}

impl Process {
    /// How it ended, within a limit.
    fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, QmpError> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if begun.elapsed() >= limit {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// An error with what this process has to say to it.
    fn explained(&mut self, error: QmpError) -> QmpError {
        match error {
            QmpError::Ended { .. } => {
                // It closes its monitor shortly before it is gone.
                let status = self.wait(Duration::from_secs(10)).ok().flatten();
                let said = match status {
                    Some(_) => self.said.all(),
                    None => self.said.so_far(),
                };
                QmpError::Ended { status, said }
            }
            QmpError::Late {
                waiting_for, limit, ..
            } => QmpError::Late {
                waiting_for,
                limit,
                said: self.said.so_far(),
            },
            other @ (QmpError::Start { .. }
            | QmpError::Refused { .. }
            | QmpError::NotQmp(_)
            | QmpError::Connect { .. }
            | QmpError::Socket(_)) => other,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
