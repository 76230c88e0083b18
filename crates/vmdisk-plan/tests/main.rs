//! All tests of the crate, in one program.

mod changes;
mod choices;
mod common;
mod decide;
mod differences;
mod document;
mod grid;
mod machine;
mod network;
mod of_domain;
mod one_liner;
mod plan;
mod real;
mod script;
mod spec;
