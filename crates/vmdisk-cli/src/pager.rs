//! The user's pager.

use std::io::Write as _;
use std::process::{Command, ExitStatus, Stdio};

use crate::io::Io;
use crate::output::deliver_exact;
use crate::stop::Stop;

/// Prints a text; on a terminal in the user's pager.
pub(crate) fn page(io: &mut Io<'_>, text: &str) -> Result<(), Stop> {
    if io.stdout_width.is_some() && show(text) {
        return Ok(());
    }
    deliver_exact(io, None, text)
}

/// Shows a text in the program that `PAGER` names, by default less; false if none can be started.
fn show(text: &str) -> bool {
    let named = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = named.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else {
        return false;
    };
    let mut pager = Command::new(program);
    if std::env::var_os("LESS").is_none() {
        // As git: end after a text that fits, show colours, leave the text there, and end with Ctrl-C.
        pager.env("LESS", "FRXK");
    }
    pager.args(words);
    feed(pager, text.as_bytes()).is_some()
}

/// Prints a manual page; on a terminal as man shows it.
pub(crate) fn manual(io: &mut Io<'_>, page: &[u8]) -> Result<(), Stop> {
    let mut man = Command::new("man");
    man.args(["-l", "-"]);
    if io.stdout_width.is_some() && feed(man, page).is_some_and(|status| status.success()) {
        return Ok(());
    }
    deliver_exact(io, None, &String::from_utf8_lossy(page))
}

/// Runs a program with a text as its input; `None` if it cannot be started.
fn feed(mut program: Command, text: &[u8]) -> Option<ExitStatus> {
    let mut started = program.stdin(Stdio::piped()).spawn().ok()?;
    if let Some(mut stdin) = started.stdin.take() {
        // The user may end it before the end of the text.
        let _ = stdin.write_all(text);
    }
    started.wait().ok()
}
