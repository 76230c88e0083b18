//! `vmdisk advise`.

mod bench_plan;
pub(crate) mod json;
mod text;

use std::path::Path;

use vmdisk::advise::{StorageIntent, advise};
use vmdisk::facts::FactsNeeded;

use crate::args::{AdviseArgs, AdviseForm, Durability, GenerateForm, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::generate::explain;
use crate::generate::write;
use crate::host::Host;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;

/// The directory in which libvirt creates images.
const IMAGES: &str = "/var/lib/libvirt/images";

/// Runs the command.
pub(crate) fn run(args: &AdviseArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut host = Host::for_guest(&args.host, || wanted_facts(&args.places), io, colors)?;
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
    intent.places.clone_from(&args.places);
    let options = host.options(&args.host);
    let advice = advise(&intent, &options);
    let best = advice.fitting.first();
    let text = match (args.to, best) {
        (None, _) if args.format == TextFormat::Json => json::write(&advice),
        (None, _) => text::write(&advice, args.workload),
        (Some(_), None) => text::left_out(&advice),
        (Some(AdviseForm::Spec), Some(best)) => best.spec.to_yaml(),
        (Some(AdviseForm::DiskXml), Some(best)) => {
            vmdisk::write::disks_xml(&best.plan.domain).map_err(write::unwritable)?
        }
        (Some(AdviseForm::Script), Some(best)) => {
            write::creation(&best.plan, &options.target, GenerateForm::Script)?
        }
        (Some(AdviseForm::BenchPlan), Some(_)) => {
            bench_plan::write(&advice, args.workload, args.size).map_err(Stop::new)?
        }
    };
    match (args.to, best) {
        // Nothing fits, so there is no spec; the reasons are on standard error.
        (Some(_), None) => io.say(&text),
        _ => deliver(io, args.output.as_deref(), &text)?,
    }
    if let (true, Some(best)) = (args.explain, best) {
        io.say(&explain::choices(&best.plan));
    }
    Ok(match best {
        Some(_) => Exit::Clean,
        None => Exit::Findings,
    })
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
