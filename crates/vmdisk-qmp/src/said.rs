//! What a process writes to its standard error, as it comes.

use std::io::Read;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What is kept; a process that repeats itself is read on, so that it does not stall, and no more is kept.
const MOST: usize = 1 << 20;

/// Collects what a process writes.
#[derive(Debug)]
pub(crate) struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Said {
    pub(crate) fn of(mut pipe: ChildStderr) -> std::io::Result<Self> {
        let text = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&text);
        let thread = std::thread::Builder::new()
            .name("stderr of QEMU".to_owned())
            .spawn(move || {
                let mut block = [0; 4096];
                while let Ok(read @ 1..) = pipe.read(&mut block) {
                    let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MOST - text.len();
                    text.extend_from_slice(&block[..read.min(room)]);
                }
            })?;
        Ok(Said {
            text,
            thread: Some(thread),
        })
    }

    /// Everything so far.
    pub(crate) fn so_far(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Everything, once the process has ended.
    ///
    /// A child of QEMU's may hold the pipe open for longer; it is not waited for.
    pub(crate) fn all(&mut self) -> String {
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
