//! Words that name QEMU.

use vmdisk_model::Architecture;

use super::text::Text;

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

/// True for an option that only QEMU has.
pub(super) fn is_telling(word: &str) -> bool {
    let double = word.strip_prefix('-').filter(|rest| rest.starts_with('-'));
    TELLING.contains(&double.unwrap_or(word))
}

/// True if the word names a QEMU that runs whole machines.
pub(crate) fn is_program(word: &str) -> bool {
    let name = program_name(word);
    // A comma is of the list of another language, and a colon of a message of QEMU.
    name.starts_with("qemu-system-") && !name.ends_with([',', ':']) || is_kvm(word)
}

/// True if the word names a program of QEMU that opens disks: a machine or a storage daemon.
pub fn is_qemu(word: &str) -> bool {
    is_program(word) || program_name(word) == "qemu-storage-daemon"
}

/// True for arguments that ask QEMU for its version or a list, after which it ends.
pub fn asks(arguments: &[impl AsRef<str>]) -> bool {
    only_asks(arguments.iter().map(AsRef::as_ref))
}

/// The file name of a program. For `${NAME:-PROGRAM}`, this is the file name of the default.
fn program_name(word: &str) -> &str {
    let variable = word
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    let default = variable.and_then(|variable| Some(variable.split_once(":-")?.1));
    let path = default.unwrap_or(word);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    // `$(Q)qemu-system-x86_64`: what hides a command of make, or where programs are.
    let rest = name
        .strip_prefix("$(")
        .and_then(|rest| rest.split_once(')'))
        .or_else(|| name.strip_prefix("${")?.split_once('}'));
    let name = rest.map_or(name, |(_, name)| name);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The name in `$NAME`, `${NAME}`, `${NAME[@]}`, `$(NAME)` and `@NAME@`, and that of the last member in `{{…}}`.
fn variable_name(word: &str) -> Option<&str> {
    let between = |open, close| word.strip_prefix(open)?.strip_suffix(close);
    if let Some(name) = between("{{", "}}").or(between("@", "@")) {
        return name.trim_matches('_').rsplit('.').next();
    }
    let name = word.strip_prefix('$')?;
    let between = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    let name = between('{', '}').or(between('(', ')')).unwrap_or(name);
    let name = name.strip_suffix("[@]").unwrap_or(name);
    let name = name.strip_suffix("[*]").unwrap_or(name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// True for a word that an engine of templates fills in.
pub(super) fn is_placeholder(word: &str) -> bool {
    word.starts_with("{{") || word.starts_with('@')
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

/// True for a text with a program of QEMU, or with any name of QEMU, such as that of a variable.
pub(super) fn names_qemu(text: &str) -> bool {
    text.to_ascii_lowercase().contains("qemu") || names_program(text)
}

/// True for a text with a program of QEMU as a word.
pub(super) fn names_program(text: &str) -> bool {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`,[](){}=;&|@".contains(letter);
    text.split(is_end).any(is_program)
}

/// True for the program of a storage daemon.
pub(super) fn is_storage_daemon(word: &str) -> bool {
    program_name(word) == "qemu-storage-daemon"
}

/// The instruction set that a program emulates, if its name says so.
pub(crate) fn architecture(program: &str) -> Option<Architecture> {
    Some(match program_name(program).strip_prefix("qemu-system-")? {
        "i386" => Architecture::I686,
        "arm" => Architecture::Armv7l,
        word => Architecture::from_word(word)?,
    })
}

/// True for words from a program on that have an option, or a word that may be some.
pub(super) fn may_start(words: &[Text]) -> bool {
    let mut arguments = words.iter().skip(1);
    arguments.any(|word| word.as_str().starts_with(['-', '{']) || word.hole_at(0).is_some())
}

/// True for arguments that ask QEMU for its version or a list, after which it ends.
pub(super) fn only_asks<'a>(arguments: impl Iterator<Item = &'a str>) -> bool {
    let mut before = "";
    for word in arguments {
        let is_list =
            before.starts_with('-') && (matches!(word, "help" | "?") || word.ends_with(",help"));
        if is_list || matches!(word, "-version" | "--version" | "-h" | "-help" | "--help") {
            return true;
        }
        before = word;
    }
    false
}

/// True for words of which the first is a variable that is named after QEMU.
pub(super) fn is_start_of_variable(words: &[Text]) -> bool {
    let mut first = words.iter().take(1);
    first.any(|it| {
        let is_open = it.has_hole() || is_placeholder(it.as_str());
        is_open && is_program_variable(it.as_str())
    }) && may_start(words)
}
