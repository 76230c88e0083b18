//! Questions to the user.

use std::io::{ErrorKind, IsTerminal as _, Read};

use crate::io::Io;
use crate::stop::{Stop, plain};

/// True if somebody is there to answer: scripts have no terminal, and are not asked.
pub(crate) fn is_somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks until one of the words or its first letter is the answer; `None` at the end of the input.
pub(crate) fn ask<A: Copy>(
    question: &str,
    answers: &[(&str, A)],
    io: &mut Io<'_>,
) -> Result<Option<A>, Stop> {
    loop {
        io.say(question);
        let Some(said) = read_line(io.stdin)? else {
            io.say("\n");
            return Ok(None);
        };
        let said = said.trim();
        let is_said = |word: &str| said == word || said == &word[..1];
        if let Some((_, answer)) = answers.iter().find(|(word, _)| is_said(word)) {
            return Ok(Some(*answer));
        }
    }
}

/// A line without its end; `None` at the end of the input.
fn read_line(stdin: &mut dyn Read) -> Result<Option<String>, Stop> {
    /// Longer lines are not answers.
    const MAX: usize = 1024;
    let mut bytes = Vec::new();
    let mut byte = [0];
    while bytes.len() < MAX {
        match stdin.read(&mut byte) {
            Ok(0) if bytes.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => bytes.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let why = plain(&error);
                return Err(Stop::new(format!("could not read standard input: {why}")));
            }
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
