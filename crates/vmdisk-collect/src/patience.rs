//! Waiting only so long: a hung network mount must not hang the collector.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It took too long.
    Late,
    /// The thread could not be had, or panicked: a mistake of this program.
    Broken,
}

/// Runs something on a thread of its own, and gives up on it after a while.
///
/// A thread that hangs in the kernel cannot be stopped. It is left behind, and ends with the program.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GivenUp> {
    let (sender, receiver) = mpsc::channel();
    let spawned = thread::Builder::new()
        .name("collect".to_owned())
        .spawn(move || {
            // Nobody may be listening any more.
            let _ = sender.send(work());
        });
    if spawned.is_err() {
        return Err(GivenUp::Broken);
    }
    receiver.recv_timeout(limit).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => GivenUp::Late,
        mpsc::RecvTimeoutError::Disconnected => GivenUp::Broken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_takes_too_long_is_given_up() {
        let started = Instant::now();
        let answer = within(Duration::from_millis(20), || {
            thread::sleep(Duration::from_secs(30));
            1
        });
        assert_eq!(answer, Err(GivenUp::Late));
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(within(Duration::from_secs(10), || 1), Ok(1));
    }

    #[test]
    fn what_panics_is_no_answer() {
        assert_eq!(
            within(Duration::from_secs(10), || -> u8 { panic!("on purpose") }),
            Err(GivenUp::Broken)
        );
    }
}
