//! The kind of file that contains a command line, and its position there.

use vmdisk_model::Architecture;
use vmdisk_source::Span;

use super::hole::{Hole, may_be_disk};
use super::json_text;
use super::script::evaluate;
use super::shell_variables::{expand, variable_name};
use super::shell_words::{Quoting, commands};
use super::text::Text;
use crate::config_file::read::is_config_file;
use crate::failure::ReadFailure;
use crate::limits::Counted;
use crate::monitor::read::is_monitor_script;

/// The form of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandLineForm {
    /// Separated by zero bytes, like `/proc/PID/cmdline`.
    ZeroBytes,
    /// A JSON array of strings.
    Json,
    /// One unquoted word per line.
    Lines,
    /// `ExecStart=` of a systemd unit.
    Unit,
    /// A file of `-readconfig`.
    ConfigFile,
    /// Commands for the monitor, one per line.
    MonitorScript,
    /// Shell syntax: scripts, libvirt's logs, lines of options.
    Shell,
}

/// The words of one command line.
pub(crate) struct Words {
    pub(crate) form: CommandLineForm,
    /// The program, if there is one.
    pub(crate) program: Option<Text>,
    /// The words after the program.
    pub(crate) arguments: Vec<Text>,
    /// The words after each `qemu-storage-daemon` in the same text.
    pub(crate) daemons: Vec<Vec<Text>>,
    /// Expansions without a known value.
    pub(crate) holes: Vec<Hole>,
    /// Text that stands in several places of the command line.
    pub(crate) shared: Vec<Span>,
}

impl Words {
    const fn new(form: CommandLineForm, program: Option<Text>, arguments: Vec<Text>) -> Self {
        Words {
            form,
            program,
            arguments,
            daemons: Vec::new(),
            holes: Vec::new(),
            shared: Vec::new(),
        }
    }
}

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
    if text.starts_with(['<', '{']) || text.contains("<domain") || text.contains("<disk") {
        return false;
    }
    let is_telling = |word: &str| {
        let word = word.trim_matches(['"', '\'', ',', '[', ']']);
        let word = word
            .strip_prefix('-')
            .filter(|rest| rest.starts_with('-'))
            .unwrap_or(word);
        TELLING.contains(&word) || is_program(word)
    };
    text.split(|byte: char| byte.is_whitespace() || byte == '\0' || byte == '=')
        .any(is_telling)
}

/// True if the word names a QEMU that runs whole machines.
pub(crate) fn is_program(word: &str) -> bool {
    program_name(word).starts_with("qemu-system-") || is_kvm(word)
}

/// The file name of a program. For `${NAME:-PROGRAM}`, this is the file name of the default.
fn program_name(word: &str) -> &str {
    let variable = word
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    let default = variable.and_then(|variable| Some(variable.split_once(":-")?.1));
    let path = default.unwrap_or(word);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// True if the word names a QEMU that enables KVM automatically.
pub(crate) fn is_kvm(word: &str) -> bool {
    matches!(program_name(word), "qemu-kvm" | "kvm")
}

/// True for a variable without a known value whose name says that it holds a QEMU, such as `$QEMU`.
fn is_program_variable(word: &str) -> bool {
    let name = variable_name(word).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let suffixes = [
        "", "_bin", "_binary", "_cmd", "_exe", "_kvm", "_path", "_system",
    ];
    name.ends_with("qemu")
        || name
            .strip_prefix("qemu")
            .is_some_and(|rest| suffixes.contains(&rest))
}

/// True for options without disks, whose next word is their value.
fn has_value(option: &str) -> bool {
    matches!(
        option,
        "-accel"
            | "-append"
            | "-bios"
            | "-cpu"
            | "-d"
            | "-D"
            | "-display"
            | "-dtb"
            | "-gdb"
            | "-initrd"
            | "-kernel"
            | "-m"
            | "-machine"
            | "-M"
            | "-monitor"
            | "-name"
            | "-serial"
            | "-smp"
            | "-vga"
    )
}

/// The instruction set that a program emulates, if its name says so.
pub(crate) fn architecture(program: &str) -> Option<Architecture> {
    Some(match program_name(program).strip_prefix("qemu-system-")? {
        "i386" => Architecture::I686,
        "arm" => Architecture::Armv7l,
        word => Architecture::from_wire(word)?,
    })
}

/// Finds the command line in a text.
pub(crate) fn words(text: &str) -> Result<Words, ReadFailure> {
    let form = form_of(text);
    match form {
        CommandLineForm::ZeroBytes => Ok(with_program(form, split(text, '\0')?)),
        CommandLineForm::Lines => Ok(with_program(form, lines(text)?)),
        CommandLineForm::Json => Ok(with_program(form, json_text::strings(text)?)),
        CommandLineForm::Unit => unit(text),
        // These forms have options instead of words.
        CommandLineForm::ConfigFile | CommandLineForm::MonitorScript => {
            Ok(Words::new(form, None, Vec::new()))
        }
        CommandLineForm::Shell => shell(text),
    }
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
        !rest.starts_with(['!', '-', '[', '$']) && {
            let is_test = rest.lines().next().is_some_and(|line| line.contains(" ]"));
            !is_test || text.trim_end().ends_with(']')
        }
    })
}

/// True unless the text needs a shell: a line continues, or an option has its value on the same line.
fn is_one_word_to_a_line(text: &str) -> bool {
    let mut options = 0;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if line.trim_end().ends_with('\\') || line.starts_with([' ', '\t', '#']) {
            return false;
        }
        if line.starts_with('-') || is_program(line) {
            if line.contains([' ', '\t']) {
                return false;
            }
            options += 1;
        }
    }
    options > 0
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

fn unit(text: &str) -> Result<Words, ReadFailure> {
    let mut start = 0;
    // The end of the last value: its continuation lines are not settings.
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start().len();
        let setting = line.trim_start().strip_prefix("ExecStart=");
        if let Some(value) = setting.filter(|_| start >= end) {
            let marks = value.len() - value.trim_start_matches(['-', '@', ':', '+', '!']).len();
            let at = start + blank + "ExecStart=".len() + marks;
            end = at + value_length(&text[at..]);
            let commands = commands(text, Span::new(at, end), Quoting::Unit)?;
            let words: Vec<Text> = commands.into_iter().flatten().collect();
            if words.iter().any(|word| is_program(word.as_str())) {
                return Ok(from_program(CommandLineForm::Unit, words, is_program));
            }
        }
        start += line.len();
    }
    Err(no_command(text))
}

/// Length of a unit's value: to the end of its line, including lines joined by a backslash.
fn value_length(text: &str) -> usize {
    let mut length = 0;
    let mut goes_on = true;
    for line in text.split_inclusive('\n') {
        let is_comment = length > 0 && line.trim_start().starts_with(['#', ';']);
        if !goes_on {
            break;
        }
        length += line.len();
        goes_on = is_comment || line.trim_end().ends_with('\\');
    }
    length
}

/// Removes the words before the program: variables, `exec`, `sudo`, `numactl`.
fn from_program(
    form: CommandLineForm,
    mut words: Vec<Text>,
    is_program: fn(&str) -> bool,
) -> Words {
    match words.iter().position(|word| is_program(word.as_str())) {
        Some(at) => {
            let arguments = words.split_off(at + 1);
            Words::new(form, words.pop(), arguments)
        }
        None => Words::new(form, None, words),
    }
}

/// True for a command that runs a program with options, or with words that may be options.
fn runs(words: &[Text], is_program: fn(&str) -> bool) -> bool {
    let Some(at) = words.iter().position(|word| is_program(word.as_str())) else {
        return false;
    };
    let mut arguments = words[at + 1..].iter().map(Text::as_str);
    let is_first = at == 0 || at == 1 && matches!(words[0].as_str(), "exec" | "sudo");
    let is_certain = is_first && !words[at].as_str().starts_with('$');
    arguments.any(|word| word.starts_with('-') || is_certain && word.starts_with('$'))
}

/// True for a command that runs QEMU, or a variable that is named so.
fn is_start(words: &[Text]) -> bool {
    runs(words, is_program) || runs(words, is_program_variable)
}

/// True unless the text is a makefile or a batch file, whose variables have other rules.
fn is_script(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_foreign = |line: &str| {
        let after = line.trim_start_matches(is_name);
        let operator = after.trim_start();
        let is_assignment = [":=", "::=", "?="]
            .iter()
            .any(|it| operator.starts_with(it))
            || after.starts_with([' ', '\t'])
                && ["= ", "+= "].iter().any(|it| operator.starts_with(it));
        after.len() < line.len() && is_assignment
            || line.to_ascii_lowercase().starts_with("@echo off")
    };
    let has_recipe = || {
        let mut lines = text.lines().zip(text.lines().skip(1));
        let is_rule = |line: &str| {
            let target = line.split_once(':');
            target.is_some_and(|(target, _)| {
                !target.is_empty() && !target.contains(['"', '\'', '=', '#'])
            })
        };
        lines.any(|(line, next)| {
            next.starts_with('\t') && !line.starts_with([' ', '\t']) && is_rule(line)
        })
    };
    text.starts_with("#!") || !text.lines().any(is_foreign) && !has_recipe()
}

fn shell(text: &str) -> Result<Words, ReadFailure> {
    let has_expansions = text.contains(['$', '`']);
    if has_expansions && is_script(text) {
        let script = evaluate(text, is_start)?;
        if script.commands.iter().any(|words| is_start(words)) {
            let words = one_start(text, script.commands, &[])?;
            let scattered = scattered(&words.arguments, text);
            return Ok(Words {
                holes: script.holes,
                shared: script.shared.into_iter().chain(scattered).collect(),
                ..words
            });
        }
    }
    let mut all = commands(text, Span::new(0, text.len()), Quoting::Shell)?;
    let used = expand(text, &mut all, is_program);
    if !has_expansions && !all.iter().any(|words| is_start(words)) {
        let script = evaluate(text, is_start)?;
        if script.commands.iter().any(|words| is_start(words)) {
            all = script.commands;
        }
    }
    one_start(text, all, &used)
}

/// The places of options whose value does not stand beside them: an edit of one would leave the other.
fn scattered(arguments: &[Text], file: &str) -> Vec<Span> {
    let pairs = arguments.windows(2);
    let pairs = pairs
        .filter(|pair| pair[0].as_str().starts_with('-') && !pair[1].as_str().starts_with('-'));
    let is_scattered = |[first, second]: &[Span; 2]| {
        let between = file.get(first.end..second.start);
        between.is_none_or(|between| !between.bytes().all(|it| b" \t\r\n\\'\"".contains(&it)))
    };
    let pairs = pairs.map(|pair| [pair[0].whole(), pair[1].whole()]);
    pairs.filter(is_scattered).flatten().collect()
}

/// The command that starts QEMU, of which there must be one.
fn one_start(text: &str, all: Vec<Vec<Text>>, used: &[String]) -> Result<Words, ReadFailure> {
    let starts = |is_program: fn(&str) -> bool| -> Vec<&Vec<Text>> {
        all.iter().filter(|words| runs(words, is_program)).collect()
    };
    let (mut found, mut is_program) = (starts(is_program), is_program as fn(&str) -> bool);
    if found.is_empty() {
        is_program = is_program_variable;
        found = starts(is_program);
    }
    // Often another target of a makefile starts the same guest for a debugger: the same variable, and no disks of its own.
    let is_harmless = |word: &str| {
        let Some(name) = variable_name(word) else {
            return !may_be_disk(word);
        };
        let lower = name.to_ascii_lowercase();
        is_program_variable(word)
            || lower.contains("gdb")
            || lower.contains("debug")
            || used.iter().any(|known| known == name)
    };
    let is_repetition = |words: &&Vec<Text>| {
        let before = std::iter::once("").chain(words.iter().map(Text::as_str));
        before
            .zip(words.iter())
            .all(|(before, word)| has_value(before) || is_harmless(word.as_str()))
    };
    if found.len() > 1 && found.iter().filter(|words| !is_repetition(words)).count() == 1 {
        found.retain(|words| !is_repetition(words));
    }
    // In a log each start of the guest is one command, and the last is the current guest.
    let is_log = text.contains(": starting up libvirt version");
    match found.as_slice() {
        [] => {
            let is_options = |words: &Vec<Text>| words[0].as_str().starts_with('-');
            if all.is_empty() || !all.iter().all(is_options) {
                return Err(no_command(text));
            }
            let arguments = all.into_iter().flatten().collect();
            Ok(Words::new(CommandLineForm::Shell, None, arguments))
        }
        [only] => Ok(Words {
            daemons: daemons(whole(only, &all)?),
            ..from_program(CommandLineForm::Shell, (*only).clone(), is_program)
        }),
        [.., last] if is_log => Ok(from_program(
            CommandLineForm::Shell,
            (*last).clone(),
            is_program,
        )),
        [_, second, ..] => Err(ReadFailure::new(
            second[0].whole(),
            format!(
                "the file starts QEMU {} times, but only one command line per file is supported",
                found.len()
            ),
        )
        .help("put each into a separate file")),
    }
}

/// All commands, unless options follow that are not part of the command of QEMU.
fn whole<'a>(qemu: &[Text], all: &'a [Vec<Text>]) -> Result<&'a [Vec<Text>], ReadFailure> {
    let next = all
        .iter()
        .skip_while(|words| !std::ptr::eq(words.as_slice(), qemu))
        .nth(1);
    let is_option = |word: &&Text| {
        let mut bytes = word.as_str().bytes();
        bytes.next() == Some(b'-') && bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
    };
    match next.map(|words| &words[0]).filter(is_option) {
        Some(option) => Err(ReadFailure::new(
            option.whole(),
            format!(
                "`{}` is not part of the command: the command of QEMU ends before this line",
                option.as_str()
            ),
        )
        .help("end each line before it with a backslash, and move comments out of the command")),
        None => Ok(all),
    }
}

/// The options of the storage daemons among the commands.
fn daemons(all: &[Vec<Text>]) -> Vec<Vec<Text>> {
    let options = |words: &Vec<Text>| {
        let at = words.iter().position(|word| is_daemon(word.as_str()))?;
        Some(words[at + 1..].to_vec())
    };
    all.iter().filter_map(options).collect()
}

/// True if the word names a storage daemon of QEMU.
fn is_daemon(word: &str) -> bool {
    word.rsplit('/').next().unwrap_or(word) == "qemu-storage-daemon"
}

fn no_command(text: &str) -> ReadFailure {
    let end = text.find('\n').unwrap_or(text.len());
    ReadFailure::new(Span::new(0, end), "no QEMU command line found")
        .help("expected a word such as qemu-system-x86_64, or lines of options")
}
