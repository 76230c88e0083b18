//! The first phase of reading: from text to options with parsed values.

use std::collections::{BTreeMap, HashSet};

use vmdisk_source::Span;

use crate::config_file;
use crate::failure::ReadFailure;
use crate::monitor;
use crate::overrides::apply_overrides;
use crate::syntax::form::words;
use crate::syntax::hole::Hole;
use crate::syntax::made_image::MadeImage;
use crate::syntax::option::{Fault, OptionList, UNKNOWN_WORD, WrittenOption, options};
use crate::syntax::start::{CommandLineForm, Start, Words};
use crate::syntax::text::Text;

/// The option that names a file with more options.
pub(crate) const READCONFIG: &str = "readconfig";

/// The options of a command line and of the files that it names, in order.
pub(crate) struct Parsed {
    form: CommandLineForm,
    /// The span of the command line.
    whole: Span,
    program: Option<String>,
    options: Vec<WrittenOption>,
    /// The options that were applied to others.
    overrides: HashSet<usize>,
    faults: Vec<Fault>,
    /// Options of daemons that are started together with the guest.
    daemons: Vec<Vec<WrittenOption>>,
    made: Vec<MadeImage>,
    /// Spans and names of the files that are not available.
    missing_files: Vec<(Span, Option<String>)>,
    holes: Vec<Hole>,
    start: Start,
    shared: Vec<Span>,
}

impl Parsed {
    /// Splits each command line of a text, and makes something of each; the other arguments are those of
    /// [`read_all`](crate::read_all).
    pub(crate) fn all<T>(
        text: &str,
        command_line: usize,
        files: &[Span],
        given: &BTreeMap<String, String>,
        make: impl Fn(Self) -> T,
    ) -> Result<Vec<T>, ReadFailure> {
        let main = text.get(..command_line).unwrap_or(text);
        let all = words(main, given)?.into_iter();
        all.map(|words| Ok(make(Parsed::new(text, main, files, words)?)))
            .collect()
    }

    fn new(text: &str, main: &str, files: &[Span], words: Words) -> Result<Self, ReadFailure> {
        let (own, faults) = match words.form {
            CommandLineForm::ConfigFile => {
                config_file::read::options(text, Span::new(0, main.len()))?
            }
            CommandLineForm::MonitorScript => monitor::read::options(main)?,
            CommandLineForm::ZeroBytes
            | CommandLineForm::Json
            | CommandLineForm::Lines
            | CommandLineForm::Unit
            | CommandLineForm::Shell => options(&words.arguments, main)?,
        };
        let mut daemons = Vec::new();
        for arguments in &words.daemons {
            let mut daemon = options(arguments, text)?.0;
            number(&mut daemon);
            daemons.push(daemon);
        }
        let mut parsed = Parsed {
            form: words.form,
            whole: Span::new(0, main.trim_end().len()),
            program: words.program.map(|program| program.as_str().to_owned()),
            options: Vec::new(),
            overrides: HashSet::new(),
            faults,
            daemons,
            made: words.made,
            missing_files: Vec::new(),
            holes: words.holes,
            start: words.start,
            shared: words.shared,
        };
        parsed.add_with_files(own, text, files)?;
        Ok(parsed)
    }

    /// Adds options, and those of each file after the option that names it.
    fn add_with_files(
        &mut self,
        options: Vec<WrittenOption>,
        text: &str,
        files: &[Span],
    ) -> Result<(), ReadFailure> {
        let mut all = OptionList::default();
        let mut files = files.iter();
        for option in options {
            let named = (option.name == READCONFIG).then(|| {
                let name = option.text.clone().filter(|name| !name.has_hole());
                (option.span, name)
            });
            all.push(option)?;
            let Some((span, name)) = named else { continue };
            match name.as_ref().and_then(|_| files.next()) {
                Some(file) => {
                    let (more, faults) = config_file::read::options(text, *file)?;
                    for option in more {
                        all.push(option)?;
                    }
                    self.faults.extend(faults);
                }
                None => {
                    let name = name.map(|name| name.as_str().to_owned());
                    self.missing_files.push((span, name));
                }
            }
        }
        self.options = all.into_options();
        self.overrides = apply_overrides(&mut self.options);
        number(&mut self.options);
        Ok(())
    }

    /// True if there may be further options: in unknown words, or in a file that is not available.
    pub(crate) fn is_open(&self) -> bool {
        let mut words = self.options.iter().filter(|it| it.name == UNKNOWN_WORD);
        !self.missing_files.is_empty() || words.any(|it| self.may_decide(it))
    }

    /// The holes of an unknown word.
    pub(crate) fn holes_of(&self, word: &WrittenOption) -> impl Iterator<Item = &Hole> {
        let numbers = word.text.iter().flat_map(Text::holes);
        numbers.filter_map(|(_, hole)| self.holes.get(hole as usize))
    }

    /// True unless an unknown word has no option that decides over disks or the machine. An ellipsis has no hole.
    pub(crate) fn may_decide(&self, word: &WrittenOption) -> bool {
        let mut holes = self.holes_of(word).peekable();
        holes.peek().is_none() || holes.any(Hole::may_decide)
    }

    /// The expansions without a known value.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// The start among those of its file.
    pub(crate) const fn start(&self) -> &Start {
        &self.start
    }

    /// Text that no edit can change alone.
    pub(crate) fn shared(&self) -> &[Span] {
        &self.shared
    }

    pub(crate) const fn form(&self) -> CommandLineForm {
        self.form
    }

    /// The span of the command line.
    pub(crate) const fn whole(&self) -> Span {
        self.whole
    }

    pub(crate) fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// The options alone.
    pub(crate) fn into_options(self) -> Vec<WrittenOption> {
        self.options
    }

    pub(crate) fn options(&self) -> &[WrittenOption] {
        &self.options
    }

    /// True for an option that was applied to others: `-set`, `-global`.
    pub(crate) fn is_override(&self, option: usize) -> bool {
        self.overrides.contains(&option)
    }

    /// The parts that could not be parsed.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub(crate) fn daemons(&self) -> &[Vec<WrittenOption>] {
        &self.daemons
    }

    /// The images that the same text makes.
    pub(crate) fn made(&self) -> &[MadeImage] {
        &self.made
    }

    pub(crate) fn missing_files(&self) -> &[(Span, Option<String>)] {
        &self.missing_files
    }
}

/// Numbers the values of all options.
fn number(options: &mut [WrittenOption]) {
    let properties = options.iter_mut().filter_map(|it| it.properties.as_mut());
    properties.fold(0, |next, properties| properties.number_from(next));
}
