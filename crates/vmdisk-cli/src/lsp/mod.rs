//! `vmdisk lsp`: the language server on this process's standard streams, with the settings of `vmdisk lint`.

mod settings;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::args::LspArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::{Stop, plain};
use settings::Files;

/// Serves an editor until it exits.
pub(crate) fn run(args: &LspArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let failed = |error: io::Error| Stop::new(format!("the editor's messages: {}", plain(&error)));
    // Messages are read in another thread, and this one holds the locks of the standard streams.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    let mut files = Files::new(args, io, colors);
    let output = io::BufWriter::new(output);
    let end = vmdisk_lsp::serve(input, output, &mut files).map_err(failed)?;
    Ok(Exit::clean_if(end.is_orderly))
}
