//! The results of a run.

use crate::exit::Exit;
use crate::render::summary::Summary;

use super::caveats::Caveats;
use super::input::InputReport;

/// The results of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunReport<'a> {
    /// The reports of inputs in order, each followed by those of files that it names; then further findings about guests
    /// that conflict, and what could not be read.
    pub(crate) inputs: &'a [InputReport],
    pub(crate) summary: &'a Summary,
    pub(crate) caveats: &'a Caveats<'a>,
    /// The name of the only host, where there are facts of one.
    pub(crate) host: Option<&'a str>,
    pub(crate) exit: Exit,
}
