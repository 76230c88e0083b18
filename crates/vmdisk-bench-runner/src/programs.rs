//! External programs of a run: each has a time limit and ends with the run.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::{Cancel, Error};

/// Interval for polling a program.
const POLL: Duration = Duration::from_millis(20);

/// Returns a command set up like every program of a run.
///
/// It runs in its own process group: its children are killed with it, and Ctrl-C reaches it only through the run.
/// The kernel kills it when the thread that started it ends, even after `kill -9`.
pub(crate) fn command<S: AsRef<OsStr>>(argv: &[S]) -> Command {
    let (program, arguments) = argv.split_first().expect("a program has a name");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LC_ALL", "C")
        // LVM warns about every inherited file descriptor.
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::null())
        .process_group(0);
    die_with_parent(&mut command);
    command
}

#[allow(
    unsafe_code,
    reason = "the standard library has no other way to set the parent's death signal"
)]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let set = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have exited before the signal was requested.
        if rustix::process::getppid() != Some(parent) {
            return Err(std::io::Error::from(rustix::io::Errno::SRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls; it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(set);
    }
}

/// A running program; dropping it kills the program and its children.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
}

impl RunningProgram {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| {
            Error::missing(name.clone(), "this", format!("failed to start: {error}"))
        })?;
        Ok(Self {
            name,
            child,
            ended: None,
        })
    }

    /// Returns the exit status, if the program has exited.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .map_err(|error| Error::program(&self.name, error))?;
        }
        Ok(self.ended)
    }

    /// Waits for the program to exit; kills it after the limit or on cancellation.
    pub(crate) fn wait(&mut self, limit: Duration, cancel: &Cancel) -> Result<ExitStatus, Error> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if cancel.is_cancelled() {
                self.kill();
                return Err(Error::Cancelled);
            }
            if Instant::now() > until {
                self.kill();
                return Err(Error::Budget(format!(
                    "{} did not finish within {} s",
                    self.name,
                    limit.as_secs()
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Terminates the program, and kills it if it is still running after two seconds.
    pub(crate) fn stop(&mut self) {
        if !matches!(self.ended(), Ok(None)) {
            return;
        }
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            if !matches!(self.ended(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        self.kill();
    }

    fn kill(&mut self) {
        if self.ended.is_some() {
            // The process id may be reused by now.
            return;
        }
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }

    /// Returns the processor time used so far by all threads, in seconds.
    pub(crate) fn processor_seconds(&self) -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        processor_seconds(&text)
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }
}

/// Returns user plus system time from the `stat` file of a process.
fn processor_seconds(stat: &str) -> Option<f64> {
    /// Ticks per second in /proc.
    const USER_HZ: f64 = 100.0;
    // The program name is in parentheses and may contain spaces; the times are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some((user + system) as f64 / USER_HZ)
}

/// Measures the processor time of programs during a sample.
#[derive(Debug)]
pub(crate) struct ProcessorTime {
    began: Instant,
    before: Option<f64>,
}

impl ProcessorTime {
    /// Starts from the processor time used so far.
    pub(crate) fn begin(used: Option<f64>) -> Self {
        Self {
            began: Instant::now(),
            before: used,
        }
    }

    /// Returns the share of the time used since then that belongs to the timed seconds of a sample.
    pub(crate) fn of_sample(&self, used: Option<f64>, timed_seconds: f64) -> Option<f64> {
        let taken = self.began.elapsed().as_secs_f64();
        let used = used? - self.before?;
        (taken > 0.0 && used >= 0.0).then(|| used * (timed_seconds / taken).min(1.0))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(None)) {
            self.kill();
        }
    }
}

/// The output of a program that succeeded.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program and returns the bytes it prints.
pub(crate) fn bytes<S: AsRef<OsStr>>(
    argv: &[S],
    limit: Duration,
    cancel: &Cancel,
) -> Result<Vec<u8>, Error> {
    Ok(ended_well(command(argv), limit, cancel)?.0)
}

/// Runs a program to completion.
pub(crate) fn output<S: AsRef<OsStr>>(
    argv: &[S],
    limit: Duration,
    cancel: &Cancel,
) -> Result<Output, Error> {
    output_of(command(argv), limit, cancel)
}

/// Like [`output`], in a given directory.
pub(crate) fn output_in<S: AsRef<OsStr>>(
    directory: &Path,
    argv: &[S],
    limit: Duration,
    cancel: &Cancel,
) -> Result<Output, Error> {
    let mut command = command(argv);
    command.current_dir(directory);
    output_of(command, limit, cancel)
}

fn output_of(command: Command, limit: Duration, cancel: &Cancel) -> Result<Output, Error> {
    let (stdout, stderr) = ended_well(command, limit, cancel)?;
    Ok(Output {
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

fn ended_well(
    mut command: Command,
    limit: Duration,
    cancel: &Cancel,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = RunningProgram::start(&mut command)?;
    let stdout = running.child.stdout.take();
    let stderr = running.child.stderr.take();
    let (status, stdout, stderr) = std::thread::scope(|scope| {
        let stdout = scope.spawn(|| whole(stdout));
        let stderr = scope.spawn(|| whole(stderr));
        let status = running.wait(limit, cancel);
        // Both readers end with the program, which has exited or was killed with its children.
        let (stdout, stderr) = (stdout.join(), stderr.join());
        (
            status,
            stdout.unwrap_or_default(),
            stderr.unwrap_or_default(),
        )
    });
    let status = status?;
    if status.success() {
        return Ok((stdout, stderr));
    }
    let said = String::from_utf8_lossy(&stderr);
    let said = said.trim();
    Err(Error::program(
        &running.name,
        format!(
            "{} ({status})",
            if said.is_empty() { "no output" } else { said }
        ),
    ))
}

/// Runs a quick program and returns its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    const LIMIT: Duration = Duration::from_secs(120);
    let argv = [&[program], arguments].concat();
    // A change to the host must not be interrupted, so cancellation waits for it.
    Ok(output(&argv, LIMIT, &Cancel::new())?.stdout)
}

/// Returns true if a program with this name is on the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

fn whole(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // Keep the output before an error.
        let _ = stream.read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_over_its_time_limit_is_killed_with_its_children() {
        let cancel = Cancel::new();
        let began = Instant::now();
        let error = output(
            &["sh", "-c", "sleep 30 & wait"],
            Duration::from_millis(100),
            &cancel,
        )
        .unwrap_err();
        assert!(matches!(error, Error::Budget(_)), "{error}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn processor_time_is_read_after_a_name_with_spaces_and_parentheses() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 3 0 5 6 7";
        assert_eq!(processor_seconds(stat), Some(2.0));
        assert_eq!(processor_seconds("12 (x) S 1"), None);
        let mut command = command(&["sh", "-c", "while :; do :; done"]);
        let running = RunningProgram::start(&mut command).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while running.processor_seconds().unwrap() == 0.0 {
            assert!(Instant::now() < until, "it used no processor time");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn cancellation_ends_a_program() {
        let cancel = Cancel::new();
        let other = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            other.cancel();
        });
        let error = output(&["sleep", "30"], Duration::from_secs(20), &cancel).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        thread.join().unwrap();
    }

    #[test]
    fn the_error_contains_the_output_of_the_program() {
        let error = run("sh", &["-c", "echo out; echo no such thing >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
        assert!(error.to_string().contains('3'), "{error}");
        assert_eq!(run("echo", &["a b"]).unwrap(), "a b\n");
        assert!(run("/nonexistent/program", &[]).is_err());
    }
}
