//! Proposals for names and values at a place, each with the first version that knows it.

pub(crate) mod command_line;
mod flow;
mod proposal;
mod spec;
pub(crate) mod xml;
mod xml_proposals;

use std::path::Path;

use vmdisk::Target;

use crate::language::Language;
use proposal::Proposals;

/// The proposals for an offset; `None` where there are none.
pub(crate) fn complete(
    path: &Path,
    text: &str,
    offset: usize,
    target: &Target,
) -> Option<Proposals> {
    match Language::of(path, text)? {
        Language::Xml => xml_proposals::complete(text, offset, target),
        Language::CommandLine => command_line::complete(text, offset, target),
        Language::Spec => spec::complete(text, offset, target),
    }
}
