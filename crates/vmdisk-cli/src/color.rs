//! Whether to colour what people read.

use crate::args::When;
use crate::io::Io;

/// Whether to colour data and messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colors {
    /// Data on standard output.
    pub(crate) stdout: bool,
    /// Messages on standard error.
    pub(crate) stderr: bool,
    /// Data in a file.
    pub(crate) file: bool,
    /// True if data on standard output has links.
    pub(crate) links: bool,
}

impl Colors {
    pub(crate) fn choose(when: When, io: &Io<'_>) -> Self {
        match when {
            When::Always => Colors {
                stdout: true,
                stderr: true,
                file: true,
                links: io.stdout_has_links,
            },
            When::Never => Colors {
                stdout: false,
                stderr: false,
                file: false,
                links: false,
            },
            When::Auto => Colors {
                stdout: io.stdout_has_color,
                stderr: io.stderr_has_color,
                file: false,
                links: io.stdout_has_color && io.stdout_has_links,
            },
        }
    }
}
