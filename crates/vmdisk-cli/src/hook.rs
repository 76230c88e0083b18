//! `vmdisk hook`: a script that libvirt runs before it starts a guest.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::atomic;
use crate::exit::Exit;
use crate::io::Io;
use crate::parsers::selector;
use crate::sanitize::line;
use crate::stop::{Stop, plain};

const SCRIPT: &str = include_str!("hook.sh");

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
    /// The directory of libvirt's hooks.
    #[arg(long, value_name = "DIR", default_value = "/etc/libvirt/hooks")]
    directory: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &HookArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let HookCommand::Install(InstallArgs { refuse, directory }) = &args.command;
    let program = std::env::current_exe()
        .map_err(|error| Stop::new(format!("this program has no path: {}", plain(&error))))?;
    let folder = directory.join("qemu.d");
    std::fs::create_dir_all(&folder)
        .map_err(|error| Stop::file("create", &folder, plain(&error)))?;
    let path = folder.join("vmdisk");
    let script = SCRIPT
        .replace("@VMDISK@", &quoted(&program))
        .replace("@REFUSE@", &refuse.join(","));
    let write = |path: &Path| {
        atomic::write(path, script.as_bytes()).map_err(|error| error.to_string())?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).map_err(|error| plain(&error))
    };
    write(&path).map_err(|why| Stop::file("write", &path, why))?;
    let path = line(&path.display().to_string()).into_owned();
    io.say(&format!(
        "wrote {path}\n\
         libvirt runs it after `systemctl restart libvirtd` (or virtqemud)\n\
         libvirt before 6.5 runs only {}/qemu: call {path} \"$@\" there\n",
        line(&directory.display().to_string())
    ));
    Ok(Exit::Clean)
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
