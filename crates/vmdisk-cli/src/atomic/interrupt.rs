//! Temporary files and folders, which are removed if a signal ends the run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::input::bounded;

static TEMPORARY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static IS_HANDLED_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Whoever creates a temporary file, names it or removes it holds the lock.
fn temporary() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves signals to the command, which ends in order.
pub(crate) fn is_handled_elsewhere() {
    IS_HANDLED_ELSEWHERE.store(true, Ordering::Relaxed);
}

/// Makes something temporary: no signal ends the run between its creation and the note of it.
pub(crate) fn create<T>(
    make: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> std::io::Result<T> {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(handle_signals);
    let mut temporary = temporary();
    let made = make()?;
    temporary.insert(path(&made).to_owned());
    Ok(made)
}

/// Ends the life of something temporary: gives it its name, or removes it.
pub(crate) fn end<T>(path: &Path, end: impl FnOnce() -> T) -> T {
    let mut temporary = temporary();
    let ended = end();
    temporary.remove(path);
    ended
}

/// As [`end`], if it ends: nothing changed otherwise.
pub(crate) fn end_if(
    path: &Path,
    end: impl FnOnce() -> std::io::Result<bool>,
) -> std::io::Result<bool> {
    let mut temporary = temporary();
    let is_over = end()?;
    if is_over {
        temporary.remove(path);
    }
    Ok(is_over)
}

/// Without a handler, the files stay, as after `kill -9`.
fn handle_signals() {
    if IS_HANDLED_ELSEWHERE.load(Ordering::Relaxed) {
        return;
    }
    // A shell ignores SIGINT for what it starts in the background, and nohup ignores SIGHUP.
    let ignored = ignored_signals();
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| {
        let bit = 1u64 << (signal - 1);
        ignored & bit == 0
    });
    let Ok(mut signals) = Signals::new(handled) else {
        return;
    };
    let _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let temporary = temporary();
                for path in temporary.iter() {
                    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
                }
                // The process dies of the signal, as it would without a handler.
                let _ = emulate_default_handler(signal);
            }
        });
}

/// The signals that the process was started without, as a set of bits.
fn ignored_signals() -> u64 {
    let status = bounded::text(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
