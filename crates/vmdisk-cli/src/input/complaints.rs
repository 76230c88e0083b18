//! Messages about directories and patterns.

use std::path::Path;

use crate::input::hints;
use crate::input::inputs::Search;
use crate::render::message::Message;
use crate::report::input::InputReport;

/// Messages about a directory or pattern itself.
pub(crate) fn complaints(search: &Search, holds_ours: bool) -> Vec<InputReport> {
    let complain = |path: &Path, title: String, notes, help: Option<&str>| {
        let help = help.map(str::to_owned);
        let error = Message::error(title);
        InputReport::failed(path, error.notes(notes).help(help))
    };
    let mut all: Vec<InputReport> = search
        .trouble
        .iter()
        .map(|(path, why)| {
            let is_closed = *path != search.path && why == "permission denied";
            let help = "let this user search it, or name it in `exclude` in vmdisk.toml";
            let message = format!("could not be read: {why}");
            complain(path, message, Vec::new(), is_closed.then_some(help))
        })
        .collect();
    if !holds_ours && all.is_empty() && !search.may_be_empty {
        let what = if search.path.is_dir() {
            "no file below this directory contains a guest or a disk"
        } else {
            "no file that matches this pattern contains a guest or a disk"
        };
        let (notes, help) = match &search.excluded {
            None => (
                Vec::new(),
                "name a file to read it regardless of its name and .gitignore; on a host of libvirt, \
                 `vmdisk lint --all-domains --live` checks its guests, and `vmdisk lint --live` here the host itself",
            ),
            Some((number, by)) => (
                vec![skipped(*number, by)],
                "correct `exclude`, or name a file to read it regardless of its name and `exclude`",
            ),
        };
        let known = hints::of_directory(&search.path);
        let help = known.as_deref().unwrap_or(help);
        all.push(complain(&search.path, what.to_owned(), notes, Some(help)));
    }
    all
}

/// The number of files that something excludes.
pub(crate) fn skipped(number: usize, by: &str) -> String {
    let files = if number == 1 { "file" } else { "files" };
    format!("{by} skips {number} {files}")
}
