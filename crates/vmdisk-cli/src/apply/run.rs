//! Runs steps, and removes what this run made if one of them fails.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use vmdisk::model::Bytes;
use vmdisk::plan::{Named, Step, StepKind, renamed};

use super::failure::Failure;
use super::place::{Made, Place, Private};
use super::program::{self, output};
use super::state;
use crate::io::Io;
use crate::sanitize;

/// The steps of a run.
pub(super) struct Run<'s> {
    is_stopped: Arc<AtomicBool>,
    pub(super) is_trusted: bool,
    /// The file that is being made.
    file: Option<(&'s Step, Private)>,
    made: Vec<(&'s Step, Thing)>,
}

/// What a step made.
enum Thing {
    File(Made),
    /// A volume, by the identity that its manager gave it, if it gives one.
    Named(Option<String>),
}

/// Time between two messages about a step that is still running.
const PROGRESS: Duration = Duration::from_secs(5);

impl<'s> Run<'s> {
    pub(super) fn new(is_trusted: bool) -> Self {
        // Images are for root and the hypervisor; other users must not read them.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let is_stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&is_stopped));
        }
        Run {
            is_stopped,
            is_trusted,
            file: None,
            made: Vec::new(),
        }
    }

    /// Runs the command of a step. A file is made in a private directory, and named after the last of its steps.
    pub(super) fn step(
        &mut self,
        step: &'s Step,
        is_last: bool,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        if let Some(thing) = step.makes_named() {
            if step.completes() {
                return self.command(step, &argv_on(step, thing)?, io);
            }
            self.command(step, &step.argv, io)?;
            self.made.push((step, Thing::Named(identity_of(thing))));
            return Ok(());
        }
        if step.makes_file() {
            let place = Place::of(&step.makes(), self.is_trusted)?;
            self.file = Some((step, Private::new(place)?));
        }
        // The last thing that happens to a file is its name.
        if step.kind != StepKind::Rename {
            let argv = match &self.file {
                Some((_, private)) => step.argv_at(&private.file()),
                None => step.argv.clone(),
            };
            self.command(step, &argv, io)?;
        }
        if is_last && let Some((first, private)) = self.file.take() {
            let made = match private.publish() {
                Ok(made) => made,
                Err((private, failure)) => {
                    self.file = Some((first, private));
                    return Err(failure);
                }
            };
            let is_found = made.is_found();
            let path = made.path().to_owned();
            self.made.push((first, Thing::File(made)));
            if !is_found {
                return Err(Failure::Refused(format!(
                    "{path} leads to another file than the one that was made"
                )));
            }
        }
        Ok(())
    }

    /// Refuses to go on after a signal.
    pub(super) fn refuse_stopped(&self) -> Result<(), Failure> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => Err(Failure::Failed("a signal stopped it".to_owned())),
            false => Ok(()),
        }
    }

    /// Runs a program until it ends, or a signal ends this run.
    pub(super) fn command(
        &self,
        step: &Step,
        argv: &[String],
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let mut shown = Duration::ZERO;
        let answer = program::run(argv, None, |elapsed| {
            if self.is_stopped.load(Ordering::Relaxed) {
                return Some("a signal stopped it".to_owned());
            }
            if elapsed >= shown + PROGRESS {
                shown = elapsed;
                let made = step.makes();
                let named = || std::fs::metadata(&made).map_or(0, |it| it.blocks() * 512);
                let allocated = self.file.as_ref();
                let allocated = allocated.map_or_else(named, |(_, file)| file.allocated());
                let so_far = Bytes(allocated).rounded();
                io.say(&format!("{}: {so_far} so far\n", sanitize::line(&made)));
            }
            None
        });
        let answer = answer.map_err(Failure::Failed)?;
        if answer.is_success {
            return Ok(());
        }
        let said = [answer.stderr.trim(), answer.stdout.trim()].join(" ");
        let said = said.trim();
        if step.kind == StepKind::Compare {
            let made = step.makes();
            let why = format!(
                "{made} does not have {}, and nothing is overwritten: {said}",
                step.why
            );
            return Err(Failure::Refused(why));
        }
        Err(Failure::Failed(format!("{} fails: {said}", argv[0])))
    }

    /// Removes what this run made, the last first; returns what was removed, and what could not be and why.
    pub(super) fn undo(mut self) -> (Vec<String>, Vec<String>) {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        if let Some((step, private)) = self.file.take() {
            private.end();
            removed.push(step.makes());
        }
        for (step, thing) in self.made.into_iter().rev() {
            let made = step.makes();
            let gone = match thing {
                Thing::File(file) => remove_made(file),
                Thing::Named(identity) => remove_named(step, identity.as_deref()),
            };
            match gone {
                Ok(()) => removed.push(made),
                Err(why) => left.push(format!("{made} is not removed again: {why}")),
            }
        }
        (removed, left)
    }
}

/// The longest time until a new volume has its device.
const DEVICE: Duration = Duration::from_secs(10);

/// The command of a step that completes a volume, with the path at which programs find it.
fn argv_on(step: &Step, thing: &Named) -> Result<Vec<String>, Failure> {
    let path = match thing {
        Named::PoolVolume { pool, volume } => path_of(pool, volume),
        _ => step.argv.last().cloned(),
    };
    let missing = || Failure::Failed(format!("{thing} has no path on this host"));
    let path = path
        .filter(|path| path.starts_with('/'))
        .ok_or_else(missing)?;
    let begun = Instant::now();
    while !Path::new(&path).exists() {
        if begun.elapsed() > DEVICE {
            return Err(missing());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(renamed(&step.argv, &step.makes(), &path))
}

const IN_USE: &str = "something uses it already";

fn remove_made(file: Made) -> Result<(), String> {
    match state::is_open_for_writing(file.path()) {
        true => Err(IN_USE.to_owned()),
        false => file.remove(),
    }
}

/// Removes a volume if it still is the one that was made. LVM and ZFS remove none that is open.
fn remove_named(step: &Step, identity: Option<&str>) -> Result<(), String> {
    let thing = step.makes_named().ok_or("it has no name")?;
    if identity_of(thing).as_deref() != identity {
        return Err("another one has its name".to_owned());
    }
    let made = step.makes();
    let is_in_use = match thing {
        // The removal of a pool would remove volumes that others made in it meanwhile.
        Named::Volume(_) if step.kind == StepKind::ThinPool => {
            let count = output(&["lvs", "--noheadings", "-o", "thin_count", "--", &made]);
            count.is_none_or(|it| it.trim() != "0")
        }
        // libvirt deletes a file that is open.
        Named::PoolVolume { pool, volume } => {
            path_of(pool, volume).is_none_or(|path| state::is_open_for_writing(&path))
        }
        _ => false,
    };
    if is_in_use {
        return Err(IN_USE.to_owned());
    }
    let answer = program::ask(&step.undo())?;
    answer
        .is_success
        .then_some(())
        .ok_or_else(|| answer.stderr.trim().to_owned())
}

/// What tells a volume from another one that has its name later.
fn identity_of(thing: &Named) -> Option<String> {
    let name = thing.name();
    let said = match thing {
        Named::Volume(_) => output(&["lvs", "--noheadings", "-o", "lv_uuid", "--", &name]),
        Named::Dataset(_) => output(&["zfs", "get", "-Hp", "-o", "value", "--", "guid", &name]),
        Named::PoolVolume { pool, volume } => path_of(pool, volume).map(|path| file_at(&path)),
        Named::Group(_) | Named::Pool(_) => None,
    };
    said.map(|said| said.trim().to_owned())
}

fn path_of(pool: &str, volume: &str) -> Option<String> {
    let path = output(&["virsh", "vol-path", "--pool", pool, "--", volume])?;
    Some(path.trim().to_owned())
}

/// The path of a volume with the numbers of its file and the time when it was made: a number is used again. Where the file
/// system keeps no such time, it is the time of the last change, so that a file that was changed is kept. A volume without a
/// file on this host has its name alone.
fn file_at(path: &str) -> String {
    // The standard library knows no birth time with musl.
    let wanted = StatxFlags::INO | StatxFlags::CTIME | StatxFlags::BTIME;
    let file = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok();
    let file = file.map(|file| {
        let device = (file.stx_dev_major, file.stx_dev_minor);
        let time = match file.stx_mask & StatxFlags::BTIME.bits() {
            0 => file.stx_ctime,
            _ => file.stx_btime,
        };
        (device, file.stx_ino, (time.tv_sec, time.tv_nsec))
    });
    format!("{path} {file:?}")
}
