//! Why a command ends before its work is done.

use std::fmt::Display;
use std::path::Path;

use crate::render::message::Message;

/// Why a command ends before its work is done; it becomes messages and exit status 2.
#[derive(Debug)]
pub(crate) struct Stop(pub(crate) Vec<Message>);

impl Stop {
    /// Ends with one line.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Stop(vec![Message::error(title)])
    }

    /// Ends because something about a file failed; `doing` reads `read facts`.
    pub(crate) fn file(doing: &str, path: &Path, error: impl Display) -> Self {
        Stop::new(format!("could not {doing} {}: {error}", path.display()))
    }

    /// Adds what to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        if let Some(last) = self.0.last_mut() {
            last.help = Some(help.into());
        }
        self
    }
}

impl From<Message> for Stop {
    fn from(message: Message) -> Self {
        Stop(vec![message])
    }
}

impl From<Box<Message>> for Stop {
    fn from(message: Box<Message>) -> Self {
        Stop(vec![*message])
    }
}

/// The message of the operating system, without the number after it.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}
