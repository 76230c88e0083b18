//! Availability of io_uring to this process, tested without creating a ring.

#![allow(
    unsafe_code,
    reason = "rustix marks io_uring_setup(2) as unsafe; the one call is below, with its reasons"
)]

use rustix::io::Errno;
use rustix::io_uring::{io_uring_params, io_uring_setup};
use vmdisk_facts::Fact;
use vmdisk_facts::path::TrialOutcome;

use crate::obstacle::errno_name;
use crate::root::Root;

/// Returns the result of io_uring_setup(2), or the recorded one.
pub(crate) fn setup(root: &Root) -> Fact<TrialOutcome> {
    if !root.is_live() {
        return root.answers().io_uring_setup.clone();
    }
    let outcome = Fact::Known(asked());
    if let Some(recorder) = root.recorder() {
        recorder.answer(|answers| answers.io_uring_setup = outcome.clone());
    }
    outcome
}

/// Requests a ring without entries, which always fails: the error is EINVAL if io_uring is allowed.
fn asked() -> TrialOutcome {
    let mut parameters = io_uring_params::default();
    // SAFETY: without flags the kernel dereferences no pointers in the parameters, and writes only to them.
    let ring = unsafe { io_uring_setup(0, &mut parameters) };
    match ring {
        Ok(_) | Err(Errno::INVAL) => TrialOutcome::Ok,
        Err(error) => TrialOutcome::Failed(errno_name(error)),
    }
}
