//! Stopping a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

/// A request to stop, seen by everybody who holds a clone.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that nobody has used yet.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// A token that Ctrl-C and a request to terminate use; the second one ends the process at once.
    ///
    /// # Errors
    /// If the operating system refuses the handlers.
    pub fn on_signals() -> std::io::Result<Self> {
        let cancel = Cancel::new();
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            // The order matters: the first signal finds the flag unset here, and sets it below.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&cancel.0))?;
            signal_hook::flag::register(signal, Arc::clone(&cancel.0))?;
        }
        Ok(cancel)
    }

    /// Asks everybody to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// True once somebody asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// An error once somebody asked to stop.
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
