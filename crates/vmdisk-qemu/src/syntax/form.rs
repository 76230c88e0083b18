//! The kind of file that contains a command line, and its position there.

use std::collections::BTreeMap;

use vmdisk_source::Span;
use vmdisk_source::template::Template;

use super::capture;
use super::document::{self, Block, Kind};
use super::hole::{Fields, Hole};
use super::json_text;
use super::justfile::{self, has_references, is_justfile};
use super::language::{declared, foreign, is_batch, named, no_command, suggested};
use super::makefile::{self, is_makefile};
use super::option::has_value;
use super::placeholders::Placeholders;
use super::program::{is_program, is_storage_daemon, is_telling};
use super::script::{Shell, Site};
use super::start::{CommandLineForm, Words};
use super::starts::starts;
use super::template::{in_each_way, template};
use super::text::Text;
use super::unit;
use crate::config_file::read::is_config_file;
use crate::failure::ReadFailure;
use crate::limits::Counted;
use crate::monitor::read::is_monitor_script;

/// True if a text may be a QEMU command line: it contains the program or one of its options, and is neither XML nor a
/// JSON object; or it is a `-readconfig` file or a script of monitor commands.
pub fn sniff(text: &str) -> bool {
    if is_config_file(text) || is_monitor_script(text) || capture::is_capture(text) {
        return true;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    // `i<disk_count` is arithmetic.
    let has = |tag: &str| {
        let mut tags = text
            .match_indices(tag)
            .map(|(at, _)| &text[at + tag.len()..]);
        tags.any(|rest| !rest.starts_with(['_', 's', ';']) || rest.starts_with("snapshot"))
    };
    let mut tags = ["{{ ", "{%", "{#", "<%"].into_iter();
    let is_other = text.starts_with(['<', '{']) && !tags.any(|tag| text.starts_with(tag));
    // The usage of a script may name a `<disk>`.
    if is_other || !text.starts_with("#!") && (has("<domain") || has("<disk")) {
        return false;
    }
    let is_telling = |word: &str| {
        let word = word.trim_matches(['"', '\'', ',', '[', ']', '(', ')', ';']);
        is_telling(word) || is_program(word)
    };
    let is_array = text.starts_with('[');
    let ends = |byte: char| matches!(byte, '\0' | '=') || byte == ',' && is_array;
    text.split(|byte: char| byte.is_whitespace() || ends(byte))
        .any(is_telling)
}

/// Refuses a command line in a file whose name ends as those of a language that is not read. The name says more than the
/// content, and less than a first line `#!`.
///
/// # Errors
/// The language, with the line that names QEMU.
pub fn check_name(bytes: &[u8], end: &str) -> Result<(), ReadFailure> {
    let Some(language) = named(end) else {
        return Ok(());
    };
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.starts_with("#!") && sniff(text) => Err(foreign(text, language)),
        _ => Ok(()),
    }
}

/// Finds the command lines in a text; `given` are values of its variables.
pub(crate) fn words(
    text: &str,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Words>, ReadFailure> {
    if capture::is_capture(text) {
        // Nothing is filled in later.
        return capture::starts(text);
    }
    let template = template(text).filter(|_| !is_justfile(text));
    let mut found = match &template {
        Some(template) => in_each_way(template, text, |readable| written(readable, given))?,
        None => written(text, given)?,
    };
    let placeholders = Placeholders::new(text, template.as_ref(), given);
    found.iter_mut().for_each(|words| words.mark(&placeholders));
    Ok(found)
}

/// The command lines in a text of which nothing is filled in.
fn written(text: &str, given: &BTreeMap<String, String>) -> Result<Vec<Words>, ReadFailure> {
    let form = form_of(text);
    let words = match form {
        CommandLineForm::ZeroBytes => with_program(form, split(text, '\0')?),
        CommandLineForm::Lines => with_program(form, lines(text)?),
        CommandLineForm::Json => {
            let is_daemon = |words: &Vec<Text>| {
                words
                    .first()
                    .is_some_and(|it| is_storage_daemon(it.as_str()))
            };
            let (daemons, guests): (Vec<_>, Vec<_>) =
                json_text::commands(text)?.into_iter().partition(is_daemon);
            let mut guests = guests.into_iter();
            let (Some(guest), None) = (guests.next(), guests.next()) else {
                return Err(no_command(text));
            };
            let mut words = with_program(form, guest);
            let arguments = |mut words: Vec<Text>| words.split_off(1);
            words.daemons = daemons.into_iter().map(arguments).collect();
            words
        }
        // These forms have options instead of words.
        CommandLineForm::ConfigFile | CommandLineForm::MonitorScript => {
            Words::new(form, None, Vec::new())
        }
        CommandLineForm::Shell | CommandLineForm::Unit => return script(text, form, given),
    };
    Ok(vec![words])
}

fn form_of(text: &str) -> CommandLineForm {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let exec = |line: &str| line.trim_start().starts_with("ExecStart=");
    if text.contains('\0') {
        CommandLineForm::ZeroBytes
    } else if is_config_file(text) {
        CommandLineForm::ConfigFile
    } else if is_monitor_script(text) {
        CommandLineForm::MonitorScript
    } else if !body.starts_with("#!") && body.lines().any(exec) {
        CommandLineForm::Unit
    } else if is_json(body) {
        CommandLineForm::Json
    } else if is_one_word_to_a_line(body) {
        CommandLineForm::Lines
    } else {
        CommandLineForm::Shell
    }
}

/// True for an array. A script may begin with the command `[`, too.
fn is_json(text: &str) -> bool {
    let first = text.strip_prefix('[').map(str::trim_start);
    first.is_some_and(|rest| {
        let is_nested = rest.strip_prefix('[').map(str::trim_start);
        is_nested.is_some_and(|rest| rest.starts_with('"')) && text.trim_end().ends_with(']')
            || !rest.starts_with(['!', '-', '[', '$']) && {
                let is_test = rest.lines().next().is_some_and(|line| line.contains(" ]"));
                !is_test || text.trim_end().ends_with(']')
            }
    })
}

/// True if each line is an option, the value of the one before, or a name without blanks.
fn is_one_word_to_a_line(text: &str) -> bool {
    let (mut has_option, mut takes_value) = (false, false);
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        let name = line.trim_start_matches('-');
        let is_option =
            line.len() > name.len() && name.starts_with(|it: char| it.is_ascii_alphabetic());
        let is_blank = |it: char| it == ' ' || it == '\t';
        let is_odd =
            line.ends_with('\\') || line.starts_with([' ', '\t', '#']) || line.starts_with("---");
        if is_odd || line.contains(is_blank) && (is_option || !takes_value) {
            return false;
        }
        has_option |= is_option;
        takes_value = is_option && has_value(name);
    }
    has_option
}

/// Splits at a character; an empty last piece is not a word.
fn split(text: &str, at: char) -> Result<Vec<Text>, ReadFailure> {
    let mut words = Vec::new();
    let mut counted = Counted::default();
    let mut start = 0;
    for part in text.split(at) {
        let mut word = Text::empty(start);
        word.push_verbatim(text, Span::new(start, start + part.len()));
        counted.word(start + part.len())?;
        start += part.len() + at.len_utf8();
        words.push(word);
    }
    if words.last().is_some_and(|word| word.as_str().is_empty()) {
        words.pop();
    }
    Ok(words)
}

fn lines(text: &str) -> Result<Vec<Text>, ReadFailure> {
    let mark = '\u{feff}';
    let lines = split(text, '\n')?
        .into_iter()
        .map(|line| {
            let start = line.as_str().len() - line.as_str().trim_start_matches(mark).len();
            let end = line.as_str().trim_end_matches('\r').len();
            line.part(start..end.max(start))
        })
        .collect();
    Ok(lines)
}

/// The first word is the program unless it is an option.
fn with_program(form: CommandLineForm, mut words: Vec<Text>) -> Words {
    let has_program = words
        .first()
        .is_some_and(|word| !word.as_str().starts_with('-'));
    let program = has_program.then(|| words.remove(0));
    Words::new(form, program, words)
}

/// Reads the scripts of a text.
fn read<'g>(
    text: &'g str,
    form: CommandLineForm,
    given: &'g BTreeMap<String, String>,
) -> Result<Shell<'g>, ReadFailure> {
    let mut shell = Shell::new(text, given);
    let whole = |start: usize, end: usize| {
        let mut whole = Text::empty(start);
        whole.push_verbatim(text, Span::new(start, end));
        whole
    };
    if form == CommandLineForm::Unit {
        unit::read(text, &mut shell)?;
        return Ok(shell);
    }
    if let Some((start, end)) = last_of_log(text) {
        shell.run(&whole(start, end), &Site::default())?;
        return Ok(shell);
    }
    if let Some(language) = declared(text).or_else(|| is_batch(text).then_some("a batch file")) {
        return Err(foreign(text, language));
    }
    if text.starts_with("#!") && text.contains("\r\n") {
        let end = text.find('\r').unwrap_or(0);
        let message =
            "the lines of the script end in carriage returns, which a shell gives to QEMU";
        return Err(ReadFailure::new(Span::new(0, end), message)
            .help("remove them: `sed -i 's/\\r$//' FILE`"));
    }
    shell.is_documentation = !text.starts_with("#!");
    match document::kind(text) {
        Some(kind) => read_blocks(text, kind, &mut shell),
        // It has assignments of the same form as a makefile.
        None if is_justfile(text) => {
            shell.is_documentation = false;
            justfile::read(text, &mut shell)?;
        }
        None if is_makefile(text) && (!text.contains("{{") || has_references(text)) => {
            shell.is_documentation = false;
            makefile::read(text, &mut shell)?;
        }
        None => shell.run(&whole(0, text.len()), &Site::default())?,
    }
    Ok(shell)
}

/// A word for the members of an array that are no text, such as `var.arguments`.
fn of_other_members(array: &Text, shell: &mut Shell<'_>) -> Text {
    let mut hole = Hole::new("qemuargs", array.whole(), "its members are not only text");
    hole.fields = Fields::Split;
    Text::of_hole(hole, &mut shell.holes)
}

/// Reads each block as a script of its own. One that is no script is left out.
fn read_blocks(text: &str, kind: Kind, shell: &mut Shell<'_>) {
    shell.is_documentation = kind == Kind::Documentation;
    for block in document::blocks(text, kind) {
        match block {
            Block::Script(script) => {
                let before = shell.starts.len();
                if shell.run(&script, &Site::default()).is_err() {
                    shell.starts.truncate(before);
                }
                shell.has_other_commands = true;
            }
            Block::Arrays(arrays) => {
                let commands = arrays.iter().map(json_text::first_commands);
                let words: Vec<Text> = commands.flatten().flatten().flatten().collect();
                let site = Site {
                    at: arrays[0].whole().start,
                    ..Site::default()
                };
                match kind {
                    Kind::Packer => {
                        let words = match words.is_empty() {
                            true => vec![of_other_members(&arrays[0], shell)],
                            false => words,
                        };
                        shell.start(&site, words);
                    }
                    _ => drop(shell.command(&site, &Default::default(), words)),
                }
            }
        }
    }
}

/// The place of the last command in a log of libvirt.
fn last_of_log(text: &str) -> Option<(usize, usize)> {
    let last = text.rfind(": starting up libvirt version")?;
    let start = last + text[last..].find('\n')? + 1;
    let mut end = start;
    for line in text[start..].split_inclusive('\n') {
        end += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    Some((start, end))
}

/// The variable at an offset of a script, makefile or unit, and its value or the reason why it is unknown.
///
/// ```
/// let script = "D=/srv\nqemu-system-x86_64 -drive file=$D/$1,format=raw\n";
/// let at = |text: &str| vmdisk_qemu::variable_at(script, script.rfind(text).unwrap() + 1).unwrap().1;
/// assert_eq!(at("$D"), "`$D` is `/srv`");
/// assert_eq!(at("$1"), "`$1` is unknown: it is an argument of the script");
/// ```
pub fn variable_at(text: &str, offset: usize) -> Option<(Span, String)> {
    let template = template(text).filter(|_| !is_justfile(text));
    let readable = template.as_ref().map_or(text, Template::text);
    let form = form_of(readable);
    if !matches!(form, CommandLineForm::Shell | CommandLineForm::Unit) {
        return None;
    }
    let given = BTreeMap::new();
    let script = read(readable, form, &given).ok()?;
    let holds = |span: &Span| span.start <= offset && offset <= span.end;
    let uses = script.uses.iter().filter(|(span, _)| holds(span));
    let (span, values) = uses.min_by_key(|(span, _)| span.len())?;
    let name = span.slice(text)?;
    let is = |value: &Result<String, String>| match value {
        Ok(value) => format!("`{value}`"),
        Err(reason) => format!("unknown: {reason}"),
    };
    let values: Vec<String> = values.iter().map(is).collect();
    Some((*span, format!("`{name}` is {}", values.join(" or "))))
}

fn script(
    text: &str,
    form: CommandLineForm,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Words>, ReadFailure> {
    let mut shell = read(text, form, given).map_err(|failure| match suggested(text) {
        Some(language) if !text.starts_with("#!") => foreign(text, language),
        _ => failure,
    })?;
    if shell.starts.is_empty() && !shell.has_other_commands && !shell.options.is_empty() {
        let words = std::mem::take(&mut shell.options).concat();
        shell.start(&Site::default(), words);
    }
    let found = starts(text, form, shell)?;
    match found.is_empty() {
        true => Err(no_command(text)),
        false => Ok(found),
    }
}
