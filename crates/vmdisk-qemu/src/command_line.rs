//! A command line and its output forms.

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::daemon::StorageDaemon;
use crate::json::{Json, JsonObject};
use crate::problem::WriteProblem;
use crate::shell::shell_quote;

/// A QEMU command line, as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program, if the whole guest is written.
    pub program: Option<&'static str>,
    /// The options, in order.
    pub arguments: Vec<Argument>,
    /// Words after the options that somebody else wrote; nothing of them is known here.
    pub further: Vec<String>,
    /// The daemons that must run before it, one for each vhost-user disk whose image is known.
    pub daemons: Vec<StorageDaemon>,
    /// Settings that a command line cannot express, so that QEMU or its user decides. The guest starts with these disks
    /// regardless, except if a secret is missing that only libvirt has: its note says how to pass it.
    pub left_out: Vec<WriteProblem>,
}

impl CommandLine {
    /// The words to start a process with, including the program if there is one.
    pub fn argv(&self) -> Vec<String> {
        let program = self.program.map(str::to_owned);
        let words = self.arguments.iter().flat_map(|argument| {
            [Some(argument.option.to_string()), argument.value.word()]
                .into_iter()
                .flatten()
        });
        let further = self.further.iter().cloned();
        program.into_iter().chain(words).chain(further).collect()
    }

    /// Text for a POSIX shell, one option per line, that starts exactly [`CommandLine::argv`], after the daemons.
    pub fn to_shell(&self) -> String {
        let daemons: String = self.daemons.iter().map(StorageDaemon::to_shell).collect();
        daemons + &self.to_shell_alone()
    }

    fn to_shell_alone(&self) -> String {
        let options = self.arguments.iter().map(|argument| {
            let option = argument.option.as_word();
            match argument.value.word() {
                Some(word) => format!("{option} {}", shell_quote(&word)),
                None => option.to_owned(),
            }
        });
        let lines: Vec<String> = self
            .program
            .map(str::to_owned)
            .into_iter()
            .chain(options)
            .collect();
        let mut text = lines.join(" \\\n  ");
        for word in &self.further {
            let before = if word.starts_with('-') {
                " \\\n  "
            } else {
                " "
            };
            text.push_str(before);
            text.push_str(&shell_quote(word));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// [`CommandLine::argv`] as a JSON array of strings, for programs that start QEMU; with daemons an array of such
    /// arrays, in the order in which they must start.
    pub fn to_json_argv(&self) -> Json {
        let array = |words: Vec<String>| Json::Array(words.into_iter().map(Json::String).collect());
        if self.daemons.is_empty() {
            return array(self.argv());
        }
        let daemons = self.daemons.iter().map(|daemon| array(daemon.argv()));
        Json::Array(daemons.chain([array(self.argv())]).collect())
    }

    /// The objects of `-blockdev`, in an order that `blockdev-add` accepts too: children first.
    pub fn blockdevs(&self) -> impl Iterator<Item = &JsonObject> {
        self.arguments
            .iter()
            .filter(|argument| argument.option == QemuOption::Blockdev)
            .filter_map(|argument| match &argument.value {
                ArgumentValue::Json(object) => Some(object),
                ArgumentValue::None | ArgumentValue::KeyValue(_) => None,
            })
    }

    /// The objects of `-blockdev` as one JSON array.
    pub fn to_blockdev_json(&self) -> Json {
        Json::Array(self.blockdevs().cloned().map(Json::Object).collect())
    }
}
