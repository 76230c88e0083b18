//! All tests of the crate, in one program.

mod direct_io;
mod flash;
mod index;
mod no_contents;
mod reading;
mod round_trip;
mod schema;
mod stack;
