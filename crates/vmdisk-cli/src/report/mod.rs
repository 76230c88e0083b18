//! Reports: the results of a run as data, which every output is made from.

pub(crate) mod caveats;
pub(crate) mod diff;
pub(crate) mod input;
pub(crate) mod run;
pub(crate) mod tally;
