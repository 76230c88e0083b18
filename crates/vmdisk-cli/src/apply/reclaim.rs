//! Giving back space that a guest does not use.

use vmdisk::plan::{PlannedChange, Step};

use super::failure::Failure;
use super::guest::{self, Existing};
use super::place::{self, Names};
use super::present::{present, states_of};
use super::program;
use super::run::Run;
use super::state::State;
use crate::args::ApplyArgs;
use crate::generate::Made;
use crate::stop::Stop;

/// Plans copies beside the images of a guest that is off. Returns what keeps space from being given back.
pub(super) fn prepare(made: &mut Made<'_>, args: &ApplyArgs) -> Result<Option<String>, Stop> {
    if !args.is_reclaiming() {
        return Ok(None);
    }
    let name = made.plan.domain.name.clone().unwrap_or_default();
    let existing = match args.define {
        true => guest::existing(&name, true),
        false => {
            return Ok(Some(
                "space of a guest is given back: add --define".to_owned(),
            ));
        }
    };
    let Existing::There(document) = existing else {
        return Ok(Some(format!(
            "libvirt does not say that there is a guest {name}"
        )));
    };
    let states = states_of(&made.plan);
    let have = present(made, &states, Some(&document), false);
    let others = made.changes(&have)?.changes;
    if !others.is_empty() || states.iter().any(|it| *it != State::Done) {
        let why = "space is given back when all disks are as planned: make the other changes first, without `reclaim`";
        return Ok(Some(why.to_owned()));
    }
    Ok(match have.is_running {
        true if !has_agent(&name) => Some(format!(
            "no guest agent answers in the guest {name}, which runs: install `qemu-guest-agent` in it (`channel: agent` for the \
             guest adds the channel), run `fstrim --all` in it, or shut it off, and get sparse copies"
        )),
        true => None,
        false if made.plan_beside()? => None,
        false => Some(
            "no disk gets a sparse copy: the spec has no image file with `size` and without preallocation; start the guest, \
             which discards what it does not use".to_owned(),
        ),
    })
}

/// True if the guest agent has opened its channel.
fn has_agent(name: &str) -> bool {
    let Existing::There(live) = guest::existing(name, false) else {
        return false;
    };
    let document = roxmltree::Document::parse(&live.text);
    document.is_ok_and(|document| {
        document.descendants().any(|it| {
            it.attribute("name") == Some("org.qemu.guest_agent.0")
                && it.attribute("state") == Some("connected")
        })
    })
}

/// Has the guest discard what it does not use, or gives copies the names of their images.
pub(super) fn run(
    change: &PlannedChange,
    steps: &[Step],
    name: &str,
    run: &Run<'_>,
) -> Result<(), Failure> {
    run.refuse_stopped()?;
    if let Some(live) = &change.live {
        let answer = program::run(&live.argv, None, |_| {
            run.refuse_stopped().err().map(Failure::into_text)
        });
        return match answer.map_err(Failure::Failed)? {
            answer if answer.is_success => Ok(()),
            answer => Err(Failure::Failed(format!(
                "virsh domfstrim fails: {}",
                answer.stderr.trim()
            ))),
        };
    }
    let Some((copy, kept)) = change
        .copy
        .as_ref()
        .and_then(|it| Some((it, it.kept.as_ref()?)))
    else {
        return Ok(());
    };
    let late = || {
        Failure::Refused(format!(
            "the guest {name} was started meanwhile: shut it off, and run it again"
        ))
    };
    if guest::is_off(name) != Some(true) {
        return Err(late());
    }
    let made = steps[copy.step].makes();
    place::keep_name(&made);
    let names = Names::of([&copy.from, &kept.path, &made], run.is_trusted)?;
    names.exchange()?;
    place::keep_name(&copy.from);
    match program::ask(&kept.check) {
        Ok(answer) if answer.is_success => Ok(()),
        _ => match names.restore() {
            Ok(()) => Err(late()),
            Err(failure) => Err(Failure::Unsettled(failure.into_text())),
        },
    }
}
