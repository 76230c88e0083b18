//! Verdicts about a host: each question has one function, which answers with a reason or with the missing fact. Rules,
//! planner, advice and traces ask here and do not look at the facts behind a verdict.
//!
//! What becomes of flushes and discards in a stack of layers is in [`stack`](crate::stack), and what `O_DIRECT` does in
//! [`direct_io`](crate::direct_io).

pub mod aio;
pub mod allocation;
pub mod attachment;
pub mod file_system;
pub mod flash;
pub mod io_uring;
pub mod media;
pub mod raw_end;
pub mod redundancy;
pub mod volume_group;
