//! Arguments of a subcommand that are built only if the command line names it.

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// The arguments of a subcommand. To build those of all subcommands takes longer than to check a small file.
///
/// [`clap::Subcommand::augment_subcommands_for_update`] builds them at once: completions also list what is below a
/// subcommand.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) Box<T>);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            let about: Resettable<StyledStr> = command.get_about().cloned().into();
            let long_about: Resettable<StyledStr> = command.get_long_about().cloned().into();
            // Flattened arguments overwrite the description of the subcommand.
            with_help(T::augment_args(command).about(about).long_about(long_about))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_help(T::augment_args(command))
    }
}

/// Examples by the names of commands.
const EXAMPLES: &str = include_str!("examples.txt");

/// The examples of a command, such as `facts show`.
pub(crate) fn examples(command: &str) -> String {
    let mut texts = EXAMPLES
        .split("\n\n")
        .filter_map(|text| text.split_once('\n'));
    let found = texts.find(|(name, _)| *name == command);
    found.map_or_else(String::new, |(_, text)| {
        format!("Examples:\n{}", text.trim_end())
    })
}

/// A help that begins with the examples, and ends with the options of every command.
const HELP: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}\n
Everywhere: --color auto|always|never; -h shows what most runs need, --help everything
";

/// The option for the help. Each command that is built has its own: clap copies a global one to all commands.
pub(crate) fn help() -> Arg {
    Arg::new("help")
        .long("help")
        .short('h')
        .action(ArgAction::Help)
        .help("Print the help; `-h` leaves out what few runs need")
        .hide_short_help(true)
        .hide_long_help(true)
}

/// A command with its help and examples, and those of the commands below it.
fn with_help(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let helped = |command: Command, name: &str| {
        let command = command.arg(help()).after_long_help(examples(name));
        command.help_template(HELP)
    };
    let command = command.mut_subcommands(|below| {
        let name = format!("{name} {}", below.get_name());
        helped(below, &name)
    });
    helped(command, &name)
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Box::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        Box::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
