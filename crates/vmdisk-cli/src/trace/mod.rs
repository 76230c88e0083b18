//! `vmdisk trace`.

pub(crate) mod json;
pub(crate) mod svg;
mod text;
mod traced;

use vmdisk::trace::{GuestTrace, trace};
use vmdisk::{Diagnostic, Document, LintOptions};

use crate::args::{TraceArgs, TraceFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::Host;
use crate::input::config_files::{self, DocumentWithFiles};
use crate::input::inputs::{Input, Origin};
use crate::input::{bounded, read, storage};
use crate::io::Io;
use crate::output::deliver;
use crate::stop::{Stop, plain};
use crate::values::choose;
use traced::Traced;

/// Runs the command.
pub(crate) fn run(args: &TraceArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let (input, document) = read_document(args, io)?;
    let mut host = Host::prepare(&args.host, None, io, colors)?;
    if args.host.live {
        host.collect(&document.facts_needed());
    }
    let index = host.index();
    let options = LintOptions {
        host: index.as_ref(),
        target: host.target(),
        policy: args.host.policy.unwrap_or_default(),
        ..LintOptions::default()
    };
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
        all.push(Traced {
            file: match is_one {
                true => input.path(),
                false => format!("{}: {}", input.path(), document.start_in_words()),
            },
            domain: document.domain().name.clone().filter(|_| is_one),
            guest,
        });
    }
    let write = match args.format {
        TraceFormat::Text => text::write,
        TraceFormat::Json => json::write,
        TraceFormat::Svg => svg::write,
    };
    let texts: Vec<String> = all.iter().map(write).collect();
    deliver(io, args.output.as_deref(), &texts.join("\n"))?;
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

/// The document with its configuration files, and with the volumes of `--storage` located.
fn read_document(args: &TraceArgs, io: &mut Io<'_>) -> Result<(Input, Document), Stop> {
    let is_stdin = args.file.as_os_str() == "-";
    let (file, origin) = match is_stdin {
        true => ("<stdin>".into(), Origin::Stdin),
        false => (args.file.clone(), Origin::Named),
    };
    let input = Input::new(file, origin).with(&args.values);
    let bytes = match is_stdin {
        true => bounded::stream(&mut *io.stdin).map_err(|error| {
            Stop::new(format!("could not read standard input: {}", plain(&error)))
        })?,
        false => read::file(&args.file)?,
    };
    let document = read::document(&input, &bytes)?;
    let DocumentWithFiles {
        mut document,
        failed,
    } = config_files::joined(&input, document)
        .map_err(|failure| read::message(&input, &bytes, failure))?;
    if let Some(Err(message)) = failed.map(|checked| checked.outcome) {
        return Err(Stop::from(message));
    }
    if !args.storage.is_empty() {
        document.locate_volumes(&storage::of_files(&args.storage)?);
    }
    Ok((input, document))
}

/// Keeps the path of one disk.
fn keep_disk(guest: &mut GuestTrace, document: &Document, name: &str) -> Result<(), Stop> {
    let alias = |index: usize| {
        let disk = document.domain().disks.get(index);
        disk.and_then(|disk| disk.frontend.alias.as_deref())
    };
    guest.disks.retain(|traced| {
        traced.disk.target.as_deref() == Some(name) || alias(traced.disk.index) == Some(name)
    });
    guest.others.clear();
    if guest.disks.is_empty() {
        let name = crate::sanitize::line(name);
        return Err(Stop::new(format!("no disk has the name `{name}`"))
            .help("use the target of a disk, such as vda, or the id of its device"));
    }
    Ok(())
}
