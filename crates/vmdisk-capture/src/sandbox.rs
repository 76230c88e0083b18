//! The sandbox: namespaces of its own without any capability, for root as well.
//!
//! | what | how |
//! |---|---|
//! | files | every mount is read-only and without devices, see [`mounts`]; a layer on the shown folders takes writes |
//! | processes, shared memory, network | PID, IPC, UTS, cgroup and network namespaces |
//! | rights | a user namespace with one ordinary user, no capability, `no_new_privs`, and no further user namespaces |
//! | `/proc`, `/sys` | read-only: root of the host owns its settings, with or without capabilities |
//! | the terminal | a session of its own: the kernel takes no typed characters from it |
//!
//! All of this is util-linux's `unshare` and bubblewrap's way, made by vmdisk itself: bubblewrap has layers only since 0.11, and
//! `unshare` lets root keep its user.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{fs, io};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid, setsid};
use rustix::mount::MountFlags;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use crate::event::{CaptureEvent, FailedStep};
use crate::mounts::{self, Mounts};
use crate::stage::{MYSELF, TRACER};
use crate::{recorder, tracer};

/// The longest wait for the first step to map the user.
const MAPPED_WITHIN: Duration = Duration::from_secs(10);

/// The second step: makes the namespaces and mounts, and starts the third. The arguments are the current folder, the number of
/// shown folders, these folders, and the command.
pub(crate) fn enter(arguments: &[OsString]) -> ExitCode {
    match entered(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            CaptureEvent::Refused(refusal).report();
            ExitCode::FAILURE
        }
    }
}

fn entered(arguments: &[OsString]) -> Result<(), FailedStep> {
    let wrong = || FailedStep::new("read the arguments", "too few");
    let [current, number, rest @ ..] = arguments else {
        return Err(wrong());
    };
    let number = number.to_str().and_then(|it| it.parse().ok());
    let (shown, command) = number
        .and_then(|it| rest.split_at_checked(it))
        .ok_or_else(wrong)?;
    let sockets = sockets();
    new_namespaces()?;
    wait_for_user()?;
    let mounts = Mounts {
        current: Path::new(current),
        shown: shown.iter().map(PathBuf::from).collect(),
        sockets,
    };
    let recorders = mounts.make()?;
    keep_capabilities().map_err(|error| FailedStep::new("keep its capabilities", error))?;
    let status = Command::new(MYSELF)
        .arg0(TRACER)
        .arg(&recorders)
        .args(command)
        .env("PATH", recorder::path_with(&recorders))
        .current_dir(current)
        .status();
    let status = status.map_err(|error| FailedStep::new("start a process in it", error))?;
    match status.success() {
        true => Ok(()),
        false => Err(FailedStep::new("run the command", status)),
    }
}

fn new_namespaces() -> Result<(), FailedStep> {
    // A terminal sends its signals to the first step alone, and takes no input from here.
    let _ = setsid();
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    unshare(flags).map_err(|error| FailedStep::new("make namespaces", error.desc()))
}

/// Waits until the first step has mapped a user, and becomes it.
fn wait_for_user() -> Result<(), FailedStep> {
    let refused = |error: String| FailedStep::new("become an ordinary user in it", error);
    let mapped = |file: &str| {
        let text = fs::read_to_string(file).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let begun = Instant::now();
    let user: u32 = loop {
        // The group is mapped before the user.
        match mapped("/proc/self/uid_map") {
            Some(user) => break user,
            None if begun.elapsed() > MAPPED_WITHIN => return Err(refused("no user".to_owned())),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let group = mapped("/proc/self/gid_map").ok_or_else(|| refused("no group".to_owned()))?;
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    // An ordinary user may not give up groups, and has no more rights by them than before.
    let _ = setgroups(&[]);
    setresgid(group, group, group)
        .and_then(|()| setresuid(user, user, user))
        .map_err(|error| refused(error.desc().to_owned()))?;
    // A change of user forgets it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    Ok(())
}

/// Lets the next program of this process keep the capabilities in the namespaces.
fn keep_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for capability in sets.permitted.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The third step, which is the first process of the PID namespace: the arguments are the folder of the recorders and the
/// command.
pub(crate) fn trace(arguments: &[OsString]) -> ExitCode {
    match give_up_rights() {
        Ok(()) => tracer::trace_and_report(arguments),
        Err(refusal) => {
            CaptureEvent::Refused(refusal).report();
            ExitCode::SUCCESS
        }
    }
}

fn give_up_rights() -> Result<(), FailedStep> {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)
        .map_err(|error| FailedStep::new("mount /proc", error))?;
    // A further one would have its capabilities again.
    fs::write("/proc/sys/user/max_user_namespaces", "0")
        .map_err(|error| FailedStep::new("forbid further user namespaces", error))?;
    mounts::read_only(Path::new("/proc"), flags)
        .map_err(|error| FailedStep::new("make /proc read-only", error))?;
    for capability in CapabilitySet::all().iter() {
        // The kernel may be older than one of them.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // Nobody looks into this process, which has the pipe to the first step.
    clear_ambient_capability_set()
        .and_then(|()| set_no_new_privs(true))
        .and_then(|()| set_capabilities(None, none))
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .map_err(|error| FailedStep::new("give up its capabilities", error))
}

/// The sockets of this host that have a path. A read-only mount does not keep anybody from connecting to them.
fn sockets() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = table.lines().filter_map(|line| {
        let at = line.find(" /")?;
        Some(PathBuf::from(&line[at + 1..]))
    });
    paths.collect()
}
