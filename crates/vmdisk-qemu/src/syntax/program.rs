//! Words that name QEMU.

use vmdisk_model::Architecture;

use super::text::Text;

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
        word => Architecture::from_word(word)?,
    })
}

/// True for a command that runs a program with options, or with words that may be options.
pub(super) fn runs(words: &[Text], is_program: fn(&str) -> bool) -> bool {
    let Some(at) = words.iter().position(|word| is_program(word.as_str())) else {
        return false;
    };
    let mut arguments = words[at + 1..].iter();
    if only_asks(arguments.clone().map(|word| match word.has_hole() {
        true => "",
        false => word.as_str(),
    })) {
        return false;
    }
    let is_first = at == 0 || at == 1 && matches!(words[0].as_str(), "exec" | "sudo");
    let is_certain = is_first && !words[at].as_str().starts_with('$');
    arguments.any(|word| {
        let hole = word.hole_at(0).map(|_| word.as_str());
        word.as_str().starts_with('-')
            || is_certain && hole.is_some()
            || is_first && hole.is_some_and(|name| name.contains("[@]"))
    })
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

/// True for a command that runs QEMU, or a variable that is named so.
pub(super) fn is_start(words: &[Text]) -> bool {
    runs(words, is_program) || runs(words, is_program_variable)
}
