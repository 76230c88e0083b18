//! All tests of the crate, in one program.

mod any_domain;
#[path = "corpus/main.rs"]
mod corpus;
mod limits;
mod machines;
mod normal;
mod reading;
mod scripts;
#[path = "write/main.rs"]
mod write;
