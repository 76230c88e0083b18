//! Arguments of a subcommand that are built only if the command line names it.

use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

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
            with_examples(T::augment_args(command).about(about).long_about(long_about))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_examples(T::augment_args(command))
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

/// A command with its examples and those of the commands below it.
fn with_examples(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_subcommands(|below| {
        let text = examples(&format!("{name} {}", below.get_name()));
        below.after_long_help(text)
    });
    command.after_long_help(examples(&name))
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
