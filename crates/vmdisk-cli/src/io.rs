//! The streams of a run, which tests replace.

use std::io::{Read, Write};
use std::path::Path;

use vmdisk_source::secrets::mask_output;

use crate::contents::Contents;

/// Where a run reads and writes.
///
/// Data is written to `stdout`, everything else to `stderr`.
pub struct Io<'a> {
    /// What `-` reads.
    pub stdin: &'a mut dyn Read,
    /// Where data goes.
    pub stdout: &'a mut dyn Write,
    /// Where messages and the summary go.
    pub stderr: &'a mut dyn Write,
    /// True if `stdout` shows colour, before `--color` is considered.
    pub stdout_has_color: bool,
    /// True if `stdout` is a terminal that may show links.
    pub stdout_has_links: bool,
    /// The width of the terminal that `stdout` is, and that a pager may fill.
    pub stdout_width: Option<usize>,
    /// True if `stderr` shows colour, before `--color` is considered.
    pub stderr_has_color: bool,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io")
            .field("stdout_has_color", &self.stdout_has_color)
            .field("stderr_has_color", &self.stderr_has_color)
            .finish_non_exhaustive()
    }
}

impl Io<'_> {
    /// The width for a text that is written to `stdout`, unless a file is named.
    pub(crate) fn width(&self, output: Option<&Path>) -> Option<usize> {
        self.stdout_width.filter(|_| output.is_none())
    }

    /// Writes a message for people, without the secrets that it quotes; a closed stream is not an error.
    pub(crate) fn say(&mut self, text: &str) {
        let _ = self.stderr.write_all(mask_output(text).as_bytes());
    }

    /// As [`Io::say`], with a text that is made while it is written.
    pub(crate) fn say_with(&mut self, write: impl Contents) {
        let mut text = Vec::new();
        let _ = write(&mut text);
        self.say(&String::from_utf8_lossy(&text));
    }
}
