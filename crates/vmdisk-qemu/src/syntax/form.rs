//! The kind of file that contains a command line, and its position there.

use std::collections::BTreeMap;

use vmdisk_source::Span;
use vmdisk_source::template::Template;

use super::batch::{self, is_batch};
use super::brace_expansion::may_have_braces;
use super::folder::Folder;
use super::hole::{Command, Decisions, Evaluated};
use super::json_text;
use super::language::{declared, foreign, no_command};
use super::makefile::{self, is_makefile};
use super::placeholders::Placeholders;
use super::program::{is_program, is_start, runs};
use super::script::evaluate;
use super::shell_commands::{feeder, folder_of_env};
use super::shell_words::{Quoting, commands};
use super::start::{CommandLineForm, Words};
use super::starts::{explore, is_storage_daemon};
use super::template::{in_each_way, template};
use super::text::Text;
use super::unit;
use crate::config_file::read::is_config_file;
use crate::failure::ReadFailure;
use crate::limits::Counted;
use crate::monitor::read::is_monitor_script;

/// Options that distinguish a command line of QEMU from other text.
const TELLING: [&str; 9] = [
    "-blockdev",
    "-drive",
    "-device",
    "-hda",
    "-cdrom",
    "-machine",
    "-nodefaults",
    "-object",
    "-accel",
];

/// True if a text may be a QEMU command line: it contains the program or one of its options, and is neither XML nor a
/// JSON object; or it is a `-readconfig` file or a script of monitor commands.
pub fn sniff(text: &str) -> bool {
    if is_config_file(text) || is_monitor_script(text) {
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
    if is_other || has("<domain") || has("<disk") {
        return false;
    }
    let is_telling = |word: &str| {
        let word = word.trim_matches(['"', '\'', ',', '[', ']', '(', ')', ';']);
        let word = word
            .strip_prefix('-')
            .filter(|rest| rest.starts_with('-'))
            .unwrap_or(word);
        TELLING.contains(&word) || is_program(word)
    };
    let is_array = text.starts_with('[');
    let ends = |byte: char| matches!(byte, '\0' | '=') || byte == ',' && is_array;
    text.split(|byte: char| byte.is_whitespace() || ends(byte))
        .any(is_telling)
}

/// Finds the command lines in a text; `given` are values of its variables.
pub(crate) fn words(
    text: &str,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Words>, ReadFailure> {
    let template = template(text);
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
            let is_daemon = |words: &Vec<Text>| words.first().is_some_and(is_storage_daemon);
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
        CommandLineForm::Unit => {
            let found = evaluated(text, form, given)?;
            return match found.is_empty() {
                true => Err(no_command(text)),
                false => Ok(found),
            };
        }
        // These forms have options instead of words.
        CommandLineForm::ConfigFile | CommandLineForm::MonitorScript => {
            Words::new(form, None, Vec::new())
        }
        CommandLineForm::Shell => return shell(text, given),
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
    } else if body.lines().any(exec) {
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

/// True for lines with options, unless they need a shell: a line continues, or an option has its value on the same line.
fn is_one_word_to_a_line(text: &str) -> bool {
    let mut has_option = false;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if line.trim_end().ends_with('\\') || line.starts_with([' ', '\t', '#']) {
            return false;
        }
        let is_option = line.starts_with('-');
        if (is_option || is_program(line)) && line.contains([' ', '\t']) {
            return false;
        }
        has_option |= is_option;
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

/// The commands of a text with the values of its variables.
fn evaluation(
    text: &str,
    form: CommandLineForm,
    ways: &Decisions,
    given: &BTreeMap<String, String>,
) -> Result<Evaluated, ReadFailure> {
    if form == CommandLineForm::Unit {
        unit::evaluate(text, given, ways)
    } else if is_makefile(text) {
        makefile::evaluate(text, is_start, ways, given)
    } else if is_batch(text) {
        Ok(batch::evaluate(text, given))
    } else {
        let mut whole = Text::empty(0);
        whole.push_verbatim(text, Span::new(0, text.len()));
        evaluate(whole, is_start, ways, given, Evaluated::default())
    }
}

/// The starts in a text whose variables have values.
fn evaluated(
    text: &str,
    form: CommandLineForm,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Words>, ReadFailure> {
    explore(text, form, |ways| evaluation(text, form, ways, given))
}

/// The variable at an offset of a script, makefile, unit or batch file, and its value or the reason why it is unknown.
///
/// ```
/// let script = "D=/srv\nqemu-system-x86_64 -drive file=$D/$1,format=raw\n";
/// let at = |text: &str| vmdisk_qemu::variable_at(script, script.rfind(text).unwrap() + 1).unwrap().1;
/// assert_eq!(at("$D"), "`$D` is `/srv`");
/// assert_eq!(at("$1"), "`$1` is unknown: it is an argument of the script");
/// ```
pub fn variable_at(text: &str, offset: usize) -> Option<(Span, String)> {
    let template = template(text);
    let readable = template.as_ref().map_or(text, Template::text);
    let form = form_of(readable);
    if !matches!(form, CommandLineForm::Shell | CommandLineForm::Unit) {
        return None;
    }
    let script = evaluation(readable, form, &Decisions::new(), &BTreeMap::new()).ok()?;
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

/// True if a text has a process substitution.
fn has_process(text: &str) -> bool {
    text.contains("<(") || text.contains(">(")
}

fn shell(text: &str, given: &BTreeMap<String, String>) -> Result<Vec<Words>, ReadFailure> {
    let form = CommandLineForm::Shell;
    let has_expansions = text.contains(['$', '`']) || has_process(text) || may_have_braces(text);
    let is_log = text.contains(": starting up libvirt version");
    if let Some(language) = declared(text) {
        return Err(foreign(text, language));
    }
    let is_foreign = !is_log && (has_expansions || is_makefile(text) || is_batch(text));
    if is_foreign {
        let found = evaluated(text, form, given)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let all = commands(text, Span::new(0, text.len()), Quoting::Shell)?;
    let is_options = |words: &Vec<Text>| words[0].as_str().starts_with('-');
    if !all.is_empty() && all.iter().all(is_options) {
        let arguments = all.into_iter().flatten().collect();
        return Ok(vec![Words::new(form, None, arguments)]);
    }
    // One command is QEMU itself, or a program that runs it.
    let is_plain = |words: &[Text]| {
        runs(words, is_program) && feeder(words).is_none() && folder_of_env(words).is_none()
    };
    let is_plain = all.len() == 1 && is_plain(&all[0]);
    if !is_plain && !is_foreign && !is_log {
        let found = evaluated(text, form, given)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let command = |words: Vec<Text>| Command {
        site: words[0].whole().start,
        words,
        owner: None,
        folder: Folder::default(),
    };
    let mut commands: Vec<Command> = all.into_iter().map(command).collect();
    if is_log {
        // Each start of the guest is one command, and the last is the current guest.
        let last = commands.iter().rposition(|it| runs(&it.words, is_program));
        commands = last
            .map(|nth| commands.swap_remove(nth))
            .into_iter()
            .collect();
    }
    let mut found = explore(text, form, |_| {
        Ok(Evaluated {
            commands: commands.clone(),
            ..Evaluated::default()
        })
    })?;
    found
        .iter_mut()
        .for_each(|words| words.is_evaluated = false);
    match found.is_empty() {
        true => Err(no_command(text)),
        false => Ok(found),
    }
}
