//! All tests of the crate, in one program.

mod chains;
mod loop_devices;
mod real_file_systems;
mod recorded;
mod recorded_hosts;
mod recording;
