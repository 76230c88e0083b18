//! The words of one start of QEMU.

use vmdisk_source::Span;

use super::folder::Folder;
use super::hole::{Hole, mark};
use super::made_image::MadeImage;
use super::placeholders::Placeholders;
use super::text::Text;

/// The form of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandLineForm {
    /// Separated by zero bytes, like `/proc/PID/cmdline`.
    ZeroBytes,
    /// A JSON array of strings.
    Json,
    /// One unquoted word per line.
    Lines,
    /// `ExecStart=` of a systemd unit.
    Unit,
    /// A file of `-readconfig`.
    ConfigFile,
    /// Commands for the monitor, one per line.
    MonitorScript,
    /// Shell syntax: scripts, libvirt's logs, lines of options.
    Shell,
}

/// The words of one command line.
pub(crate) struct Words {
    pub(crate) form: CommandLineForm,
    /// The program, if there is one.
    pub(crate) program: Option<Text>,
    /// The words after the program.
    pub(crate) arguments: Vec<Text>,
    /// The words after each `qemu-storage-daemon` in the same text.
    pub(crate) daemons: Vec<Vec<Text>>,
    /// The images that the same text makes.
    pub(crate) made: Vec<MadeImage>,
    /// Expansions without a known value.
    pub(crate) holes: Vec<Hole>,
    /// Text that stands in several places of the command line.
    pub(crate) shared: Vec<Span>,
    pub(crate) start: Start,
    /// True if the values of its variables are already in the words.
    pub(crate) is_evaluated: bool,
}

impl Words {
    pub(super) fn new(form: CommandLineForm, program: Option<Text>, arguments: Vec<Text>) -> Self {
        Words {
            form,
            program,
            arguments,
            daemons: Vec::new(),
            made: Vec::new(),
            holes: Vec::new(),
            shared: Vec::new(),
            start: Start::default(),
            is_evaluated: false,
        }
    }
}

impl Words {
    /// Marks what another program fills in.
    pub(super) fn mark(&mut self, placeholders: &Placeholders<'_>) {
        // Nobody fills in what a process was started with.
        if self.form != CommandLineForm::ZeroBytes {
            let is_split = |word: &Text| placeholders.words(word).is_some();
            if self.arguments.iter().any(is_split) {
                let words = std::mem::take(&mut self.arguments).into_iter();
                let split = |word: Text| placeholders.words(&word).unwrap_or_else(|| vec![word]);
                self.arguments = words.flat_map(split).collect();
            }
            let words = self.program.iter_mut().chain(&mut self.arguments);
            mark(words, &mut self.holes, self.is_evaluated, placeholders);
        }
    }
}

/// A start of QEMU among those of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The function or target that it stands in.
    pub owner: Option<String>,
    /// Its place in the file: of the call of its function, or of the command.
    pub offset: usize,
    /// The conditions under which the script reaches it so.
    pub conditions: Vec<String>,
    /// True if a run without arguments and variables of the caller reaches it so.
    pub is_default: bool,
    /// Where the script runs it.
    pub folder: Folder,
    /// True if it is another start once more, with text that only counts under the last condition.
    pub is_part: bool,
}
