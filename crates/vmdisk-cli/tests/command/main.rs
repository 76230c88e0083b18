//! The command as its users see it: arguments in, streams and exit status out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests read what they wrote")]

mod advise_next;
mod allowances;
mod ansible;
mod apply;
mod apply_bus;
mod apply_changes;
mod apply_live;
mod apply_move;
mod apply_pairs;
mod apply_races;
mod apply_reclaim;
mod apply_script;
mod apply_states;
mod apply_undo;
mod bad_inputs;
mod baseline;
mod capabilities;
mod capture;
mod ci_guide;
mod command_lines;
mod completion;
mod config_files;
mod configuration;
mod convert;
mod exit_codes;
mod facts;
mod first_contact;
mod fixes;
mod fleet;
mod formats;
mod generate;
mod guests;
mod healthy;
mod hook;
mod host_itself;
mod hostile;
mod house_rules;
mod hypervisor;
mod image;
mod integration;
mod library;
mod links;
#[cfg(feature = "lsp")]
mod lsp;
#[cfg(feature = "lsp")]
mod lsp_neovim;
#[cfg(feature = "bench")]
mod measured;
mod new_storage;
mod nothing_to_check;
mod pages;
mod permissions;
mod planned;
mod planted;
mod reads;
mod reports;
mod sarif_schema;
mod scale;
mod script_templates;
mod scripts;
mod secrets;
mod selection;
mod signals;
mod specs;
mod storage;
mod streams;
mod tables;
mod templates;
mod unchecked;
mod virt_lint;
mod writes;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use vmdisk_testing::{copy_program, installed, libvirt_driver, needed, write_program};

/// A disk with a finding of severity error that `--fix` mends, and no other of that severity.
pub(crate) const UNSAFE: &str = "\
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2' cache='unsafe'/>
  <source file='/srv/web1.qcow2'/>
  <target dev='vda' bus='virtio'/>
</disk>
";

/// The same disk without it.
pub(crate) const CLEAN: &str = "\
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2' cache='writeback'/>
  <source file='/srv/web1.qcow2'/>
  <target dev='vda' bus='virtio'/>
</disk>
";

/// Programs of a distribution alone: not everybody reaches those in somebody's home, and they are not in a sandbox.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The program under test: this build, or the program of a release that VMDISK_PROGRAM names.
pub(crate) fn program() -> &'static str {
    static NAMED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("VMDISK_PROGRAM").ok());
    NAMED.as_deref().unwrap_or(env!("CARGO_BIN_EXE_vmdisk"))
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A directory of its own for one test.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// A directory with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let place = Place {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, text) in files {
            place.write(name, text.as_bytes());
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Writes a shell script that can be started.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let text = format!("#!/bin/sh\n{script}\n");
        write_program(&self.path(name), &text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The command, to be started in this directory.
    pub(crate) fn command(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        vmdisk(self.directory.path(), arguments)
    }

    /// Runs the command in this directory.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, b"")
    }

    /// Runs the command in this directory as a user whom permissions bind.
    pub(crate) fn run_unprivileged(&self, arguments: &[&str]) -> Run {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        use std::os::unix::process::CommandExt as _;
        /// The user without rights, on every Linux.
        const NOBODY: u32 = 65534;
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            return self.run(arguments);
        }
        // The directory of the built command may be closed to others.
        let copy = self.path("vmdisk");
        if !copy.exists() {
            copy_program(Path::new(program()), &copy);
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(self.path(""), open).unwrap();
        }
        let mut command = start(&copy, self.directory.path(), arguments);
        command.uid(NOBODY).gid(NOBODY).env("PATH", PATH);
        finish(command, b"")
    }

    /// Runs the command in this directory with something on its standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        finish(self.command(arguments), input)
    }
}

/// Runs a command with a terminal of this many columns as its output, and without its messages; `None` if there is no program that makes one.
pub(crate) fn on_columns(mut command: Command, columns: usize) -> Option<Run> {
    needed(installed("script"))?;
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let line = format!("stty cols {columns}; {} 2>/dev/null", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.current_dir(command.get_current_dir().unwrap());
    let variables = command.get_envs();
    script.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    command = script;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = finish(command, b"");
    Some(Run {
        stdout: run.stdout.replace("\r\n", "\n"),
        ..run
    })
}

/// A libvirt of its own below a directory, with its URI; none where that cannot run.
pub(crate) fn real_libvirt() -> Option<(tempfile::TempDir, String)> {
    let root = tempfile::tempdir().unwrap();
    needed(installed("qemu-img"))?;
    needed(libvirt_driver(root.path()))?;
    let uri = format!("qemu:///embed?root={}", root.path().display());
    Some((root, uri))
}

fn vmdisk(directory: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let built = Path::new(program());
    start(built, directory, arguments)
}

fn start(
    program: &Path,
    directory: &Path,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("CLICOLOR")
        // 2026-11-22: ages of facts are counted to it.
        .env("SOURCE_DATE_EPOCH", "1795305600")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn finish(mut command: Command, input: &[u8]) -> Run {
    let mut child = command.spawn().unwrap();
    // A command that does not read its input may close it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    Run {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr,
    }
}
