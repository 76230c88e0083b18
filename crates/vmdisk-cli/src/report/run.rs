//! The results of a run.

use vmdisk::report::SaidOnce;

use crate::exit::Exit;

use super::caveats::Caveats;
use super::input::InputReport;
use super::tally::Tally;

/// The results of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunReport<'a> {
    /// The reports of inputs in order, each followed by those of files that it names; then further findings about guests
    /// that conflict, and what could not be read. Where only numbers are wanted, just those with messages.
    pub(crate) inputs: &'a [InputReport],
    pub(crate) tally: &'a Tally,
    pub(crate) caveats: &'a Caveats<'a>,
    /// The name of the only host, where there are facts of one.
    pub(crate) host: Option<&'a str>,
    /// Whose facts were used, in words.
    pub(crate) facts: &'a str,
    /// The advice that was said at one of several guests.
    pub(crate) said: &'a SaidOnce,
    pub(crate) exit: Exit,
}
