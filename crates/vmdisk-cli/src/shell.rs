//! `vmdisk completions` and `vmdisk man`: files that a package installs with the binary.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::atomic;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::{Stop, plain};

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    let mut command = Cli::whole();
    clap_complete::generate(args.shell, &mut command, "vmdisk", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        script = complete_lists(&script, &list_options(&command));
        script = script.replacen(PREVIOUS, &[PREVIOUS, OPTION_BEFORE].concat(), 1);
    }
    deliver(io, None, &script)?;
    Ok(Exit::Clean)
}

/// The line of a bash script that sets the word before the completed one.
const PREVIOUS: &str = "    prev=\"$3\"\n";

/// For bash, `=` is a word of its own in `--option=value`.
const OPTION_BEFORE: &str = r#"    if [[ "${prev}" == "=" && "${COMP_CWORD}" -gt 1 ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    fi
"#;

/// The long options of a command, and of those below it, whose value is a list with commas.
fn list_options(command: &Command) -> BTreeSet<String> {
    let is_list = |option: &&clap::Arg| option.get_value_delimiter() == Some(',');
    let own = command.get_opts().filter(is_list);
    let own = own.filter_map(|option| option.get_long().map(str::to_owned));
    let below = command.get_subcommands().flat_map(list_options);
    own.chain(below).collect()
}

/// The bash script with a completion of every word of a list. clap completes only the first.
fn complete_lists(script: &str, options: &BTreeSet<String>) -> String {
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
    out
}

/// Prints the main page, or writes all of them.
pub(crate) fn man(args: &ManArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let mut command = Cli::whole().disable_help_subcommand(true);
    command.build();
    match &args.directory {
        None => {
            let page = page(command)?;
            deliver(io, None, &String::from_utf8_lossy(&page))?;
        }
        Some(directory) => {
            fs::create_dir_all(directory)
                .map_err(|error| Stop::file("create", directory, plain(&error)))?;
            write_all(directory, &command)?;
        }
    }
    Ok(Exit::Clean)
}

/// Writes the page of a command, and those of the commands below it.
fn write_all(directory: &Path, command: &Command) -> Result<(), Stop> {
    for below in command.get_subcommands() {
        write_all(directory, below)?;
    }
    let path = directory.join(manual(command.clone()).get_filename());
    atomic::write(&path, &page(command.clone())?).map_err(|error| Stop::file("write", &path, error))
}

fn page(command: Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    manual(command)
        .render(&mut page)
        .map_err(|error| Stop::new(format!("could not write a manual page: {error}")))?;
    Ok(page)
}

fn manual(command: Command) -> clap_mangen::Man {
    clap_mangen::Man::new(command)
        // Without a date, man would take the next field for one.
        .date(" ")
        .source(concat!("vmdisk ", env!("CARGO_PKG_VERSION")))
}
