//! `vmdisk trace`.

pub(crate) mod svg;
mod text;
mod traced;

use vmdisk::trace::{GuestTrace, trace};
use vmdisk::{Diagnostic, Document, report};

use crate::args::{TraceArgs, TraceFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::Host;
use crate::input::one;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;
use crate::values::choose;
use traced::Traced;

/// Runs the command.
pub(crate) fn run(args: &TraceArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let (input, document) = one::read_document(&args.file, &args.values, &args.storage, io)?;
    let host = Host::for_guest(&args.host, || document.facts_needed(), io, colors)?;
    let options = host.options(&args.host);
    let shows_all = args.start.is_none() && args.format == TraceFormat::Text;
    let mut assumed = Vec::new();
    let starts = match shows_all {
        true => document.into_starts(),
        false => vec![choose(document, args.start.as_deref(), &mut assumed)?],
    };
    for message in assumed {
        io.say(&format!("{}\n", message.render(colors.stderr)));
    }
    let mut all = Vec::new();
    for document in &starts {
        let mut guest = trace(document, &options);
        if let Some(name) = &args.disk {
            keep_disk(&mut guest, document, name)?;
        }
        let is_one = starts.len() == 1;
        let name = document.domain().name.clone();
        let name = name.map(|name| document.with_placeholders(name));
        all.push(Traced {
            file: match is_one {
                true => input.path(),
                false => format!("{}: {}", input.path(), document.start_in_words()),
            },
            domain: name.filter(|_| is_one),
            guest,
        });
    }
    let width = io.width(args.output.as_deref());
    let write = |traced: &Traced| match args.format {
        TraceFormat::Text => text::write(traced, width),
        TraceFormat::Json => {
            report::trace::to_json(&traced.file, traced.domain.as_deref(), &traced.guest)
        }
        TraceFormat::Svg => svg::write(traced),
    };
    let texts: Vec<String> = all.iter().map(write).collect();
    deliver(io, args.output.as_deref(), &texts.join("\n"))?;
    one::say_what_is_missing(&input.path(), &starts, io);
    for template in starts.iter().filter_map(Document::template) {
        let number = template.placeholders.len();
        io.say(&format!(
            "a template was traced without the values of its {number} placeholders; trace the rendered text for the rest\n"
        ));
    }
    let mut found = all.iter().flat_map(|traced| findings(&traced.guest));
    if found.any(|finding| finding.rule.name == "spec-refused") {
        return Err(
            Stop::new("the spec has mistakes, so no guest has exactly these paths")
                .help("`vmdisk lint` shows where the mistakes are"),
        );
    }
    let found = all.iter().flat_map(|traced| findings(&traced.guest));
    Ok(exit(args, found))
}

/// The shown findings.
fn findings(guest: &GuestTrace) -> impl Iterator<Item = &Diagnostic> {
    let attached = guest.disks.iter().flat_map(|disk| &disk.findings);
    attached.map(|(_, finding)| finding).chain(&guest.others)
}

fn exit<'f>(args: &TraceArgs, mut findings: impl Iterator<Item = &'f Diagnostic>) -> Exit {
    match args.fail_on {
        Some(least) if findings.any(|finding| finding.severity >= least) => Exit::Findings,
        Some(_) | None => Exit::Clean,
    }
}

/// Keeps the path of one disk.
fn keep_disk(guest: &mut GuestTrace, document: &Document, name: &str) -> Result<(), Stop> {
    let wanted = one::disks_called(document, name)?;
    guest
        .disks
        .retain(|traced| wanted.contains(&traced.disk.index));
    guest.others.clear();
    Ok(())
}
