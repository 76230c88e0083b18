//! `vmdisk hook`: a script that libvirt runs before it starts a guest.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use crate::atomic;
use crate::exit::Exit;
use crate::input::bounded::{self, MAX_BYTES};
use crate::io::Io;
use crate::parsers::selector;
use crate::sanitize::line;
use crate::stop::{Stop, plain};

const SCRIPT: &str = include_str!("hook.sh");

/// The words by which a script of this program is known.
const MARK: &str = "`vmdisk hook install` wrote this file";

/// The mode bits with which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

#[derive(Args, Debug)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Let libvirt check each guest with the facts of this host before it starts, and log the findings.
    ///
    /// libvirt 6.5 and later runs the script after a restart of its daemon. Remove the file to stop it.
    Install(InstallArgs),
}

#[derive(Args, Debug)]
struct InstallArgs {
    /// Refuse to start a guest with an error of these rules or groups, such as data-safety; by default every guest starts.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = selector(), hide_possible_values = true)]
    refuse: Vec<String>,
    /// What a failure of vmdisk does, such as a guest that it cannot read, a crash or a time-out; by default, it refuses the
    /// start if --refuse is given.
    #[arg(long, value_name = "WHAT", value_enum)]
    on_failure: Option<OnFailure>,
    /// The seconds after which a check that has not ended is a failure.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    timeout: u32,
    /// The directory of libvirt's hooks.
    #[arg(long, value_name = "DIR", default_value = "/etc/libvirt/hooks")]
    directory: PathBuf,
}

/// What a failure of vmdisk does to the start of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnFailure {
    /// The guest does not start.
    Refuse,
    /// The guest starts.
    Start,
}

/// Runs the command.
pub(crate) fn run(args: &HookArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let HookCommand::Install(args) = &args.command;
    let program = std::env::current_exe()
        .map_err(|error| Stop::new(format!("this program has no path: {}", plain(&error))))?;
    if let Some(why) = replaceable_by_others(&program)? {
        let title = format!("libvirt would run {} as root, and {why}", program.display());
        return Err(Stop::new(title)
            .help("install vmdisk where only root can write, such as /usr/local/bin"));
    }
    let folder = args.directory.join("qemu.d");
    let path = folder.join("vmdisk");
    refuse_foreign(&path)?;
    std::fs::create_dir_all(&folder)
        .map_err(|error| Stop::file("create", &folder, plain(&error)))?;
    atomic::write_program(&path, script(args, &program).as_bytes())
        .map_err(|error| Stop::file("write", &path, error))?;
    let path = line(&path.display().to_string()).into_owned();
    io.say(&format!(
        "wrote {path}\n\
         libvirt runs it after `systemctl restart libvirtd` (or virtqemud)\n\
         libvirt before 6.5 runs only {}/qemu: call {path} \"$@\" there\n",
        line(&args.directory.display().to_string())
    ));
    Ok(Exit::Clean)
}

fn script(args: &InstallArgs, program: &Path) -> String {
    let on_failure = match (args.on_failure, args.refuse.is_empty()) {
        (Some(OnFailure::Start), _) | (None, true) => "start",
        (Some(OnFailure::Refuse), _) | (None, false) => "refuse",
    };
    // The path last, because it may hold anything.
    SCRIPT
        .replace("@REFUSE@", &args.refuse.join(","))
        .replace("@ON_FAILURE@", on_failure)
        .replace("@LIMIT@", &args.timeout.to_string())
        .replace("@VMDISK@", &quoted(program))
}

/// Returns why another user than root can put another program at a path without links, if one can.
fn replaceable_by_others(program: &Path) -> Result<Option<String>, Stop> {
    for path in program.ancestors() {
        let metadata =
            std::fs::metadata(path).map_err(|error| Stop::file("read", path, plain(&error)))?;
        let path = path.display();
        if metadata.uid() != 0 {
            return Ok(Some(format!("{path} belongs to user {}", metadata.uid())));
        }
        if metadata.mode() & OTHERS_WRITE != 0 {
            let mode = metadata.mode() & 0o7777;
            return Ok(Some(format!("others can write {path} (mode {mode:04o})")));
        }
    }
    Ok(None)
}

/// Fails if there is a hook that this program did not write.
fn refuse_foreign(path: &Path) -> Result<(), Stop> {
    let found = bounded::open_regular(path).and_then(|file| bounded::contents(file, MAX_BYTES));
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(text) if String::from_utf8_lossy(&text).contains(MARK) => Ok(()),
        Ok(_) => Err(Stop::new(format!(
            "{} is a hook that vmdisk did not write",
            path.display()
        ))
        .help("remove or rename it first; libvirt runs every program in this directory")),
        Err(error) => Err(Stop::file("read", path, plain(&error))),
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
