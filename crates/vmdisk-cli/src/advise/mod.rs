//! `vmdisk advise`.

mod bench_plan;
pub(crate) mod json;
mod text;
mod whole_disk;

use std::ffi::OsString;
use std::path::{Component, Path};

use vmdisk::advise::{StorageCandidate, StorageIntent, advise};
use vmdisk::facts::FactsNeeded;
use vmdisk::plan::{Spec, shell_word};

use crate::args::{AdviseArgs, AdviseForm, Durability, GenerateForm, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::generate::explain;
use crate::generate::virt_install;
use crate::generate::write;
use crate::host::Host;
use crate::input::absolute::absolute;
use crate::io::Io;
use crate::next::again;
use crate::output::{deliver, deliver_exact};
use crate::stop::Stop;

/// Runs the command.
pub(crate) fn run(
    args: &AdviseArgs,
    arguments: &[OsString],
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
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
    if let Some(name) = &args.name {
        intent.name.clone_from(name);
    }
    intent.wants = args.wants.iter().copied().collect();
    intent.is_scratch = args.durability == Durability::Scratch;
    intent.load = args.workload;
    intent.os = args.os;
    intent.guests = args.guests;
    intent.places = places;
    let options = host.options(&args.host);
    if args.host.live {
        whole_disk::look(&mut intent, &options, vmdisk_collect::device_state);
    }
    let advice = advise(&intent, &options);
    let best = advice.fitting.first();
    let text = match (args.to, best) {
        (None, _) if args.format == TextFormat::Json => json::write(&advice),
        (None, _) => {
            let width = io.width(args.output.as_deref());
            let next = best.and_then(|_| next(args, &intent.name, arguments));
            text::write(&advice, args, width) + &next.unwrap_or_default()
        }
        (Some(_), None) => text::left_out(&advice),
        (Some(AdviseForm::Spec), Some(best)) => {
            whole_disk::comment(best) + &whole_spec(best, args).to_yaml()
        }
        (Some(AdviseForm::DiskXml), Some(best)) => {
            vmdisk::write::disks_xml(&best.plan.domain).map_err(write::unwritable)?
        }
        (Some(AdviseForm::Script), Some(best)) => {
            let script = write::creation(&best.plan, &options.target, GenerateForm::Script)?;
            script + &whole_disk::check(best)
        }
        (Some(AdviseForm::VirtInstall), Some(best)) => {
            let written = virt_install::write(&best.spec, &best.plan)?;
            written
                .warnings
                .iter()
                .for_each(|it| io.say(&format!("{}\n", it.render(colors.stderr))));
            written.text
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

/// The spec of the disk, of a guest if the guest has a name.
fn whole_spec(best: &StorageCandidate, args: &AdviseArgs) -> Spec {
    let mut spec = best.spec.clone();
    if args.name.is_some() {
        let guest = spec.guest.get_or_insert_default();
        guest.name.clone_from(&args.name);
    }
    spec
}

/// The commands that make the recommended disk, and its guest if that is known.
fn next(args: &AdviseArgs, name: &str, arguments: &[OsString]) -> Option<String> {
    let file = format!("{name}.yaml");
    let more = ["--to", "spec", "--output", &file];
    let spec = again(arguments, &["--output", "-o", "--format"], &more)?;
    let is_guest = args.name.is_some() && args.os.is_some();
    let define = if is_guest { " --define" } else { "" };
    let file = shell_word(&file);
    Some(format!(
        "\nnext:\n  {spec}\n  vmdisk apply {file}{define}\n"
    ))
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

/// The places of the intent, or those of the host: a group, a pool or a dataset has no path.
fn wanted_facts(places: &[String]) -> FactsNeeded {
    let (paths, others): (Vec<_>, Vec<_>) = places.iter().partition(|it| it.starts_with('/'));
    FactsNeeded {
        paths: paths.into_iter().cloned().collect(),
        places: places.is_empty() || !others.is_empty(),
        ..FactsNeeded::default()
    }
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
