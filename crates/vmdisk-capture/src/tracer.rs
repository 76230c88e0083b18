//! Traces a command, and sees each program that it runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{set_child_subreaper, set_parent_process_death_signal};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use vmdisk_qemu::{Command as Form, Runner, asks, is_qemu};

use crate::call::Call;
use crate::event::{CaptureEvent, FailedStep};
use crate::recorder;
use crate::stage::{COMMAND, MYSELF};
use crate::start::CapturedStart;

/// Programs that start others elsewhere: on another machine or in a container, whose processes are not those of the command.
const ELSEWHERE: [&str; 12] = [
    "buildah",
    "ctr",
    "docker",
    "kubectl",
    "lxc",
    "machinectl",
    "nerdctl",
    "podman",
    "ssh",
    "systemd-nspawn",
    "vagrant",
    "virsh",
];

/// What a shell says for a command that it does not find.
const NOT_FOUND: u8 = 127;

/// Traces without namespaces: the folder of the recorders, then the command.
pub(crate) fn trace_here(arguments: &[OsString]) -> ExitCode {
    // Both are only about what becomes of processes whose parents end.
    let _ = set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    trace_and_report(arguments)
}

/// Traces the command, reports what it starts and then how it ended.
pub(crate) fn trace_and_report(arguments: &[OsString]) -> ExitCode {
    let Some((recorders, command)) = arguments.split_first() else {
        return ExitCode::FAILURE;
    };
    let event = match trace(Path::new(recorders), command) {
        Ok((status, failed)) => CaptureEvent::Ended(status, failed),
        Err(error) => CaptureEvent::Refused(FailedStep::new("trace the command", error)),
    };
    event.report();
    ExitCode::SUCCESS
}

/// Becomes the command: waits until it is traced, and lets only `execve` stop.
pub(crate) fn run_command(command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::FAILURE;
    };
    let prepared = ptrace::traceme()
        .and_then(|()| raise(Signal::SIGSTOP))
        .map_err(io::Error::from)
        .and_then(|()| filter());
    let error = match prepared {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    #[expect(clippy::print_stderr, reason = "this process has no other output")]
    {
        let (name, reason) = (program.to_string_lossy(), reason(program, &error));
        eprintln!("`{name}` could not be started: {reason}");
    }
    ExitCode::from(NOT_FOUND)
}

/// Reason why a program could not be started. Permissions are checked in each directory of PATH that has it, or may have it.
fn reason(program: &OsStr, error: &io::Error) -> String {
    let folders = match program.as_bytes().contains(&b'/') {
        true => vec![PathBuf::new()],
        false => recorder::path(),
    };
    let places = folders.into_iter().map(|it| it.join(program));
    let is_there = |it: &PathBuf| match it.metadata() {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    };
    let closed: Vec<String> = places
        .filter(is_there)
        .map(|it| it.display().to_string())
        .collect();
    let is_no_program = |path: &String| {
        let mode = std::fs::metadata(path).map(|it| it.permissions().mode());
        mode.is_ok_and(|mode| mode & 0o111 == 0)
    };
    match error.kind() {
        io::ErrorKind::PermissionDenied
            if !closed.is_empty() && closed.iter().all(is_no_program) =>
        {
            format!("{} is not executable", closed.join(", "))
        }
        io::ErrorKind::PermissionDenied if !closed.is_empty() => {
            format!(
                "the user who runs it here may not reach {}",
                closed.join(", ")
            )
        }
        _ => {
            let error = error.to_string();
            error
                .split(" (os error")
                .next()
                .unwrap_or(&error)
                .to_owned()
        }
    }
}

/// Installs the filter in this process and those that it starts.
fn filter() -> io::Result<()> {
    let calls = [libc::SYS_execve, libc::SYS_execveat].map(|call| (call, Vec::new()));
    let arch = std::env::consts::ARCH.try_into();
    let program = arch.and_then(|arch| {
        let (other, found) = (SeccompAction::Allow, SeccompAction::Trace(0));
        BpfProgram::try_from(SeccompFilter::new(calls.into(), other, found, arch)?)
    });
    let program = program.map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

/// Runs the command until all of its processes have ended; returns its status, and the last command that failed.
fn trace(recorders: &Path, command: &[OsString]) -> io::Result<(i32, Option<String>)> {
    let child = Command::new(MYSELF)
        .arg0(COMMAND)
        .args(command)
        .stdout(io::stderr().as_fd().try_clone_to_owned()?)
        .spawn()?;
    let first = Pid::from_raw(child.id().cast_signed());
    if let WaitStatus::Exited(..) = waitpid(first, Some(WaitPidFlag::__WALL))? {
        return Err(io::Error::other(
            "this system does not let processes be traced",
        ));
    }
    let options = Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(first, options)?;
    ptrace::cont(first, None)?;
    let mut tracer = Tracer {
        program: recorders.join(recorder::PROGRAM),
        known: HashSet::from([first]),
        running: HashMap::new(),
        failed: None,
        named: BTreeSet::new(),
    };
    let mut status = 0;
    loop {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::__WALL)) {
            Ok(event) => {
                if let Some(code) = tracer.take(event, first) {
                    status = code;
                }
            }
            Err(Errno::ECHILD) => return Ok((status, tracer.failed)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

struct Tracer {
    /// What runs instead of QEMU.
    program: PathBuf,
    /// The processes whose first stop was seen.
    known: HashSet<Pid>,
    /// The commands that processes run.
    running: HashMap<Pid, String>,
    /// The last command that failed.
    failed: Option<String>,
    /// Programs that were reported.
    named: BTreeSet<Vec<u8>>,
}

impl Tracer {
    /// Handles what became of a process; returns the status of the first when it ends.
    fn take(&mut self, event: WaitStatus, first: Pid) -> Option<i32> {
        // A process that was killed meanwhile is reported again.
        let go_on = |pid, signal| {
            let _ = ptrace::cont(pid, signal);
        };
        match event {
            WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_SECCOMP) => {
                match self.executes(pid) {
                    Ok(()) => go_on(pid, None),
                    // Nothing runs that could not be looked at.
                    Err(_) => {
                        let _ = kill(pid, Signal::SIGKILL);
                    }
                }
                None
            }
            WaitStatus::PtraceEvent(pid, ..) => {
                go_on(pid, None);
                None
            }
            WaitStatus::Stopped(pid, signal) => {
                let is_first = signal == Signal::SIGSTOP && self.known.insert(pid);
                go_on(pid, (!is_first).then_some(signal));
                None
            }
            WaitStatus::Exited(pid, code) => self.ended(pid, code, first),
            WaitStatus::Signaled(pid, signal, _) => self.ended(pid, 128 + signal as i32, first),
            _ => None,
        }
    }

    fn ended(&mut self, pid: Pid, code: i32, first: Pid) -> Option<i32> {
        self.known.remove(&pid);
        let command = self.running.remove(&pid);
        if let Some(command) = command.filter(|_| code != 0 && pid != first) {
            self.failed = Some(format!("`{command}` (exit status {code})"));
        }
        (pid == first).then_some(code)
    }

    /// A process is about to run a program.
    fn executes(&mut self, pid: Pid) -> io::Result<()> {
        let mut call = Call::of(pid)?;
        let words = call.arguments.iter().take(8);
        let words: Vec<_> = words.map(|word| String::from_utf8_lossy(word)).collect();
        self.running.insert(pid, words.join(" "));
        let name = file_name(&call.path);
        if is_qemu(&name) || is_qemu(&file_name(&followed(pid, &call.path))) {
            return self.starts(pid, &mut call);
        }
        if ELSEWHERE.contains(&&*name) && self.named.insert(name.clone().into_bytes()) {
            CaptureEvent::NotFollowed(name.clone()).report();
        }
        match Runner::named(&name).filter(|it| recorder::is_replaced(it)) {
            Some(runner) => self.runs(runner, &mut call),
            None => Ok(()),
        }
    }

    fn starts(&mut self, pid: Pid, call: &mut Call) -> io::Result<()> {
        let arguments = call.arguments.get(1..).unwrap_or_default();
        let words = arguments.iter().map(|word| String::from_utf8_lossy(word));
        if asks(&words.collect::<Vec<_>>()) {
            let path = followed(pid, &call.path);
            if file_name(&path) == recorder::PROGRAM {
                let asked = call.arguments.join(&b' ');
                CaptureEvent::Unanswered(String::from_utf8_lossy(&asked).into_owned()).report();
            }
            return Ok(());
        }
        let named = call.arguments.first().filter(|it| is_qemu(&file_name(it)));
        let program = named.unwrap_or(&call.path).clone();
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd"))?;
        CaptureEvent::Start(CapturedStart::new(
            program,
            arguments.to_vec(),
            folder.into(),
        ))
        .report();
        call.run_instead(&self.program)
    }

    /// Runs the arguments of a program that does nothing else.
    fn runs(&mut self, runner: &Runner, call: &mut Call) -> io::Result<()> {
        let words = call.arguments.iter().skip(1);
        let words: Vec<_> = words.map(|word| String::from_utf8_lossy(word)).collect();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        let Some(at) = runner.command_at(&words) else {
            let is_question = words.iter().any(|word| word.starts_with("has"));
            return match runner.after.is_empty() || runner.name == "tmux" && !is_question {
                // `sudo -v`; a server of tmux would not end.
                true => call.run_instead(&self.program),
                // `tmux has-session`, `ip link`: it does something else.
                false => Ok(()),
            };
        };
        let is_line = match runner.command {
            Form::Words => false,
            Form::Text => true,
            // What is typed is a line, and then the name of a key.
            Form::Either => {
                at + 1 == words.len() || words[..at].iter().any(|it| it.starts_with("send"))
            }
        };
        if is_line {
            return call.run_line(at + 1);
        }
        let is_variable = |word: &&str| !word.starts_with('-') && word.contains('=');
        let variables = words[..at].iter().rev().take_while(|it| is_variable(it));
        call.run_arguments(at + 1 - variables.count())
    }
}

/// The last part of a path.
fn file_name(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(name).into_owned()
}

/// The path behind links, as the process sees it; unchanged if there is nothing.
fn followed(pid: Pid, path: &[u8]) -> Vec<u8> {
    let folder = PathBuf::from(format!("/proc/{pid}/cwd"));
    let found = folder.join(OsStr::from_bytes(path)).canonicalize();
    found.map_or_else(
        |_| path.to_owned(),
        |it| it.into_os_string().as_bytes().to_owned(),
    )
}
