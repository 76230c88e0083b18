//! A running QEMU that this process started.

use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::client::{Client, Greeting};
use crate::error::QmpError;
use crate::event::Event;
use crate::stderr::OutputCollector;

/// A running QEMU; dropping it kills the process.
#[derive(Debug)]
pub struct QemuProcess {
    process: Process,
    client: Client,
}

/// A process that is killed on drop.
#[derive(Debug)]
struct Process {
    child: Child,
    stderr: OutputCollector,
}

impl QemuProcess {
    pub(crate) fn greet(
        child: Child,
        stderr: OutputCollector,
        stream: UnixStream,
        timeout: Duration,
    ) -> Result<Self, QmpError> {
        let mut process = Process { child, stderr };
        match Client::over(stream, timeout) {
            Ok(client) => Ok(QemuProcess { process, client }),
            Err(error) => Err(process.explained(error)),
        }
    }

    /// Returns the greeting.
    pub fn greeting(&self) -> &Greeting {
        self.client.greeting()
    }

    /// Returns the process id.
    pub fn process_id(&self) -> u32 {
        self.process.child.id()
    }

    /// Returns its standard error so far, such as warnings.
    pub fn stderr(&self) -> String {
        self.process.stderr.so_far()
    }

    /// Kills it and returns its whole standard error.
    pub fn end(mut self) -> String {
        // Both fail only if the process has already exited.
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
        self.process.stderr.all()
    }

    /// Sets the timeout for answers.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.client.set_timeout(timeout);
    }

    /// Executes a command and returns its answer.
    ///
    /// # Errors
    /// See [`Client::ask`]; if the process exited, the error has its status and standard error.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        let answer = self.client.ask(command, arguments);
        answer.map_err(|error| self.process.explained(error))
    }

    /// Returns the next event, waiting up to `limit`; `None` if there was none.
    ///
    /// # Errors
    /// See [`Client::next_event`].
    pub fn next_event(&mut self, limit: Duration) -> Result<Option<Event>, QmpError> {
        let event = self.client.next_event(limit);
        event.map_err(|error| self.process.explained(error))
    }

    /// Returns a property of an object, such as `serial` of `/machine/peripheral/vda`.
    ///
    /// # Errors
    /// See [`Client::ask`].
    pub fn property(&mut self, path: &str, property: &str) -> Result<Value, QmpError> {
        self.ask("qom-get", json!({ "path": path, "property": property }))
    }

    /// Returns the `query-named-block-nodes` entry of each node, by name.
    ///
    /// # Errors
    /// See [`Client::ask`].
    pub fn nodes(&mut self) -> Result<Map<String, Value>, QmpError> {
        // Without `flat` each node repeats its whole chain, which is quadratic in the length of the chain.
        let answer = self.ask("query-named-block-nodes", json!({ "flat": true }))?;
        let Value::Array(nodes) = answer else {
            return Err(QmpError::NotQmp(
                "`query-named-block-nodes` returned no list".to_owned(),
            ));
        };
        let named = nodes.into_iter().filter_map(|node| {
            let name = node["node-name"].as_str()?.to_owned();
            Some((name, node))
        });
        Ok(named.collect())
    }

    /// Asks it to quit, and waits for its exit.
    ///
    /// # Errors
    /// If it does not exit within `limit`; it is then killed.
    pub fn quit(mut self, limit: Duration) -> Result<ExitStatus, QmpError> {
        // The connection may close before the answer.
        match self.client.ask("quit", json!({})) {
            Ok(_) | Err(QmpError::Ended { .. }) => {}
            Err(error) => return Err(self.process.explained(error)),
        }
        match self.process.wait(limit)? {
            Some(status) => Ok(status),
            None => Err(QmpError::Timeout {
                waiting_for: "quit".to_owned(),
                limit,
                stderr: self.process.stderr.so_far(),
            }),
        }
    }
}

impl Process {
    /// Waits for the exit status, up to a limit.
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

    /// Adds the exit status and the standard error to an error.
    fn explained(&mut self, error: QmpError) -> QmpError {
        match error {
            QmpError::Ended { .. } => {
                // The monitor closes shortly before the process exits.
                let status = self.wait(Duration::from_secs(10)).ok().flatten();
                let stderr = match status {
                    Some(_) => self.stderr.all(),
                    None => self.stderr.so_far(),
                };
                QmpError::Ended { status, stderr }
            }
            QmpError::Timeout {
                waiting_for, limit, ..
            } => QmpError::Timeout {
                waiting_for,
                limit,
                stderr: self.stderr.so_far(),
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
        // Both fail only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
