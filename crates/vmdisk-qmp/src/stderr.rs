//! Collects the output of a process while it runs.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Maximum number of collected bytes; further output is read, so that the process does not block, and dropped.
const MAX_BYTES: usize = 1 << 20;

/// The collected standard output or error of a process.
#[derive(Debug)]
pub struct OutputCollector {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl OutputCollector {
    /// Starts to read a pipe.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn of(mut pipe: impl Read + Send + 'static) -> std::io::Result<Self> {
        let text = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&text);
        let thread = std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                let mut block = [0; 4096];
                while let Ok(read @ 1..) = pipe.read(&mut block) {
                    let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MAX_BYTES - text.len();
                    text.extend_from_slice(&block[..read.min(room)]);
                }
            })?;
        Ok(OutputCollector {
            text,
            thread: Some(thread),
        })
    }

    /// Returns the output so far.
    pub fn so_far(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns all output of a process that has exited.
    ///
    /// A child of it may keep the pipe open for longer; this does not wait for it.
    pub fn all(&mut self) -> String {
        let begun = std::time::Instant::now();
        while let Some(thread) = &self.thread
            && !thread.is_finished()
            && begun.elapsed() < std::time::Duration::from_secs(1)
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.so_far()
    }
}
