//! All tests of the crate, in one program.

mod formats_by_hand;
mod fuzz_replay;
mod properties;
mod qcow2_by_hand;
mod real_formats;
mod real_qcow2;
mod support;
