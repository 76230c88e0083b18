//! Time limits for calls that a hung network mount never answers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

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
