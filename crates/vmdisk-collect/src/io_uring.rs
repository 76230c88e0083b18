//! Whether the kernel lets this process have io_uring: asked, and nothing made.

#![allow(
    unsafe_code,
    reason = "rustix marks io_uring_setup(2) as unsafe; the one call is below, with its reasons"
)]

use rustix::io::Errno;
use rustix::io_uring::{io_uring_params, io_uring_setup};
use vmdisk_facts::Fact;
use vmdisk_facts::path::Outcome;

use crate::obstacle::errno_name;
use crate::root::Root;

/// What io_uring_setup(2) gives, as it was when the system was recorded.
pub(crate) fn setup(root: &Root) -> Fact<Outcome> {
    if !root.is_live() {
        return root.answers().io_uring_setup.clone();
    }
    let outcome = Fact::Known(asked());
    if let Some(recorder) = root.recorder() {
        recorder.answer(|answers| answers.io_uring_setup = outcome.clone());
    }
    outcome
}

/// Asks for a ring without entries, which nobody gets: who may have one is told that its number is wrong.
fn asked() -> Outcome {
    let mut parameters = io_uring_params::default();
    // SAFETY: with no flags set the kernel looks at nothing that the parameters could point to, and writes only into them.
    let ring = unsafe { io_uring_setup(0, &mut parameters) };
    match ring {
        Ok(_) | Err(Errno::INVAL) => Outcome::Ok,
        Err(error) => Outcome::Failed(errno_name(error)),
    }
}
