//! `vmdisk print completions` and `vmdisk print man`: files that a package installs with the binary.

mod lists;

use std::fs;
use std::path::Path;

use clap::Command;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::atomic;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::pager;
use crate::stop::{Stop, plain};

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    let mut command = Cli::whole();
    clap_complete::generate(args.shell, &mut command, "vmdisk", &mut script);
    let script = lists::complete(args.shell, &String::from_utf8_lossy(&script), &command);
    deliver_exact(io, None, &script)?;
    Ok(Exit::Clean)
}

/// Shows the main page, or writes all of them.
pub(crate) fn man(args: &ManArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let mut command = Cli::whole().disable_help_subcommand(true);
    command.build();
    match &args.directory {
        None => {
            pager::manual(io, &page(command)?)?;
        }
        Some(directory) => {
            fs::create_dir_all(directory)
                .map_err(|error| Stop::file("create", directory, plain(&error)))?;
            write_all(directory, &command)?;
        }
    }
    Ok(Exit::Clean)
}

/// Writes the page of a command, and those of the commands below it.
fn write_all(directory: &Path, command: &Command) -> Result<(), Stop> {
    for below in command.get_subcommands() {
        write_all(directory, below)?;
    }
    let path = directory.join(manual(command.clone()).get_filename());
    atomic::write(&path, &page(command.clone())?).map_err(|error| Stop::file("write", &path, error))
}

fn page(command: Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    manual(command)
        .render(&mut page)
        .map_err(|error| Stop::new(format!("could not write a manual page: {error}")))?;
    Ok(page)
}

fn manual(command: Command) -> clap_mangen::Man {
    clap_mangen::Man::new(command)
        // Without a date, man would take the next field for one.
        .date(" ")
        .source(concat!("vmdisk ", env!("CARGO_PKG_VERSION")))
}
