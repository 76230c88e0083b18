//! `vmdisk convert`.

mod dropped;
mod resolve;
pub(crate) mod spec;
mod unsupported;

use std::collections::HashSet;

use vmdisk::model::{FieldPath, ImageField, Scope};
use vmdisk::plan::shell_word;
use vmdisk::write::{self, QemuOptions};
use vmdisk::{Completion, Document, Folder, HostIndex, Loss, Resolved, Source, Target};

use crate::args::{ConvertArgs, ConvertForm, GenerateForm, QemuFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::facts_file::read_facts;
use crate::generate::attach;
use crate::generate::write::{Written, command_line, flash, unwritable};
use crate::host::collect_here;
use crate::input::config_files::{self, DocumentWithFiles};
use crate::input::inputs::{Input, Origin};
use crate::input::{bounded, read, storage};
use crate::io::Io;
use crate::output::deliver_exact;
use crate::render::message::Message;
use crate::sanitize::line;
use crate::stop::{Stop, plain};
use crate::values::choose;
use dropped::{Dropped, Places};

/// Reads one document and writes it in another form. What decides over the guest's data and cannot be
/// carried over refuses the conversion; every other loss is reported.
pub(crate) fn run(args: &ConvertArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    refuse_unused(args)?;
    let is_stdin = args.file.as_os_str() == "-";
    let input = match is_stdin {
        true => Input::new("<stdin>".into(), Origin::Stdin),
        false => Input::new(args.file.clone(), Origin::Named),
    }
    .with(&args.values);
    let bytes = if is_stdin {
        bounded::stream(&mut *io.stdin).map_err(|error| {
            Stop::new(format!("could not read standard input: {}", plain(&error)))
        })?
    } else {
        read::file(&args.file)?
    };
    if let Some(text) = spec::text_of(&bytes) {
        if let Ok(document) = vmdisk::read_bytes(&bytes) {
            refuse_filled_in(&document, &input)?;
        }
        return run_spec(args, &input, text, io, colors);
    }
    let mut assumed = Vec::new();
    let mut document = read_document(args, &input, &bytes, &mut assumed)?;
    refuse_filled_in(&document, &input)?;
    let mut warnings = Vec::new();
    let mut chosen = probed_formats(args, &mut document, io, colors)?;
    chosen.extend(document.set_made_formats());
    let stays_xml = matches!(
        (&document.source, args.to),
        (
            Source::LibvirtXml(_),
            ConvertForm::LibvirtXml | ConvertForm::DiskXml
        )
    );
    if args.to != ConvertForm::LibvirtXml && args.to != ConvertForm::Qemu {
        let places = Places::new(&document, &input);
        refuse_lost(&places, &vmdisk::disks_passed_through(&document))?;
    }
    if !stays_xml {
        warnings = left_behind(&document, &input, args)?;
        let mut completion = Completion::default();
        match args.to {
            ConvertForm::LibvirtXml | ConvertForm::Spec => {
                completion = vmdisk::complete(&mut document);
            }
            // Without the machine.
            ConvertForm::DiskXml => completion.unfit = vmdisk::unfit_disks(&document),
            ConvertForm::Qemu | ConvertForm::Qmp => {}
        }
        chosen.extend(completion.chosen);
        if !matches!(args.to, ConvertForm::Qemu | ConvertForm::Qmp) && document.number_boot_order()
        {
            chosen.push(
                "each boot order is one higher than its bootindex: libvirt counts from 1"
                    .to_owned(),
            );
        }
        warnings.extend(completion.unfit.into_iter().map(Message::warning));
    }
    let resolved = match args.resolved {
        true => Some(resolve::resolved(&document, &input)?),
        false => None,
    };
    let target = target(args)?;
    let written = written(args, &document, &input, resolved.as_ref(), &target)?;
    deliver_exact(io, args.output.as_deref(), &written.text)?;
    if let Some(resolved) = &resolved {
        io.say(&resolve::summary(resolved, args.explain));
    }
    // Nothing is lost by them, so `--strict` does not count them.
    for note in chosen {
        let note = Message::warning(note).render(colors.stderr);
        io.say(&format!("{note}\n"));
    }
    warnings.extend(assumed);
    warnings.extend(written.warnings);
    warnings.extend(unsupported::by(&target, Some(&document), &written.text));
    Ok(end(args, &warnings, io, colors))
}

/// The versions that will run the result.
fn target(args: &ConvertArgs) -> Result<Target, Stop> {
    let qemu = args.qemu.as_deref().map(crate::qemu::ask).transpose()?;
    crate::qemu::target(args.target.as_ref(), qemu.as_ref())
}

/// Converts a spec, which is planned as `vmdisk generate` plans it.
fn run_spec(
    args: &ConvertArgs,
    input: &Input,
    text: &str,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    if !args.without.is_empty() {
        return Err(
            Stop::new("a spec is read with all of its disks").help("remove the disk from the spec")
        );
    }
    if args.live || args.facts.is_some() {
        return Err(Stop::new("a spec sets its formats")
            .help("`vmdisk generate` has --facts and --live, too"));
    }
    if args.resolved {
        return Err(Stop::new("a spec is planned, and not resolved")
            .help("convert it to libvirt-xml first"));
    }
    let target = target(args)?;
    let mut written = spec::written_from(args, input, text, &target)?;
    deliver_exact(io, args.output.as_deref(), &written.text)?;
    let unsupported = unsupported::by(&target, None, &written.text);
    written.warnings.extend(unsupported);
    Ok(end(args, &written.warnings, io, colors))
}

/// The document with its configuration files, without the disks of `--without`, and with the volumes of
/// `--storage` located.
fn read_document(
    args: &ConvertArgs,
    input: &Input,
    bytes: &[u8],
    warnings: &mut Vec<Message>,
) -> Result<Document, Stop> {
    let document = read::document(input, bytes)?;
    let DocumentWithFiles {
        mut document,
        failed,
    } = config_files::joined(input, document)
        .map_err(|failure| read::message(input, bytes, failure))?;
    if let Some(Err(message)) = failed.map(|checked| checked.outcome) {
        return Err(Stop::from(message));
    }
    document = choose(document, args.start.as_deref(), warnings)?;
    document.remove_disks(&args.without).map_err(|name| {
        Stop::new(format!("no disk is called `{}`", line(name)))
            .help("use the target of a disk, such as vda, or the id of its device")
    })?;
    if !args.storage.is_empty() {
        document.locate_volumes(&storage::of_files(&args.storage)?);
    }
    let is_needed = args.to == ConvertForm::Spec || args.live || args.facts.is_some();
    let file = args.file.as_path();
    let base = match &input.base {
        None if is_needed && file.as_os_str() != "-" => file.parent().map(read::absolute),
        _ => None,
    };
    if let Some(base) = base {
        let is_unknown = *document.folder() == Folder::Unknown;
        let paths = match is_unknown {
            true => vmdisk::resolve_paths(&mut document.clone(), &base),
            false => vmdisk::resolve_paths(&mut document, &base),
        };
        if let Some(first) = paths.first() {
            let base = base.display().to_string();
            let (first, base) = (line(first), line(&base));
            let unknown =
                format!("`{first}` is relative, and the directory in which QEMU starts is unknown");
            let help = "name the directory with `--base`";
            if is_unknown && args.to == ConvertForm::Spec {
                return Err(Stop::new(unknown).help(help));
            }
            let assumed = format!("`{first}` is taken to be in {base}, where the file is");
            let message = Message::warning(if is_unknown { unknown } else { assumed });
            warnings.push(message.help(help.to_owned()));
        }
    }
    Ok(document)
}

/// Sets the formats that the headers in the facts show; a line for each.
fn probed_formats(
    args: &ConvertArgs,
    document: &mut Document,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Vec<String>, Stop> {
    let facts = match &args.facts {
        Some(path) => Some(read_facts(path, io, colors)?),
        None => args.live.then(|| collect_here(&document.facts_needed())),
    };
    let index = facts.as_ref().map(HostIndex::new);
    Ok(index.map_or_else(Vec::new, |host| document.set_probed_formats(&host)))
}

/// Refuses options that another format has.
fn refuse_unused(args: &ConvertArgs) -> Result<(), Stop> {
    if args.qemu_format != QemuFormat::Lines && args.to != ConvertForm::Qemu {
        return Err(Stop::new("--qemu-format is about a QEMU command line").help("add --to qemu"));
    }
    Ok(())
}

/// Prints the warnings of a conversion, and returns its exit code: with `--strict`, a warning is a finding.
fn end(args: &ConvertArgs, warnings: &[Message], io: &mut Io<'_>, colors: Colors) -> Exit {
    for warning in warnings {
        io.say(&format!("{}\n", warning.render(colors.stderr)));
    }
    if args.strict && !warnings.is_empty() {
        Exit::Findings
    } else {
        Exit::Clean
    }
}

/// Refuses the conversion if the guest would not find its data without something that is lost.
fn refuse_lost(places: &Places<'_>, losses: &[Loss]) -> Result<(), Stop> {
    let lost = losses.iter().filter(|loss| loss.changes_guest);
    let refused: Vec<Message> = lost.map(|loss| dropped(places, loss)).collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Stop(refused)),
    }
}

/// Refuses a template, and names its placeholders.
fn refuse_filled_in(document: &Document, input: &Input) -> Result<(), Stop> {
    refuse_lost(&Places::new(document, input), &vmdisk::filled_in(document))
}

fn dropped(places: &Places<'_>, loss: &Loss) -> Message {
    let document = places.document;
    let probed = "or state the format with `--disk-format`, or read the header with `--live`";
    let is_format = matches!(loss.at, FieldPath::Image(_, _, ImageField::Format));
    let help = loss.help(document);
    Dropped {
        owner: document.breadcrumb(loss.at),
        is_of_disk: loss.at.disk().is_some(),
        what: &loss.what,
        changes_guest: loss.changes_guest,
        help: match help {
            Some(help) if is_format => Some(format!("{help}, {probed}")),
            help => help,
        },
        place: places.of(loss.place.span),
    }
    .message()
}

/// The warnings about what is left behind; or, if the guest would not find its data without it, why not.
fn left_behind(
    document: &Document,
    input: &Input,
    args: &ConvertArgs,
) -> Result<Vec<Message>, Stop> {
    let mut losses = vmdisk::losses(document);
    // The first of a kind stands for all of them.
    let mut seen = HashSet::new();
    losses.retain(|loss| seen.insert((loss.at, loss.what.clone())));
    let places = Places::new(document, input);
    refuse_lost(&places, &losses)?;
    let lost = losses.iter().map(|loss| dropped(&places, loss));
    let mut warnings: Vec<Message> = lost.collect();
    let others = match args.to {
        ConvertForm::LibvirtXml if !args.resolved => vmdisk::not_about_disks_in_xml(document),
        ConvertForm::Qemu => vmdisk::not_about_disks_in_arguments(document),
        _ => vmdisk::not_about_disks(document),
    };
    if let (ConvertForm::Qemu, Source::LibvirtXml(xml)) = (args.to, &document.source)
        && let Some((code, variables)) = xml.uefi_flash(&document.text)
    {
        let variables = variables.as_deref().unwrap_or("VARS");
        warnings.push(Message::warning(format!(
            "the guest boots by UEFI: add `-drive {}` and `-drive {}`",
            shell_word(&flash("0,readonly=on", "raw", &code)),
            shell_word(&flash("1", "raw", variables)),
        )));
    }
    if !others.is_empty() {
        let names: Vec<String> = others.into_iter().collect();
        warnings.push(Message::warning(format!(
            "not carried over: {}",
            names.join(", ")
        )));
    }
    Ok(warnings)
}

fn written(
    args: &ConvertArgs,
    document: &Document,
    input: &Input,
    resolved: Option<&Resolved>,
    target: &Target,
) -> Result<Written, Stop> {
    let domain = resolved.map_or_else(|| document.domain(), |resolved| &resolved.domain);
    Ok(match args.to {
        ConvertForm::LibvirtXml => Written {
            text: match resolved {
                Some(resolved) => resolved.write(),
                None => write::document_xml(document),
            }
            .map_err(unwritable)?,
            warnings: match domain.scope {
                Scope::WholeGuest => Vec::new(),
                Scope::DisksOnly => {
                    attach::warnings(domain, |element| !element.starts_with("<controller"))?
                }
            },
        },
        ConvertForm::DiskXml => Written {
            text: match resolved {
                Some(resolved) => write::resolved_disks_xml(resolved),
                None => write::document_disks_xml(document),
            }
            .map_err(unwritable)?,
            warnings: attach::warnings(domain, |_| true)?,
        },
        ConvertForm::Spec => spec::written(domain, document, input, target)?,
        ConvertForm::Qemu | ConvertForm::Qmp => {
            let form = match args.to {
                ConvertForm::Qmp => GenerateForm::Qmp,
                _ => GenerateForm::Qemu,
            };
            let options = QemuOptions {
                target: target.clone(),
            };
            let mut domain = domain.clone();
            if matches!(document.source, Source::LibvirtXml(_)) {
                write::set_for_qemu(&mut domain);
            }
            let further = vmdisk::passed_arguments(document);
            command_line(&domain, &options, form, args.qemu_format, further)?
        }
    })
}
