//! Completion of every word of a list with commas: clap's scripts complete only the first.

use std::collections::BTreeSet;

use clap::Command;
use clap_complete::Shell;

/// The script of a shell with a completion of lists, if it is a shell for which that is written.
pub(super) fn complete(shell: Shell, script: &str, command: &Command) -> String {
    let options = list_options(command);
    match shell {
        Shell::Bash => bash(script, &options),
        Shell::Zsh => zsh(script, &options),
        Shell::Fish => fish(script, &options),
        _ => script.to_owned(),
    }
}

/// The long options of a command, and of those below it, whose value is a list with commas.
fn list_options(command: &Command) -> BTreeSet<String> {
    let is_list = |option: &&clap::Arg| option.get_value_delimiter() == Some(',');
    let own = command.get_opts().filter(is_list);
    let own = own.filter_map(|option| option.get_long().map(str::to_owned));
    let below = command.get_subcommands().flat_map(list_options);
    own.chain(below).collect()
}

/// The line of a bash script that sets the word before the completed one.
const PREVIOUS: &str = "    prev=\"$3\"\n";

/// For bash, `=` is a word of its own in `--option=value`.
const OPTION_BEFORE: &str = r#"    if [[ "${prev}" == "=" && "${COMP_CWORD}" -gt 1 ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    fi
"#;

fn bash(script: &str, options: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(script.len());
    let mut is_list = false;
    for line in script.split_inclusive('\n') {
        match line.trim().strip_prefix("COMPREPLY=($(compgen -W ") {
            Some(words) if is_list => {
                let words = words.replace(r#"-- "${cur}""#, r#"-- "${cur##*,}""#);
                let prefix = r#"COMPREPLY=($(compgen -P "${cur%"${cur##*,}"}" -W "#;
                out.push_str(&line[..line.len() - line.trim_start().len()]);
                out.push_str(prefix);
                out.push_str(&words);
                out.push('\n');
            }
            Some(_) | None => out.push_str(line),
        }
        let option = line.trim().strip_prefix("--");
        let option = option.and_then(|line| line.strip_suffix(')'));
        is_list = option.is_some_and(|option| options.contains(option));
    }
    out.replacen(PREVIOUS, &[PREVIOUS, OPTION_BEFORE].concat(), 1)
}

/// The first function that a zsh script defines beside the completion itself.
const ZSH_FUNCTIONS: &str = "(( $+functions[_vmdisk_commands] )) ||\n";

/// A function that completes the word behind the last comma.
const ZSH_LIST: &str = r#"(( $+functions[_vmdisk_list] )) ||
_vmdisk_list() {
    local -a items=("$@")
    compset -P '*,'
    _describe 'item' items
}
"#;

fn zsh(script: &str, options: &BTreeSet<String>) -> String {
    const ACTION: &str = ": _vmdisk_list ";
    let mut out = String::with_capacity(script.len());
    let mut is_list = false;
    for line in script.split_inclusive('\n') {
        let option = line.trim_start_matches(['\'', '*']).strip_prefix("--");
        let option = option.and_then(|rest| rest.split_once("=["));
        if let Some((option, _)) = option {
            is_list = options.contains(option);
        }
        // Words with descriptions are in two pairs of parentheses, on a line each; plain words in one, on the same line.
        let begins = line.rsplit_once(":((").or_else(|| {
            let plain = line.ends_with(")' \\\n") && option.is_some();
            line.rsplit_once(":(").filter(|_| plain)
        });
        let line = match begins {
            Some((before, words)) if is_list && option.is_some() => {
                [before, ACTION, words].concat()
            }
            Some(_) | None => line.to_owned(),
        };
        let ends = ["))' \\\n", ")' \\\n"];
        match ends.iter().find_map(|end| line.strip_suffix(end)) {
            Some(words) if is_list => {
                out.push_str(words);
                out.push_str("' \\\n");
                is_list = false;
            }
            Some(_) | None => out.push_str(&line),
        }
    }
    out.replacen(ZSH_FUNCTIONS, &[ZSH_LIST, ZSH_FUNCTIONS].concat(), 1)
}

/// A function that writes each of its words behind the part of a list that ends with the last comma.
const FISH_LIST: &str = r#"function __fish_vmdisk_list
    set -l list (commandline -ct | string replace -r '^--[^=]*=' '')
    set -l before (string match -r '^.*,' -- $list)
    printf '%s\n' "$before"$argv
end

"#;

fn fish(script: &str, options: &BTreeSet<String>) -> String {
    let mut out = FISH_LIST.to_owned();
    // The words of an option: true if they are words of a list.
    let mut words_of: Option<bool> = None;
    for line in script.split_inclusive('\n') {
        let mut words = line;
        if let Some((before, first)) = line.split_once(" -a \"")
            && let Some((_, option)) = before.split_once(" -l ")
        {
            let option = option.split(' ').next().unwrap_or_default();
            let is_list = options.contains(option);
            words_of = Some(is_list);
            out.push_str(before);
            out.push_str(if is_list {
                " -a \"(__fish_vmdisk_list "
            } else {
                " -a \""
            });
            words = first;
        }
        let Some(is_list) = words_of else {
            out.push_str(words);
            continue;
        };
        // Between double quotes, fish reads a variable; clap does not escape it.
        let words = words.replace('$', r"\$");
        // The words of a call are on one line.
        match (is_list, words.strip_suffix("\"\n")) {
            (true, Some(last)) => out.push_str(&format!("{last})\"\n")),
            (true, None) => out.push_str(&format!("{} ", words.trim_end())),
            (false, _) => out.push_str(&words),
        }
        if words.ends_with("\"\n") {
            words_of = None;
        }
    }
    out
}
