//! Values for the variables of scripts, and the choice among their starts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use vmdisk::model::Format;
use vmdisk::{Document, Values};

use crate::render::message::Message;
use crate::sanitize::line;
use crate::stop::Stop;

/// Values for the variables of a script.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ValueArgs {
    /// Value of a variable of a script, makefile, unit or template that its text does not set; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = value, hide_short_help = true, help_heading = "Scripts and templates")]
    set: Vec<(String, String)>,
    /// Format of the images without a format, or of the image of the disk with this target or device id; may be repeated.
    #[arg(long = "disk-format", value_name = "[DISK=]FORMAT", value_parser = disk_format, hide_short_help = true, help_heading = "Scripts and templates")]
    pub(crate) disk_formats: Vec<(Option<String>, Format)>,
    /// Directory of relative paths: where the command line or script is started, or the unknown directory that a script
    /// changes to. Without it, `convert --to spec`, `--facts` and `--live` take the directory of the file.
    #[arg(
        long,
        value_name = "DIR",
        hide_short_help = true,
        help_heading = "Scripts and templates"
    )]
    pub(crate) base: Option<PathBuf>,
}

impl ValueArgs {
    pub(crate) fn values(&self) -> Values {
        self.set.iter().cloned().collect()
    }
}

/// Reads `[DISK=]FORMAT`.
fn disk_format(text: &str) -> Result<(Option<String>, Format), String> {
    let (disk, word) = match text.rsplit_once('=') {
        Some((disk, word)) => (Some(disk.to_owned()), word),
        None => (None, text),
    };
    let format = Format::from_word(word).ok_or_else(|| {
        format!(
            "`{word}` is not a format; expected one of {}",
            Format::WORDS.join(", ")
        )
    })?;
    Ok((disk, format))
}

/// Reads `NAME=VALUE`.
fn value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    match is_name(name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("`{name}` is not the name of a variable")),
    }
}

/// True for the name of a variable. Those of templates have members.
fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    !text.is_empty() && text.chars().all(is_part)
}

/// True for a word that is a variable: `$NAME`, `${NAME}`, `$(NAME)` of make, `%NAME%`, `@NAME@` or `{{ NAME }}`. The name of a
/// command in `$(…)` has small letters.
fn is_variable(word: &str) -> bool {
    let between = |open: &str, close: &str| word.strip_prefix(open)?.strip_suffix(close);
    let of_make =
        between("$(", ")").filter(|name| !name.contains(|it: char| it.is_ascii_lowercase()));
    let name = between("${", "}")
        .or(of_make)
        .or_else(|| between("%", "%"))
        .or_else(|| between("@", "@"))
        .or_else(|| between("{{", "}}")?.split('|').next())
        .or_else(|| word.strip_prefix('$'));
    name.is_some_and(|name| is_name(name.trim()))
}

/// A line about words of command lines that may be any options, if there are such words.
pub(crate) fn unknown_words(words: &BTreeSet<String>) -> String {
    let number = match words.len() {
        0 => return String::new(),
        1 => "1 word of the command line is".to_owned(),
        number => format!("{number} words of the command line are"),
    };
    let help = match words.iter().any(|word| is_variable(word)) {
        true => "; give values with --set NAME=VALUE",
        false => "",
    };
    let words = words.iter().take(8).map(|word| format!("`{}`", line(word)));
    let words = words.collect::<Vec<_>>().join(", ");
    format!("{number} unknown: {words}{help}\n")
}

/// The start that was asked for, by its number or its name; without one the only start, or that of a run without arguments
/// and variables, with a warning that names the others.
pub(crate) fn choose(
    document: Document,
    asked: Option<&str>,
    warnings: &mut Vec<Message>,
) -> Result<Document, Stop> {
    let mut starts = document.into_starts();
    let list = |except: Option<usize>| -> Vec<String> {
        let list = starts.iter().enumerate();
        let list = list.filter(|(nth, _)| Some(*nth) != except);
        list.map(|(nth, start)| format!("--start {}: {}", nth + 1, line(&start.start_in_words())))
            .collect()
    };
    if let Some(asked) = asked {
        let number = asked.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let mut named = starts.iter().enumerate();
        let mut named = named
            .by_ref()
            .filter(|(_, start)| start.start_owner() == Some(asked));
        let found = match (named.next(), named.next()) {
            (Some((nth, _)), None) => Some(nth),
            _ => number.filter(|nth| *nth < starts.len()),
        };
        let Some(nth) = found else {
            let message = Message::error(format!("`{}` is not one start of the file", line(asked)))
                .notes(list(None));
            return Err(message.into());
        };
        return Ok(starts.swap_remove(nth));
    }
    if starts.len() == 1 {
        return Ok(starts.remove(0));
    }
    let is_one = starts
        .iter()
        .all(|it| it.start_line() == starts[0].start_line());
    let mut defaults = starts
        .iter()
        .enumerate()
        .filter(|(_, it)| it.is_default_start());
    match (defaults.next(), defaults.next()) {
        (Some((nth, _)), None) if is_one => {
            let title = "the script is read as if run without arguments and variables";
            warnings.push(Message::warning(title).notes(list(Some(nth))));
            Ok(starts.swap_remove(nth))
        }
        _ => {
            let number = starts.len();
            let title = match starts[0].is_guest_of_its_own() {
                true => format!("the input has {number} guests"),
                false => format!("the file starts QEMU in {number} ways"),
            };
            let message = Message::error(title)
                .notes(list(None))
                .help("choose one with `--start`".to_owned());
            Err(message.into())
        }
    }
}
