//! Data that is made while it is written.

use std::io::{self, Write};

/// Writes the data.
pub(crate) trait Contents: FnOnce(&mut dyn Write) -> io::Result<()> {}

impl<F: FnOnce(&mut dyn Write) -> io::Result<()>> Contents for F {}
