//! The kind of file that contains a command line, and its position there.

use std::collections::BTreeMap;

use vmdisk_model::Architecture;
use vmdisk_source::Span;

use super::batch::{self, is_batch};
use super::hole::{Command, Decisions, Evaluated, Hole, mark};
use super::json_text;
use super::language::{declared, foreign, no_command};
use super::makefile::{self, is_makefile};
use super::script::evaluate;
use super::shell_words::{Quoting, commands};
use super::starts::{Start, explore};
use super::text::Text;
use super::unit;
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
    pub(crate) start: Start,
    /// True if the values of its variables are already in the words.
    pub(crate) is_evaluated: bool,
}

impl Words {
    fn new(form: CommandLineForm, program: Option<Text>, arguments: Vec<Text>) -> Self {
        Words {
            form,
            program,
            arguments,
            daemons: Vec::new(),
            holes: Vec::new(),
            shared: Vec::new(),
            start: Start::default(),
            is_evaluated: false,
        }
    }
}

impl Words {
    /// Marks what another program fills in.
    fn mark(&mut self) {
        // Nobody fills in what a process was started with.
        if self.form != CommandLineForm::ZeroBytes {
            let words = self.program.iter_mut().chain(&mut self.arguments);
            mark(words, &mut self.holes, self.is_evaluated);
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
    let name = program_name(word);
    // A comma is of the list of another language.
    name.starts_with("qemu-system-") && !name.ends_with(',') || is_kvm(word)
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

/// The name in `$NAME`, `${NAME}`, `${NAME[@]}` and `$(NAME)`.
fn variable_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let between = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    let name = between('{', '}').or(between('(', ')')).unwrap_or(name);
    let name = name.strip_suffix("[@]").unwrap_or(name);
    let name = name.strip_suffix("[*]").unwrap_or(name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// True if the word names a QEMU that enables KVM automatically.
pub(crate) fn is_kvm(word: &str) -> bool {
    matches!(program_name(word), "qemu-kvm" | "kvm")
}

/// True for a variable without a known value whose name says that it holds a QEMU, such as `$QEMU`.
pub(super) fn is_program_variable(word: &str) -> bool {
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

/// The instruction set that a program emulates, if its name says so.
pub(crate) fn architecture(program: &str) -> Option<Architecture> {
    Some(match program_name(program).strip_prefix("qemu-system-")? {
        "i386" => Architecture::I686,
        "arm" => Architecture::Armv7l,
        word => Architecture::from_wire(word)?,
    })
}

/// Finds the command lines in a text; `given` are values of its variables.
pub(crate) fn words(
    text: &str,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Words>, ReadFailure> {
    let form = form_of(text);
    let mut words = match form {
        CommandLineForm::ZeroBytes => with_program(form, split(text, '\0')?),
        CommandLineForm::Lines => with_program(form, lines(text)?),
        CommandLineForm::Json => with_program(form, json_text::strings(text)?),
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
    words.mark();
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

/// Removes the words before the program: variables, `exec`, `sudo`, `numactl`.
pub(super) fn from_program(
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
pub(super) fn runs(words: &[Text], is_program: fn(&str) -> bool) -> bool {
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

/// The commands of a text with the values of its variables.
fn evaluation(
    text: &str,
    form: CommandLineForm,
    ways: &Decisions,
    given: &BTreeMap<String, String>,
) -> Result<Evaluated, ReadFailure> {
    if form == CommandLineForm::Unit {
        unit::evaluate(text, given)
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
    let mut found = explore(text, form, |ways| evaluation(text, form, ways, given))?;
    found.iter_mut().for_each(Words::mark);
    Ok(found)
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
    let form = form_of(text);
    if !matches!(form, CommandLineForm::Shell | CommandLineForm::Unit) {
        return None;
    }
    let script = evaluation(text, form, &Decisions::new(), &BTreeMap::new()).ok()?;
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

fn shell(text: &str, given: &BTreeMap<String, String>) -> Result<Vec<Words>, ReadFailure> {
    let form = CommandLineForm::Shell;
    let has_expansions = text.contains(['$', '`']);
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
        let mut words = Words::new(form, None, arguments);
        words.mark();
        return Ok(vec![words]);
    }
    if all.len() > 1 && !is_foreign && !is_log {
        let found = evaluated(text, form, given)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let command = |words: Vec<Text>| Command {
        site: words[0].whole().start,
        words,
        owner: None,
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
    found.iter_mut().for_each(|words| {
        words.is_evaluated = false;
        words.mark();
    });
    match found.is_empty() {
        true => Err(no_command(text)),
        false => Ok(found),
    }
}
