//! All tests of the crate, in one program.

mod advise;
mod call_changes;
mod decide;
#[path = "devices/main.rs"]
mod devices;
mod fixtures;
#[path = "host_io/main.rs"]
mod host_io;
mod integrators;
mod known_bad;
mod misuse;
#[path = "pages/main.rs"]
mod pages;
mod probes;
mod redact;
mod refused_by_programs;
mod refused_chains;
mod refused_devices;
mod specs;
mod templates;
mod verdicts;
mod versions;
