//! `vmdisk config`.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::atomic::{self, ReplaceError};
use crate::config::NAME;
use crate::exit::Exit;
use crate::io::Io;
use crate::sanitize::line;
use crate::stop::Stop;

/// A file in which every key is a comment.
const TEMPLATE: &str = include_str!("template.toml");

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Write a vmdisk.toml in which every key is explained and commented out. An existing file is not changed.
    Init(InitArgs),
}

#[derive(Args, Debug)]
struct InitArgs {
    /// The directory to write it into.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let ConfigCommand::Init(args) = &args.command;
    let path = args.directory.join(NAME);
    match atomic::create(&path, TEMPLATE.as_bytes()) {
        Ok(()) => {
            io.say(&format!("wrote {}\n", line(&path.display().to_string())));
            Ok(Exit::Clean)
        }
        Err(ReplaceError::Io(error)) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Stop::new(format!("{} exists", path.display())).help("edit it, or remove it first"))
        }
        Err(error) => Err(Stop::file("write", &path, error)),
    }
}
