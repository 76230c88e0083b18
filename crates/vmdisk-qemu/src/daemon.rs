//! `qemu-storage-daemon`: the server of a vhost-user-blk disk.

use crate::argument::Argument;
use crate::shell::shell_quote;

/// The command line of a daemon that serves one disk and starts before QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDaemon {
    /// The index of the disk that it serves.
    pub disk: usize,
    /// The socket that it creates.
    pub socket: String,
    /// Its options, in order.
    pub arguments: Vec<Argument>,
}

impl StorageDaemon {
    /// The program.
    pub const PROGRAM: &'static str = "qemu-storage-daemon";

    /// The words to start a process with, the program first. Its options have two dashes.
    pub fn argv(&self) -> Vec<String> {
        let words = self.arguments.iter().flat_map(|argument| {
            [Some(format!("-{}", argument.option)), argument.value.word()]
                .into_iter()
                .flatten()
        });
        std::iter::once(Self::PROGRAM.to_owned())
            .chain(words)
            .collect()
    }

    /// Text for a POSIX shell that starts the daemon and waits until its socket exists, or ends with the daemon.
    pub fn to_shell(&self) -> String {
        let mut text = Self::PROGRAM.to_owned();
        for argument in &self.arguments {
            text.push_str(&format!(" \\\n  -{}", argument.option));
            if let Some(word) = argument.value.word() {
                text.push_str(&format!(" {}", shell_quote(&word)));
            }
        }
        text.push_str(&format!(
            " &\nuntil test -S {}; do kill -0 $! || exit 1; sleep 0.1; done\n",
            shell_quote(&self.socket)
        ));
        text
    }
}
