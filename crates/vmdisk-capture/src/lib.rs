//! Internal to vmdisk: runs a command, and records the QEMUs that it starts instead of starting them.
//!
//! One mechanism sees a start: ptrace stops each process of the command when it calls `execve`, before the kernel looks for
//! the program. So it does not matter how the program is named, whether it exists, or what the environment is. A start is
//! reported and replaced by a program that ends at once; a program that only runs its arguments, such as `sudo`, is replaced
//! by `env` or `sh` with these arguments. A seccomp filter makes nothing but `execve` stop.
//!
//! The command runs in namespaces of its own, see `sandbox`. vmdisk starts itself for each step that needs a process of
//! its own, and `is_stage` recognizes it by its name:
//!
//! 1. `capture` (no namespace) starts the sandbox, maps its user, reads its reports and ends it when the time is up;
//! 2. `sandbox::enter` makes the namespaces and mounts;
//! 3. `sandbox::trace`, the first process of the PID namespace, gives up its capabilities and traces;
//! 4. `tracer::run_command` becomes the command.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod call;
mod capture;
mod event;
mod mounts;
mod recorder;
mod sandbox;
mod stage;
mod start;
mod tracer;

use std::ffi::OsString;
use std::process::ExitCode;

pub use capture::{CapturePlan, Ended, capture};
pub use event::{CaptureEvent, FailedStep};
pub use start::{CapturedStart, Word};

use stage::{COMMAND, SANDBOX, TRACER, UNBOXED};

/// True if this process is a step of a capture.
pub fn is_stage() -> bool {
    stage().is_some()
}

fn stage() -> Option<&'static str> {
    let name = std::env::args_os().next()?;
    let mut stages = [SANDBOX, TRACER, UNBOXED, COMMAND].into_iter();
    stages.find(|stage| name == *stage)
}

/// Runs this process as the step of a capture that it is.
pub fn run_stage() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match stage() {
        Some(SANDBOX) => sandbox::enter(&arguments),
        Some(TRACER) => sandbox::trace(&arguments),
        Some(UNBOXED) => tracer::trace_here(&arguments),
        Some(COMMAND) => tracer::run_command(&arguments),
        Some(_) | None => ExitCode::FAILURE,
    }
}
