//! Cancellation of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Error;

/// Signals within this time count as one request.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// A cancellation flag shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Creates a flag that SIGINT and SIGTERM set.
    ///
    /// Signals within a second of the first count as one: `timeout` and terminals signal both the process and its group.
    /// A later signal ends the process immediately, and the next start cleans up.
    ///
    /// # Errors
    /// If the operating system refuses the handlers.
    pub fn on_signals() -> std::io::Result<Self> {
        let cancel = Cancel::new();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let other = cancel.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let mut first: Option<Instant> = None;
                for _ in signals.forever() {
                    match first {
                        None => {
                            first = Some(Instant::now());
                            other.cancel();
                        }
                        Some(first) if first.elapsed() < SAME_REQUEST => {}
                        Some(_) => signal_hook::low_level::exit(130),
                    }
                }
            })?;
        Ok(cancel)
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true once the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns an error once the run was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_sees_the_request() {
        let cancel = Cancel::new();
        let other = cancel.clone();
        assert!(other.check().is_ok());
        cancel.cancel();
        assert!(matches!(other.check(), Err(Error::Cancelled)));
    }
}
