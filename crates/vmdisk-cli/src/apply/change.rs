//! Changes of a guest and of storage that are there: what may be done, and doing it.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd as _;

use vmdisk::facts::File;
use vmdisk::model::{
    Change, Controller, Disk, DiskField, Domain, DomainField, FieldPath, Format, Image, Protocol,
};
use vmdisk::plan::{Difference, KeptImage, Plan, PlannedChange, Spec, Step, StorageCopy, renamed};
use vmdisk::write::{add_devices, disk_xml_in};
use vmdisk::{Document, Source};
use vmdisk_collect::{Request, collect};
use vmdisk_source::{Edit, Span, apply_edits};

use super::failure::Failure;
use super::guest::{self, Existing};
use super::place;
use super::program;
use super::run::Run;
use super::state;
use crate::io::Io;

/// The definition of a guest before and after the changes.
pub(super) struct Definition<'a> {
    pub(super) before: String,
    pub(super) after: String,
    spec: &'a Spec,
    plan: &'a Plan,
    /// The keys that may differ afterwards.
    staying: Vec<String>,
}

impl Definition<'_> {
    /// A key of the guest that should be as planned, and is not.
    fn left(&self, now: &Document) -> Option<String> {
        let left = self.spec.differences(self.plan, now.domain());
        let mut keys = left.into_iter().map(|it| it.key);
        keys.find(|key| !self.staying.contains(key))
    }
}

/// Why a change of storage is not made, beside what its plan says.
pub(super) fn obstacles(change: &PlannedChange, plan: &Plan, guest: &Domain) -> Vec<String> {
    let backend = change.definition.backend.as_ref();
    let offline = backend.map(|(nth, new)| (*nth, new.image()));
    let live = change.live_copy().map(|copy| {
        let new = &plan.domain.disks[plan.steps[copy.step].disk];
        (copy.disk, new.backend.image())
    });
    if let Some((nth, new)) = offline.or(live) {
        let images = [guest.disks[nth].backend.image(), new];
        let name = guest.name.as_deref().unwrap_or_default();
        let used = |image: &Image| users(image, name, "is not copied");
        let kept = change.copy.as_ref().and_then(|it| it.kept.as_ref());
        let kept = kept.filter(|it| std::fs::symlink_metadata(&it.path).is_ok());
        let used = images.into_iter().flatten().flat_map(used);
        return used.chain(kept.map(KeptImage::refusal)).collect();
    }
    let Some(command) = &change.command else {
        return Vec::new();
    };
    let step = &plan.steps[command.step];
    let made = step.makes();
    let mut found = Vec::new();
    if let Ok(Some(file)) = state::opened(&made) {
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let unmet = command.needs.iter();
        let unmet = unmet.filter(|(equality, _)| !state::holds(equality, &made, &name));
        found.extend(unmet.map(|(_, why)| format!("{made} is not made larger: {why}")));
    }
    let guest = plan.domain.name.as_deref().unwrap_or_default();
    let image = plan.domain.disks[step.disk].backend.image();
    found.extend(image.map_or_else(Vec::new, |image| users(image, guest, "is not made larger")));
    found
}

/// Why something is not done with an image that other guests may use.
fn users(image: &Image, guest: &str, not_done: &str) -> Vec<String> {
    let path = match &image.protocol {
        Protocol::Volume(volume) => format!("{}/{}", volume.pool, volume.volume),
        _ => image.host_path().unwrap_or_default().to_owned(),
    };
    let why = match users_of(image, guest) {
        Ok(users) => users
            .into_iter()
            .map(|user| format!("the guest {user} of libvirt uses it, too"))
            .collect(),
        Err(why) => vec![format!(
            "whether another guest of libvirt uses it is not known: {why}"
        )],
    };
    why.iter()
        .map(|why| format!("{path} {not_done}: {why}"))
        .collect()
}

/// The other guests of libvirt that have the storage of an image, or have its file below an image; an error if libvirt
/// does not say.
fn users_of(own: &Image, guest: &str) -> Result<Vec<String>, String> {
    if !program::is_installed("virsh") {
        return Ok(Vec::new());
    }
    let answer = program::ask(&["virsh", "list", "--all", "--name"].map(str::to_owned))?;
    if !answer.is_success {
        return Err(format!("virsh list fails: {}", answer.stderr.trim()));
    }
    let others = answer.stdout.lines().map(str::trim);
    let others = others.filter(|name| !name.is_empty() && *name != guest);
    let uses = |name: &str| {
        let document = match guest::existing(name, true) {
            Existing::There(document) => document,
            Existing::Missing => return Ok(false),
            Existing::Unknown(why) => return Err(format!("the guest {name}: {why}")),
        };
        let disks = document.domain().disks.iter();
        let images: Vec<&Image> = disks
            .filter_map(|disk| disk.backend.image())
            .flat_map(Image::chain)
            .collect();
        let mut request = Request::new("");
        // The guest writes the header of a raw image.
        let named = images
            .iter()
            .filter(|image| image.format != Some(Format::Raw));
        request.chains = named
            .filter_map(|image| image.host_path())
            .map(Into::into)
            .collect();
        let is_it = |file: &File| {
            let real = file.real_path.value().map(String::as_str);
            let path = own.host_path();
            path.is_some() && (path == Some(&file.path) || path == real)
        };
        Ok(images.iter().any(|image| image.protocol == own.protocol)
            || collect(&request).files.iter().any(is_it))
    };
    let mut users = Vec::new();
    for name in others {
        if uses(name)? {
            users.push(name.to_owned());
        }
    }
    Ok(users)
}

/// The text of a definition whose disks have their new places.
fn placed(existing: &Document, changes: &[&PlannedChange]) -> Result<String, String> {
    let mut edits = Vec::new();
    for (nth, disk) in existing.domain().disks.iter().enumerate() {
        let mut new = disk.clone();
        for change in changes.iter().map(|it| &it.definition) {
            match &change.frontend {
                Some((of, frontend)) if *of == nth => new.frontend.clone_from(frontend),
                _ => {}
            }
            match &change.backend {
                Some((of, backend)) if *of == nth => new.backend.clone_from(backend),
                _ => {}
            }
        }
        if new == *disk {
            continue;
        }
        let written = disk_xml_in(existing, nth, &new).map_err(|error| error.to_string())?;
        let place = existing
            .source
            .source_map()
            .place(FieldPath::Disk(nth, DiskField::Disk))
            .ok_or("a disk has no place in its text")?;
        edits.push(Edit::replace(
            Span::new(place.span.start, place.whole.end),
            written.trim_end(),
        ));
    }
    apply_edits(&existing.text, &edits).map_err(|error| error.to_string())
}

/// The definition with the changes; an error says why its text cannot be given them. None if they change none.
pub(super) fn definition<'a>(
    existing: &Document,
    (spec, plan): (&'a Spec, &'a Plan),
    changes: &[&PlannedChange],
    staying: &[&Difference],
) -> Result<Option<Definition<'a>>, String> {
    let before = existing.text.to_string();
    let existing = &vmdisk::read(&placed(existing, changes)?).map_err(|failure| failure.message)?;
    let Source::LibvirtXml(source) = &existing.source else {
        return Err("libvirt does not print XML".to_owned());
    };
    let parts = || changes.iter().map(|change| &change.definition);
    let mut values: Vec<Change> = Vec::new();
    for change in parts().flat_map(|part| &part.changes) {
        // Several disks may need more iothreads; the count is the largest.
        let same = values.iter_mut().find(|it| it.at() == change.at());
        match same {
            Some(Change::Set { at, value }) if *at == THREADS => {
                let count = |text: &str| text.parse::<u32>().unwrap_or(0);
                if let Change::Set { value: new, .. } = change
                    && count(&new.to_string()) > count(&value.to_string())
                {
                    *value = new.clone();
                }
            }
            Some(_) => {}
            None => values.push(change.clone()),
        }
    }
    let mut controllers: Vec<Controller> = Vec::new();
    for controller in parts().flat_map(|it| &it.controllers) {
        if !controllers.contains(controller) {
            controllers.push(controller.clone());
        }
    }
    let disks: Vec<Disk> = parts().flat_map(|it| it.disks.clone()).collect();
    let removed = parts().filter_map(|it| it.removed);
    let removed = removed.map(|nth| {
        let place = source
            .source_map
            .place(FieldPath::Disk(nth, DiskField::Disk));
        place.map(|place| Edit::delete(place.whole))
    });
    let removed: Option<Vec<Edit>> = removed.collect();
    let text = &existing.text;
    let mut edits = add_devices(text, source, &controllers, &disks, &values)
        .map_err(|error| error.to_string())?;
    edits.extend(removed.ok_or("a disk has no place in its text")?);
    let after = apply_edits(text, &edits).map_err(|error| error.to_string())?;
    if after == before {
        return Ok(None);
    }
    let read = vmdisk::read(&after).map_err(|failure| failure.message)?;
    let mut names = BTreeSet::new();
    let disks = read.domain().disks.iter();
    if let Some(twice) = disks.map(Disk::name).find(|name| !names.insert(*name)) {
        return Err(format!(
            "two disks would have the name {twice}: allow the change of the other one, too"
        ));
    }
    let definition = Definition {
        before,
        after,
        spec,
        plan,
        staying: staying.iter().map(|it| it.key.clone()).collect(),
    };
    match definition.left(&read) {
        Some(key) => Err(format!("{key} would still differ")),
        None => Ok(Some(definition)),
    }
}

const THREADS: FieldPath = FieldPath::Domain(DomainField::IoThreads);

/// Runs the command of a change of storage.
pub(super) fn run_command<'s>(
    change: &PlannedChange,
    steps: &'s [Step],
    run: &Run<'s>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let Some(command) = &change.command else {
        return Ok(());
    };
    let step = &steps[command.step];
    let made = step.makes();
    // What is opened is what is changed: nobody can put a link there meanwhile.
    let file = match command.argv[0].as_str() {
        "qemu-img" => match state::opened(&made) {
            Ok(file) => file,
            Err(_) => return Err(Failure::Refused(format!("{made} was replaced meanwhile"))),
        },
        _ => None,
    };
    let argv = match &file {
        Some(file) => renamed(
            &command.argv,
            &made,
            &format!("/proc/self/fd/{}", file.as_raw_fd()),
        ),
        None => command.argv.clone(),
    };
    run.command(step, &argv, io)
}

/// Changes the guest if it runs; returns why only its next start does.
pub(super) fn make_live(change: &PlannedChange, name: &str) -> Option<String> {
    let live = change.live.as_ref().filter(|_| guest::is_running(name))?;
    let input = live.input.as_deref().map(program::ask).transpose();
    let answer = input.and_then(|input| {
        let input = input.map(|it| it.stdout).unwrap_or_default();
        program::answer(&live.argv, &input)
    });
    match answer {
        Ok(answer) if answer.is_success => None,
        Ok(answer) => Some(answer.stderr.trim().to_owned()),
        Err(why) => Some(why),
    }
}

/// Copies a disk of a guest that runs, and waits until the guest uses the copy. A copy that is stopped is ended, and what libvirt
/// has then decides.
pub(super) fn copy_live(
    change: &PlannedChange,
    steps: &[Step],
    name: &str,
    run: &Run<'_>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let Some((live, copy)) = change.live.as_ref().zip(change.live_copy()) else {
        return Ok(());
    };
    run.refuse_stopped()?;
    let step = &steps[copy.step];
    place::keep_name(&step.makes());
    let done = run.command(step, &live.argv, io);
    if done.is_err() {
        let _ = program::ask(&copy.stop);
    }
    let has = |is_inactive| match guest::existing(name, is_inactive) {
        Existing::There(now) => Some(guest::has(now.domain(), &copy.path)),
        Existing::Missing | Existing::Unknown(_) => None,
    };
    match (done, [false, true].map(has)) {
        (_, [Some(true), Some(true)]) => Ok(()),
        (Err(failure), [Some(false), Some(false)]) => Err(failure),
        (done, _) => {
            let why = done
                .err()
                .map_or_else(String::new, |it| format!(": {}", it.into_text()));
            Err(Failure::Unsettled(format!(
                "whether the guest {name} uses {} is not known{why}",
                copy.path
            )))
        }
    }
}

/// Gives the guest its new definition if it still has the one that was changed. A definition that libvirt keeps otherwise is
/// undone, and so is one that came too late: the guest was started, and writes storage of which there is a copy.
pub(super) fn define(
    name: &str,
    definition: &Definition,
    copied: &[&StorageCopy],
) -> Result<(), Failure> {
    if !copied.is_empty() && guest::is_running(name) {
        return Err(Failure::Refused(format!(
            "the guest {name} was started meanwhile: shut it off, and run it again"
        )));
    }
    let is_as_before = || match guest::existing(name, true) {
        Existing::There(now) => *now.text == *definition.before,
        Existing::Missing | Existing::Unknown(_) => false,
    };
    if !is_as_before() {
        return Err(Failure::Refused(format!(
            "the guest {name} was changed meanwhile: run it again"
        )));
    }
    // The new definition may be there all the same, and need the new storage.
    guest::define(&definition.after).map_err(|why| match is_as_before() {
        true => Failure::Failed(why),
        false => Failure::Unsettled(why),
    })?;
    let why = match guest::existing(name, true) {
        Existing::There(now) => {
            let mut copied = copied.iter();
            let is_late = copied.any(|copy| guest::runs_with(name, &copy.from));
            let late = is_late.then(|| "it was started meanwhile".to_owned());
            late.or_else(|| {
                let key = definition.left(&now)?;
                Some(format!("libvirt keeps another value of {key}"))
            })
        }
        Existing::Missing => Some("libvirt has no such guest any more".to_owned()),
        Existing::Unknown(why) => Some(why),
    };
    let Some(why) = why else {
        return Ok(());
    };
    Err(match guest::define(&definition.before) {
        Ok(()) => Failure::Failed(format!("the guest {name}: {why}; it is defined as before")),
        Err(error) => Failure::Unsettled(format!(
            "the guest {name}: {why}; and it cannot be defined as before: {error}"
        )),
    })
}
