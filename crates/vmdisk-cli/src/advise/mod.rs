//! `vmdisk advise`.

mod bench_plan;
pub(crate) mod json;
mod text;
mod whole_disk;

use std::path::{Component, Path};

use vmdisk::advise::{StorageIntent, advise};
use vmdisk::facts::FactsNeeded;

use crate::args::{AdviseArgs, AdviseForm, Durability, GenerateForm, TextFormat};
use crate::color::Colors;
use crate::config::absolute;
use crate::exit::Exit;
use crate::generate::explain;
use crate::generate::write;
use crate::host::Host;
use crate::io::Io;
use crate::output::{deliver, deliver_exact};
use crate::stop::Stop;

/// The directory in which libvirt creates images.
const IMAGES: &str = "/var/lib/libvirt/images";

/// Runs the command.
pub(crate) fn run(args: &AdviseArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let places: Vec<String> = args.places.iter().map(|it| whole_place(it)).collect();
    let mut host = Host::for_guest(&args.host, || wanted_facts(&places), io, colors)?;
    #[cfg(feature = "bench")]
    if let Some(mut facts) = host.facts().filter(|_| !args.measured.is_empty()).cloned() {
        for run in &args.measured {
            let run = crate::bench::to_facts::of_run(run)?;
            crate::bench::to_facts::add(&mut facts, run.measured);
        }
        host.set(vmdisk::Host::new(facts));
    }
    if host.facts().is_none() {
        return Err(Stop::new("the places of a host come from its facts")
            .help("pass --live or --facts FILE; `vmdisk facts DIRECTORY` collects them"));
    }
    let mut intent = StorageIntent::new(args.size);
    intent.name.clone_from(&args.name);
    intent.wants = args.wants.iter().copied().collect();
    intent.is_scratch = args.durability == Durability::Scratch;
    intent.load = args.workload;
    intent.places = places;
    let options = host.options(&args.host);
    if args.host.live {
        whole_disk::look(&mut intent, &options, vmdisk_collect::device_state);
    }
    let advice = advise(&intent, &options);
    let best = advice.fitting.first();
    let text = match (args.to, best) {
        (None, _) if args.format == TextFormat::Json => json::write(&advice),
        (None, _) => text::write(&advice, args.workload),
        (Some(_), None) => text::left_out(&advice),
        (Some(AdviseForm::Spec), Some(best)) => whole_disk::comment(best) + &best.spec.to_yaml(),
        (Some(AdviseForm::DiskXml), Some(best)) => {
            vmdisk::write::disks_xml(&best.plan.domain).map_err(write::unwritable)?
        }
        (Some(AdviseForm::Script), Some(best)) => {
            let script = write::creation(&best.plan, &options.target, GenerateForm::Script)?;
            script + &whole_disk::check(best)
        }
        (Some(AdviseForm::BenchPlan), Some(_)) => {
            bench_plan::write(&advice, args.workload, args.size).map_err(Stop::new)?
        }
    };
    match (args.to, best) {
        // Nothing fits, so there is no spec; the reasons are on standard error.
        (Some(_), None) => io.say(&text),
        (None, _) => deliver(io, args.output.as_deref(), &text)?,
        (Some(_), Some(_)) => deliver_exact(io, args.output.as_deref(), &text)?,
    }
    if let (Some(AdviseForm::DiskXml), Some(command)) =
        (args.to, best.and_then(whole_disk::command))
    {
        io.say(&format!(
            "before the disk is used, this must print nothing: {command}\n"
        ));
    }
    if let (true, Some(best)) = (args.explain, best) {
        io.say(&explain::choices(&best.plan));
    }
    Ok(match best {
        Some(_) => Exit::Clean,
        None => Exit::Findings,
    })
}

/// A directory by its whole path: `.`, `./images` and `../images` do not name volume groups.
fn whole_place(place: &str) -> String {
    let path = Path::new(place);
    match path.components().next() {
        Some(Component::CurDir | Component::ParentDir) => {
            let whole = absolute(path).into_os_string().into_string();
            whole.unwrap_or_else(|_| place.to_owned())
        }
        _ => place.to_owned(),
    }
}

/// The places of the intent, or the usual ones: libvirt's directory, and the disks and volumes with a name.
fn wanted_facts(places: &[String]) -> FactsNeeded {
    let mut needed = FactsNeeded::default();
    let paths = places.iter().filter(|place| place.starts_with('/'));
    needed.paths.extend(paths.cloned());
    let is_other = places.iter().any(|place| !place.starts_with('/'));
    if places.is_empty() {
        needed.paths.insert(IMAGES.to_owned());
        needed.paths.extend(names_in("/dev/disk/by-id"));
    }
    if places.is_empty() || is_other {
        needed.paths.extend(names_in("/dev/mapper"));
    }
    needed
}

fn names_in(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(directory))
        .into_iter()
        .flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_begins_with_a_dot() {
        let here = std::env::current_dir().unwrap();
        let here = here.canonicalize().unwrap();
        assert_eq!(whole_place("."), here.to_str().unwrap());
        assert_eq!(whole_place("./src"), here.join("src").to_str().unwrap());
        assert_eq!(whole_place(".."), here.parent().unwrap().to_str().unwrap());
        for place in ["/srv/img", "vg0", "vg0/thin", "tank/vm"] {
            assert_eq!(whole_place(place), place);
        }
    }
}
