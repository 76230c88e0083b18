//! Timeouts: a hung network mount must not hang the collector.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitError {
    /// The timeout expired.
    Timeout,
    /// The thread could not be spawned, or panicked: a bug here.
    Panicked,
}

/// Runs a function in a separate thread, with a timeout.
///
/// A thread that hangs in the kernel cannot be stopped. It stays until the program exits.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WaitError> {
    let (sender, receiver) = mpsc::channel();
    let spawned = thread::Builder::new()
        .name("collect".to_owned())
        .spawn(move || {
            // The receiver may have timed out.
            let _ = sender.send(work());
        });
    if spawned.is_err() {
        return Err(WaitError::Panicked);
    }
    receiver.recv_timeout(limit).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => WaitError::Timeout,
        mpsc::RecvTimeoutError::Disconnected => WaitError::Panicked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_function_over_its_timeout_is_abandoned() {
        let started = Instant::now();
        let answer = within(Duration::from_millis(20), || {
            thread::sleep(Duration::from_secs(30));
            1
        });
        assert_eq!(answer, Err(WaitError::Timeout));
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(within(Duration::from_secs(10), || 1), Ok(1));
    }

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(
            within(Duration::from_secs(10), || -> u8 { panic!("on purpose") }),
            Err(WaitError::Panicked)
        );
    }
}
