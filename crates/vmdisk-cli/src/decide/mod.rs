//! `vmdisk decide`.

mod next;
mod text;

use std::ffi::OsString;

use vmdisk::plan::{PlanError, set_options};
use vmdisk::{Decisions, Document, Source, Target, decide, report, write};

use crate::args::{DecideArgs, DecideFormat};
use crate::color::Colors;
use crate::convert::spec;
use crate::exit::Exit;
use crate::generate::attach;
use crate::generate::spec::one_liner;
use crate::host::Host;
use crate::input::inputs::{Input, Origin};
use crate::input::{config_files, one};
use crate::io::Io;
use crate::output::{deliver, deliver_exact};
use crate::render::message::Message;
use crate::report::diff;
use crate::stop::Stop;
use crate::values::choose;

/// Runs the command.
pub(crate) fn run(
    args: &DecideArgs,
    arguments: &[OsString],
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let (input, document) = read(args, io, colors)?;
    let host = Host::for_guest(&args.host, || document.facts_needed(), io, colors)?;
    let options = host.options(&args.host);
    let is_wanted: Box<dyn Fn(usize) -> bool> = match &args.name {
        Some(name) => {
            let wanted = one::disks_called(&document, name)?;
            Box::new(move |nth| wanted.contains(&nth))
        }
        None => Box::new(|_| true),
    };
    let files = config_files::texts(&document);
    let of_start = |document: &Document| document.start_in_words();
    let read_again = |own: &str| {
        let read = vmdisk::read_with_config_files(own, &files, &input.values)?;
        let mut starts = read.into_starts();
        let same = starts
            .iter()
            .position(|start| of_start(start) == of_start(&document));
        Ok(starts.swap_remove(same.unwrap_or_default()))
    };
    let decisions = decide(&document, is_wanted, &read_again, &options);
    let of_libvirt = next::of_libvirt(args, &document, &decisions, arguments);
    let text = match args.format {
        DecideFormat::Text => {
            let text = text::write(&decisions, io.width(args.output.as_deref()));
            let next = next::in_the_file(args, &document, &decisions, arguments);
            let next = next.into_iter().chain(of_libvirt.clone());
            text + &next.collect::<Vec<_>>().concat()
        }
        DecideFormat::Json => report::decide::to_json(&input.path(), &decisions),
        DecideFormat::Xml => {
            let disks = decisions.disks.iter();
            disks.filter_map(|disk| decisions.xml(disk)).collect()
        }
        DecideFormat::Spec => as_spec(&decisions, &input, &options.target, io, colors)?,
        DecideFormat::Diff => {
            let (before, after) = (document.own_text(), decisions.document.own_text());
            diff::unified(&input.file, before, after)
        }
    };
    match args.format {
        DecideFormat::Text => deliver(io, args.output.as_deref(), &text)?,
        // The disk is a configuration; errors in JSON are masked where they are made.
        DecideFormat::Json | DecideFormat::Xml | DecideFormat::Diff | DecideFormat::Spec => {
            deliver_exact(io, args.output.as_deref(), &text)?;
        }
    }
    one::say_what_is_missing(&input.path(), std::slice::from_ref(&document), io);
    let names: Vec<String> = decisions
        .not_written
        .iter()
        .map(|at| document.breadcrumb(*at))
        .collect();
    if args.format == DecideFormat::Diff && !names.is_empty() {
        let what = format!(
            "not in the diff, because the text cannot be edited there: {}",
            names.join(", ")
        );
        io.say(&format!(
            "{}\n",
            Message::warning(what).render(colors.stderr)
        ));
    }
    if let (DecideFormat::Diff, Some(next)) = (args.format, of_libvirt) {
        io.say(&next);
    }
    if matches!(args.format, DecideFormat::Text | DecideFormat::Xml) {
        for message in needed(&document, &decisions.document) {
            io.say(&format!("{}\n", message.render(colors.stderr)));
        }
    }
    let is_decided = decisions.disks.iter().all(|disk| disk.options.is_ok());
    Ok(match is_decided {
        true => Exit::Clean,
        false => Exit::CouldNot,
    })
}

/// The guest whose disks are decided.
fn read(args: &DecideArgs, io: &mut Io<'_>, colors: Colors) -> Result<(Input, Document), Stop> {
    let (input, document) = match (&args.file, &args.disk) {
        (Some(file), _) => one::read_document(file, &args.values, &args.storage, io)?,
        (None, Some(text)) => of_one_liner(text)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let mut assumed = Vec::new();
    let document = choose(document, args.start.as_deref(), &mut assumed)?;
    for message in assumed {
        io.say(&format!("{}\n", message.render(colors.stderr)));
    }
    if let Source::Spec(_) = document.source {
        return Err(
            Stop::new("the options that a spec leaves open are chosen when it is planned")
                .help("`vmdisk generate --explain` shows the reason for each"),
        );
    }
    Ok((input, document))
}

/// The guest with the chosen options, as a spec, with a warning for each part that it does not carry.
fn as_spec(
    decisions: &Decisions,
    input: &Input,
    target: &Target,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<String, Stop> {
    let after = &decisions.document;
    let written = spec::written(after.domain(), after, input, target)?;
    for warning in written.warnings {
        io.say(&format!("{}\n", warning.render(colors.stderr)));
    }
    Ok(written.text)
}

/// What the domain must have for the chosen options, beside its disks.
fn needed(before: &Document, after: &Document) -> Vec<Message> {
    let there = attach::elements(before.domain()).unwrap_or_default();
    let is_new = |element: &String| !there.contains(element);
    attach::warnings(after.domain(), is_new).unwrap_or_default()
}

/// A disk of `--disk`, with the options that it sets.
fn of_one_liner(text: &str) -> Result<(Input, Document), Stop> {
    let disk = one_liner("--disk", text).map_err(Stop)?;
    let disk = set_options(&disk).map_err(|errors| {
        let message =
            |error: &PlanError| Message::error(error.message.clone()).help(error.help.clone());
        Stop(errors.iter().map(message).collect())
    })?;
    let read = write::disk_xml(&disk).map_err(|error| error.to_string());
    let document = read.and_then(|xml| vmdisk::read(&xml).map_err(|failure| failure.message));
    let document = document.map_err(Stop::new)?;
    Ok((Input::new("--disk".into(), Origin::Stdin), document))
}
