//! Time limits for calls that a hung network mount never answers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::Exit;
use crate::sanitize;

/// The work in another thread, and the path that it looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Option<(Instant, PathBuf)>>>);

impl Progress {
    /// Notes that the work goes on, with this path.
    pub(crate) fn at(&self, path: &Path) {
        let now = (Instant::now(), path.to_owned());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// The path at which the work has stood still for this time.
    fn stuck(&self, limit: Duration) -> Option<PathBuf> {
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, path) = at.as_ref()?;
        (since.elapsed() >= limit).then(|| path.clone())
    }
}

/// The time after which a path that does not answer ends a command; a disk that starts to turn takes less.
pub(crate) const NO_ANSWER: Duration = Duration::from_secs(10);

/// Why a path is not looked at.
pub(crate) fn no_answer() -> String {
    let seconds = NO_ANSWER.as_secs();
    format!("no answer within {seconds} seconds, as from a network mount that hangs")
}

/// The paths that threads look at, each since when.
static LOOKED_AT: Mutex<Vec<(Instant, PathBuf)>> = Mutex::new(Vec::new());

/// Looks at a path. If that takes longer than [`NO_ANSWER`], the run ends: a call of the kernel cannot be given up.
pub(crate) fn look<T>(path: &Path, look: impl FnOnce() -> T) -> T {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(thread::spawn(end_if_stuck)));
    let looked_at = || LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = (Instant::now(), path.to_owned());
    looked_at().push(begun.clone());
    let seen = look();
    let mut looked_at = looked_at();
    if let Some(nth) = looked_at.iter().position(|at| *at == begun) {
        looked_at.swap_remove(nth);
    }
    seen
}

#[allow(
    clippy::exit,
    reason = "the thread that waits in the kernel cannot end the run"
)]
fn end_if_stuck() {
    loop {
        thread::sleep(NO_ANSWER / 10);
        let looked_at = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, path)) = looked_at
            .iter()
            .find(|(since, _)| since.elapsed() >= NO_ANSWER)
        {
            let said = format!("error: could not read {}: {}", path.display(), no_answer());
            // The thread that waits has locked the stream of the standard library.
            let _ = rustix::io::write(io::stderr(), (sanitize::line(&said) + "\n").as_bytes());
            std::process::exit(i32::from(Exit::CouldNot.code()));
        }
    }
}

/// Looks at the paths in the words of a command line.
pub(crate) fn look_at_words(words: &[OsString]) {
    for word in words {
        // `OPTION=PATH` and `FORMAT=PATH` too.
        let bytes = word.as_bytes();
        let start = bytes
            .iter()
            .rposition(|byte| *byte == b'=')
            .map_or(0, |at| at + 1);
        let path = Path::new(OsStr::from_bytes(&bytes[start..]));
        // Whether it exists is a question of whoever opens it.
        let _ = look(path, || path.metadata());
    }
}

/// Runs work in another thread; `None` if it does not end in time. A thread that hangs in the kernel cannot be stopped. It stays
/// until the program ends.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(limit).ok()
}

/// Runs work in another thread for as long as it makes progress, and returns the path at which it did not.
pub(crate) fn while_it_goes_on<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&Progress) -> T + Send + 'static,
) -> Result<T, PathBuf> {
    let progress = Progress::default();
    let of_work = progress.clone();
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || sender.send(work(&of_work)));
    loop {
        match receiver.recv_timeout(limit / 10) {
            Ok(done) => return Ok(done),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(path) = progress.stuck(limit) {
                    return Err(path);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let panicked = worker.join().expect_err("work that ends sends its result");
                std::panic::resume_unwind(panicked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_given_up_where_it_stands_still_and_not_for_its_length() {
        let limit = Duration::from_millis(200);
        let slow = while_it_goes_on(limit, move |progress| {
            for _ in 0..8 {
                progress.at(Path::new("/a"));
                thread::sleep(limit / 4);
            }
            1
        });
        assert_eq!(slow, Ok(1));
        let stuck = while_it_goes_on(limit, |progress| {
            progress.at(Path::new("/hung"));
            thread::sleep(Duration::from_secs(60));
        });
        assert_eq!(stuck, Err(PathBuf::from("/hung")));
    }
}
