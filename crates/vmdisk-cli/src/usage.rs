//! Help, the version, and mistakes in the usage.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use vmdisk::plan::shell_word;

use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::sanitize;
use crate::stop::Stop;

/// More possible values than this hide the message about them.
const MAX_VALUES: usize = 20;

/// Prints what clap says instead of a command line. Help and version are data; anything else is a mistake in the usage.
pub(crate) fn end(
    mut error: clap::Error,
    arguments: &[OsString],
    io: &mut Io<'_>,
) -> Result<Exit, Stop> {
    advise(&mut error);
    let is_mistake = error.use_stderr();
    let has_color = if is_mistake {
        io.stderr_has_color
    } else {
        io.stdout_has_color
    };
    let text = error.render();
    let mut text = if has_color {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    // An argument may be the name of a file that somebody else chose.
    for argument in arguments {
        let argument = argument.to_string_lossy();
        if let Cow::Owned(safe) = sanitize::line(&argument) {
            text = text.replace(argument.as_ref(), &safe);
        }
    }
    if !has_color {
        text = sanitize::lines(&text).into_owned();
    }
    // clap takes escape sequences out of an argument, which is then not found above.
    let mut lines = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("::") && lines.pop().is_some() {
            lines.push_str("\\u{a}");
        }
        lines.push_str(line);
    }
    let text = lines;
    if is_mistake {
        io.say(&text);
        return Ok(Exit::CouldNot);
    }
    deliver_exact(io, None, &text)?;
    Ok(Exit::Clean)
}

/// Words of other tools, each with what to write instead: commands, options and values.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["check", "validate", "verify", "scan", "analyze"],
        "use `vmdisk lint`",
    ),
    (&["fix"], "use `vmdisk lint --fix`"),
    (
        &["rule"],
        "use `vmdisk explain --list`, or `vmdisk explain RULE`",
    ),
    (&["-f"], "use `--format FORMAT`"),
    (
        &["--watch", "-w"],
        "use a program that runs commands on changes, such as `entr`, or `vmdisk lsp` in an editor",
    ),
    (&["--json"], "use `--format json`"),
    (
        &["-r", "-R", "--recursive"],
        "directories are always searched with all below them",
    ),
    (&["--dry-run"], "use `--diff`"),
    (
        &["never", "none"],
        "use `--exit-zero`, and the exit status is 0 whatever is found",
    ),
];

/// Former names of commands, each with what to write now.
const FORMER: &[(&str, &str)] = &[
    ("rules", "`vmdisk explain --list` lists the rules"),
    (
        "baseline",
        "`vmdisk lint --write-baseline` writes a baseline, and `vmdisk lint --prune-baseline` removes its stale entries",
    ),
    (
        "config",
        "`vmdisk lint --write-config` writes a vmdisk.toml",
    ),
    (
        "capabilities",
        "`vmdisk facts qemu` shows the features of a QEMU",
    ),
    ("schema", "use `vmdisk print schema`"),
    ("completions", "use `vmdisk print completions`"),
    ("man", "use `vmdisk print man`"),
];

/// What to write instead of a word that clap refuses.
fn instead(error: &clap::Error) -> Option<&'static str> {
    let kinds = [
        ContextKind::InvalidSubcommand,
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
    ];
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, now)) = FORMER.iter().find(|(former, _)| former == word)
    {
        return Some(now);
    }
    let mut words = kinds.into_iter().filter_map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    });
    words.find_map(|word| {
        let row = INSTEAD.iter().find(|(words, _)| words.contains(&word));
        row.map(|(_, instead)| *instead)
    })
}

/// Arguments that are often left out, each with what to write.
const REQUIRED: &[(&str, &str)] = &[
    (
        "--size <SIZE>",
        "such as `vmdisk advise --size 100G --live`",
    ),
    (
        "<RULE|WORDS>...",
        "words of a message or a question, such as `vmdisk explain no space left`; `vmdisk explain --list` lists the rules",
    ),
    (
        "<SHELL>",
        "such as `vmdisk print completions bash`; `vmdisk print completions --help` lists the shells",
    ),
    (
        "<FORMAT>",
        "such as `vmdisk print schema facts`; `vmdisk print schema --help` lists the formats",
    ),
];

/// The remedy for a missing argument, or for a file in place of a command.
fn missing(error: &clap::Error) -> Option<String> {
    match (
        error.kind(),
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidSubcommand),
    ) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing)), _) => {
            let row = REQUIRED
                .iter()
                .find(|(argument, _)| missing.iter().any(|it| it == argument));
            row.map(|(_, example)| (*example).to_owned())
        }
        (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(word))) => {
            let is_file = Path::new(word).exists();
            is_file.then(|| format!("use `vmdisk lint {}`", shell_word(word)))
        }
        _ => None,
    }
}

/// Adds what to do to messages that clap leaves without it, and drops lists that fill a screen.
fn advise(error: &mut clap::Error) {
    let has_long_list = matches!(
        error.get(ContextKind::ValidValue),
        Some(ContextValue::Strings(values)) if values.len() > MAX_VALUES
    );
    let is_of_target = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument.starts_with("--target ")
    );
    let is_repeated = error.get(ContextKind::InvalidArg) == error.get(ContextKind::PriorArg);
    let tip = if let Some(tip) = instead(error) {
        error.remove(ContextKind::SuggestedSubcommand);
        tip.to_owned()
    } else if let Some(tip) = missing(error) {
        error.remove(ContextKind::SuggestedSubcommand);
        tip
    } else if has_long_list {
        error.remove(ContextKind::ValidValue);
        "`vmdisk explain --list` lists the rules and their groups".to_owned()
    } else if is_of_target && is_repeated {
        "join versions with commas: --target qemu=10.0,libvirt=11.3".to_owned()
    } else {
        return;
    };
    let tips = vec![tip.into()];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}
