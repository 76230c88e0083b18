//! `vmdisk capture`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use vmdisk_capture::{CaptureEvent, CapturePlan, CapturedStart, Ended, FailedStep, capture};

use crate::exit::Exit;
use crate::input::bounded;
use crate::io::Io;
use crate::output::deliver_with;
use crate::sanitize::line;
use crate::stop::{Stop, plain};

#[derive(Args, Debug)]
pub(crate) struct CaptureArgs {
    /// The command, such as `./start.sh` or `make run`, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Seconds after which the command and all that it started are killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Folder that the command sees, besides the current one, that of a file which it names, and those of PATH; may be repeated.
    #[arg(long, value_name = "DIR")]
    show: Vec<PathBuf>,
    /// Run the command on this machine itself, with all rights of the user.
    #[arg(long)]
    no_sandbox: bool,
}

/// Runs a command, and prints what it gives to QEMU instead of starting it.
pub(crate) fn run(args: CaptureArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let words: Vec<_> = args.command.iter().map(|it| it.to_string_lossy()).collect();
    let name = line(&words.join(" ")).into_owned();
    if args.no_sandbox {
        io.say(&format!(
            "running `{name}` on this machine, without a sandbox\n"
        ));
    }
    let plan = CapturePlan {
        command: args.command,
        limit: Duration::from_secs(args.timeout),
        is_sandboxed: !args.no_sandbox,
        shown: args.show,
    };
    let mut starts = Vec::new();
    let mut notes = BTreeSet::new();
    let ended = capture(&plan, &mut |event| match event {
        CaptureEvent::Start(start) => starts.push(start),
        event => notes.extend(note(&event)),
    });
    let ended =
        ended.map_err(|error| Stop::new(format!("could not capture: {}", plain(&error))))?;
    for note in notes {
        io.say(&format!("{}\n", line(&note)));
    }
    if let Ended::Refused(refusal) = &ended {
        return Err(refused(refusal));
    }
    if starts.is_empty() {
        return Err(without_start(&name, &ended, &args.timeout));
    }
    print(&starts, io)?;
    let number = match starts.len() {
        1 => "1 start of QEMU".to_owned(),
        number => format!("{number} starts of QEMU"),
    };
    io.say(&match ended {
        Ended::Alone(0, _) | Ended::Refused(_) => format!("{number}\n"),
        Ended::Alone(status, failed) => {
            format!(
                "{number}; then `{name}` ended with exit status {status}{}\n",
                after(failed.as_deref())
            )
        }
        Ended::TooMuch => format!("{number}, which is too much: later ones are missing\n"),
        Ended::TimeIsUp => format!(
            "{number}; then the time of {} s was up: later starts are missing\n",
            args.timeout
        ),
    });
    Ok(Exit::Clean)
}

fn print(starts: &[CapturedStart], io: &mut Io<'_>) -> Result<(), Stop> {
    deliver_with(io, None, |out| {
        for start in starts {
            let text = serde_json::to_string(start).expect("its keys are texts");
            writeln!(out, "{text}")?;
        }
        Ok(())
    })
}

/// What else happened, in words.
fn note(event: &CaptureEvent) -> Option<String> {
    match event {
        CaptureEvent::Unanswered(asked) => Some(format!(
            "`{asked}` was not answered: there is no QEMU on this machine that does"
        )),
        CaptureEvent::NotFollowed(program) => Some(format!(
            "`{program}` ran: what it starts on another machine or in a container is not captured"
        )),
        CaptureEvent::ReadOnly(folder, why) => Some(format!(
            "the command cannot write to {folder}: no layer could be mounted over it ({why})"
        )),
        CaptureEvent::Start(_) | CaptureEvent::Ended(..) | CaptureEvent::Refused(_) => None,
    }
}

fn after(failed: Option<&str>) -> String {
    failed.map_or_else(String::new, |failed| {
        format!(", after {} failed", line(failed))
    })
}

fn without_start(name: &str, ended: &Ended, timeout: &u64) -> Stop {
    let how = match ended {
        Ended::TimeIsUp => format!("did not end within {timeout} s"),
        Ended::Alone(status, failed) => {
            format!(
                "ended with exit status {status}{}",
                after(failed.as_deref())
            )
        }
        Ended::Refused(_) | Ended::TooMuch => "wrote too much".to_owned(),
    };
    let help = match ended {
        Ended::TimeIsUp => "give it more time with --timeout, or input on standard input",
        Ended::Alone(..) | Ended::Refused(_) | Ended::TooMuch => {
            "give it the arguments and files with which it starts QEMU; a sandbox has no network, and of home and /tmp only the \
             folder of the command and those of --show"
        }
    };
    Stop::new(format!("`{name}` {how}, and started no QEMU")).help(help)
}

/// A sandbox that could not be made: what failed, and what helps.
fn refused(refusal: &FailedStep) -> Stop {
    let setting = |name: &str| bounded::text(&Path::new("/proc/sys").join(name)).ok();
    let is = |name: &str, value: &str| setting(name).is_some_and(|it| it.trim() == value);
    let cause = if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor restricts user namespaces here, as on Ubuntu since 23.10: run it as root, or allow them with \
         `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "this kernel has user namespaces only for root: run it as root, or allow them with \
         `sudo sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("user/max_user_namespaces", "0") {
        "user namespaces are forbidden here: allow them with `sudo sysctl user.max_user_namespaces=10000`"
    } else {
        "the sandbox needs Linux 5.11 with user namespaces; a container forbids them, unless it is started with rights for them"
    };
    let FailedStep { step, error } = refusal;
    Stop::new(format!(
        "the sandbox could not be made: could not {}: {}",
        line(step),
        line(error)
    ))
    .help(format!(
        "{cause}. `--no-sandbox` runs the command on this machine itself, with your rights"
    ))
}
