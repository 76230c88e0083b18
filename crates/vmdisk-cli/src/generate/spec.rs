//! From arguments and a spec file to one spec, or to messages with places.

use std::path::Path;

use vmdisk::plan::{
    DiskSpec, GuestSpec, Plan, PlanError, Spec, SpecError, SpecPath, SpecPlace, SpecSegment, plan,
};
use vmdisk::{Document, Facts, Target};
use vmdisk_source::Span;

use crate::args::PlanArgs;
use crate::input::bounded;
use crate::input::inputs::{Input, Origin};
use crate::input::read;
use crate::io::Io;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::sanitize;
use crate::stop::{Stop, plain};

/// A spec, and the texts that it comes from.
#[derive(Debug)]
pub(super) struct GenerateInput<'a> {
    pub(super) spec: Spec,
    file: Option<File>,
    one_liners: &'a [String],
    /// Keys of the guest that options give.
    options: Vec<&'static str>,
}

/// A spec as a document, for findings about the guest that is planned from it.
#[derive(Debug)]
pub(super) struct GenerateText {
    pub(super) document: Document,
    pub(super) shared: SharedText,
    /// The file that has this text; `None` if the spec is not in one file.
    pub(super) path: Option<String>,
}

/// A spec file that was read.
#[derive(Debug)]
struct File {
    name: String,
    text: SharedText,
    /// Number of disks in it; those of the command line come after.
    disks: usize,
}

/// The spec that the arguments ask for.
pub(super) fn of<'a>(args: &'a PlanArgs, io: &mut Io<'_>) -> Result<GenerateInput<'a>, Stop> {
    let (mut spec, file) = match &args.spec {
        Some(path) => {
            let (spec, file) = from_file(path, io)?;
            (spec, Some(file))
        }
        None if args.disks.is_empty() => {
            return Err(
                Stop::new("nothing to generate: name a spec, or a disk with --disk")
                    .help(format!("a disk is {}", DiskSpec::ONE_LINER)),
            );
        }
        None => (Spec::default(), None),
    };
    let mut messages = Vec::new();
    for (number, text) in args.disks.iter().enumerate() {
        match one_liner(&one_liner_name(&args.disks, number), text) {
            Ok(disk) => spec.disks.push(disk),
            Err(errors) => messages.extend(errors),
        }
    }
    if !messages.is_empty() {
        return Err(Stop(messages));
    }
    let options = [
        ("name", args.name.is_some()),
        ("memory", args.memory.is_some()),
        ("vcpus", args.vcpus.is_some()),
        ("os", args.os.is_some()),
    ];
    let options = options.into_iter().filter(|(_, is_given)| *is_given);
    let options: Vec<&str> = options.map(|(key, _)| key).collect();
    if !options.is_empty() {
        let guest = spec.guest.get_or_insert_with(GuestSpec::default);
        guest.name = args.name.clone().or(guest.name.take());
        guest.memory = args.memory.or(guest.memory);
        guest.vcpus = args.vcpus.or(guest.vcpus);
        guest.os = args.os.or(guest.os);
    }
    Ok(GenerateInput {
        spec,
        file,
        one_liners: &args.disks,
        options,
    })
}

/// A disk in one line, or messages about it that have this name.
pub(crate) fn one_liner(name: &str, text: &str) -> Result<DiskSpec, Vec<Message>> {
    DiskSpec::from_one_liner(text).map_err(|errors| {
        let shared = SharedText::new(text);
        let errors = errors.iter();
        errors.map(|error| message(name, &shared, error)).collect()
    })
}

fn from_file(path: &Path, io: &mut Io<'_>) -> Result<(Spec, File), Stop> {
    let is_stdin = path.as_os_str() == "-";
    let (name, bytes) = if is_stdin {
        let bytes = bounded::stream(&mut *io.stdin).map_err(|error| {
            Stop::new(format!("could not read standard input: {}", plain(&error)))
        })?;
        ("<stdin>".to_owned(), bytes)
    } else {
        let bytes = read::file(path).map_err(|message| match is_one_liner(path) {
            true => Box::new(
                (*message).help(format!("a disk in one line is `--disk {}`", path.display())),
            ),
            false => message,
        })?;
        (path.display().to_string(), bytes)
    };
    match String::from_utf8(bytes) {
        Ok(text) => from_text(name, text),
        Err(error) => {
            let input = match is_stdin {
                true => Input::new("<stdin>".into(), Origin::Stdin),
                false => Input::new(path.to_owned(), Origin::Named),
            };
            // The reader of documents names the byte and the encoding.
            let failure = read::document(&input, error.as_bytes()).err();
            Err(failure.map_or_else(
                || Stop::new(format!("could not read {name}: a spec is UTF-8 text")),
                Stop::from,
            ))
        }
    }
}

/// True for the name of a file that begins like a disk in one line.
fn is_one_liner(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| DiskSpec::from_one_liner(text).is_ok())
}

/// The plan of a spec by its text, where nothing is known of the host.
pub(crate) fn planned(name: String, text: &str, target: &Target) -> Result<(Spec, Plan), Stop> {
    let (spec, file) = from_text(name, text.to_owned())?;
    let asked = GenerateInput {
        spec,
        file: Some(file),
        one_liners: &[],
        options: Vec::new(),
    };
    let plan =
        plan(&asked.spec, &Facts::default(), target).map_err(|errors| asked.stop(&errors))?;
    Ok((asked.spec, plan))
}

/// The name of a `--disk` in messages; its number matters if there are several.
fn one_liner_name(one_liners: &[String], number: usize) -> String {
    match one_liners {
        [_] => "--disk".to_owned(),
        _ => format!("--disk[{number}]"),
    }
}

fn from_text(name: String, text: String) -> Result<(Spec, File), Stop> {
    if text.trim_start().starts_with('<') {
        let what = format!(
            "{} is XML, and a spec is YAML or JSON",
            sanitize::line(&name)
        );
        return Err(Stop::new(what).help("`vmdisk convert --to spec` makes a spec of a domain"));
    }
    if !vmdisk::is_spec(&text) && vmdisk::is_command_line(&text) {
        let what = format!(
            "{} is a command line of QEMU, and a spec is YAML or JSON",
            sanitize::line(&name)
        );
        return Err(Stop::new(what).help("`vmdisk convert --to spec` makes a spec of it"));
    }
    match Spec::from_yaml(&text) {
        Ok(spec) => {
            let disks = spec.disks.len();
            let text = SharedText::new(text);
            Ok((spec, File { name, text, disks }))
        }
        Err(errors) => {
            let text = SharedText::new(text);
            let messages = errors.iter().map(|error| message(&name, &text, error));
            Err(Stop(messages.collect()))
        }
    }
}

impl GenerateInput<'_> {
    /// The spec as a document that is planned for a host; `None` if it cannot be read again.
    pub(super) fn text(&self, facts: &Facts, target: &Target) -> Option<GenerateText> {
        let file = self
            .file
            .as_ref()
            .filter(|_| self.one_liners.is_empty() && self.options.is_empty());
        let text = file.map_or_else(|| self.spec.to_yaml(), |file| file.text.text().to_owned());
        let document = vmdisk::read(&text).ok()?;
        Some(GenerateText {
            shared: SharedText::new(text),
            document: document.planned_for(facts, target)?,
            path: file.map(|file| file.name.clone()),
        })
    }

    /// Errors of planning, shown at the places of the requests.
    pub(super) fn stop(&self, errors: &[PlanError]) -> Stop {
        let paths = errors.iter().map(|error| &error.at);
        let text = self.file.as_ref().map(|file| file.text.text());
        let places = text.and_then(|text| Spec::places_in_yaml(text, paths));
        let places = places.into_iter().flatten().map(Some);
        let errors = errors.iter().zip(places.chain(std::iter::repeat(None)));
        Stop(errors.map(|(error, at)| self.message(error, at)).collect())
    }

    /// The message for an error, with its place in the file if there is one.
    fn message(&self, error: &PlanError, in_file: Option<SpecPlace>) -> Message {
        let PlanError {
            at,
            message: what,
            help,
        } = error;
        if let [SpecSegment::Key(guest), SpecSegment::Key(key)] = at.0.as_slice()
            && guest == "guest"
            && self.options.contains(&key.as_str())
        {
            return Message::error(format!("--{key}: {what}")).help(help.clone());
        }
        let disks_in_file = self.file.as_ref().map_or(0, |file| file.disks);
        let one_liner = match at.0.as_slice() {
            [SpecSegment::Key(list), SpecSegment::Index(index), ..] if list == "disks" => index
                .checked_sub(disks_in_file)
                .and_then(|index| Some((index, self.one_liners.get(index)?))),
            _ => None,
        };
        let mut error = SpecError::value(at.clone(), what.clone());
        error.help.clone_from(help);
        match (one_liner, &self.file) {
            (Some((number, text)), _) => {
                let below = SpecPath(at.0[2..].to_vec());
                let start = SpecPlace { line: 1, column: 1 };
                error.place = DiskSpec::place_in_one_liner(text, &below).or(Some(start));
                error.help = error.help.map(|help| DiskSpec::help_in_one_liner(&help));
                message(
                    &one_liner_name(self.one_liners, number),
                    &SharedText::new(text),
                    &error,
                )
            }
            (None, Some(file)) => {
                error.place = in_file;
                message(&file.name, &file.text, &error)
            }
            (None, None) => Message::error(if at.is_top() {
                what.clone()
            } else {
                format!("{at}: {what}")
            })
            .help(help.clone()),
        }
    }
}

/// An error with its place in a text.
fn message(path: &str, shared: &SharedText, error: &SpecError) -> Message {
    let quoted = error.place.map(|place| {
        let text = shared.text();
        let line_start = shared.lines().line_start(text, place.line);
        let start = offset(text, line_start, place.column);
        let span = Span::new(start, start + word(&text[start..]));
        let at = error.at.to_string();
        MessageText {
            span,
            text: shared.clone(),
            label: (!at.is_empty() && span.slice(text) != Some(&at)).then_some(at),
            related: Vec::new(),
        }
    });
    Message::error(error.message.clone())
        .at(MessagePlace::new(path.to_owned(), quoted))
        .help(error.help.clone())
}

/// The offset of a column, which counts characters from 1.
fn offset(text: &str, line_start: usize, column: usize) -> usize {
    let rest = &text[line_start..];
    let line = rest.split('\n').next().unwrap_or_default();
    line.char_indices()
        .nth(column.saturating_sub(1))
        .map_or(line_start + line.len(), |(at, _)| line_start + at)
}

/// Bytes of the key or value that a text starts with.
fn word(text: &str) -> usize {
    text.find([',', ':', '=', '\n', '\r', ' ', '#', '}', ']'])
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_behind_wide_characters_and_past_the_end() {
        let text = "a\nü: x\n";
        assert_eq!(offset(text, 2, 4), 6);
        assert_eq!(&text[offset(text, 2, 4)..], "x\n");
        assert_eq!(offset(text, 2, 99), 7);
        assert_eq!(word("size=4G"), 4);
        assert_eq!(word(""), 0);
    }
}
