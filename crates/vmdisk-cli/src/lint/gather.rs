//! Combines the results of all inputs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::lint::checked::Checked;
use crate::lint::inputs::{Inputs, Origin, Search};
use crate::lint::mode::Mode;
use crate::lint::output::Output;
use crate::lint::results::{Done, Results};
use crate::render::message::{Message, MessagePlace};
use crate::render::uri;

/// Combines the results of all inputs.
pub(crate) fn gather(
    inputs: &Inputs,
    done: Vec<Option<Done>>,
    mode: Mode,
    output: &Output,
) -> Results {
    let mut results = Results {
        all: Vec::with_capacity(done.len()),
        rendered: String::new(),
        diffs: String::new(),
        fixed: None,
    };
    let mut holds_ours = vec![false; inputs.searches.len()];
    let named = named_by_others(mode, &done);
    for (input, one) in inputs.files.iter().zip(done) {
        let Some(one) = one else { continue };
        if let Origin::Found(number) = input.origin {
            holds_ours[number] = true;
            if named.contains(&one.checked.path) {
                continue;
            }
        }
        results.rendered.push_str(&one.rendered);
        results.diffs.push_str(&one.diff);
        results.fixed = results.fixed.or(one.fixed);
        results.all.push(one.checked);
        results.all.extend(one.named);
    }
    for (search, holds_ours) in inputs.searches.iter().zip(holds_ours) {
        for mut checked in complaints(search, holds_ours) {
            results.rendered.push_str(&output.render(&mut checked));
            results.all.push(checked);
        }
    }
    results
}

/// Files that were checked with the command line that names them, and need not be told of a second time; where they
/// are mended, each is on its own.
fn named_by_others(mode: Mode, done: &[Option<Done>]) -> BTreeSet<String> {
    let named = done.iter().flatten().flat_map(|one| &one.named);
    match mode {
        Mode::Report => named
            .filter(|checked| checked.outcome.is_ok())
            .map(|checked| checked.path.clone())
            .collect(),
        Mode::Fix(_) | Mode::Diff(_) => BTreeSet::new(),
    }
}

/// Messages about a directory or pattern itself.
pub(crate) fn complaints(search: &Search, holds_ours: bool) -> Vec<Checked> {
    let complain = |path: &Path, message: String, help: Option<&str>| Checked {
        path: path.display().to_string(),
        uri: uri::of_path(path),
        outcome: Err(Box::new(Message {
            help: help.map(str::to_owned),
            ..Message::error(message).at(MessagePlace {
                path: path.display().to_string(),
                quoted: None,
            })
        })),
    };
    let mut all: Vec<Checked> = search
        .trouble
        .iter()
        .map(|(path, why)| complain(path, format!("could not be read: {why}"), None))
        .collect();
    if !holds_ours && all.is_empty() && !search.may_be_empty {
        let what = if search.path.is_dir() {
            "no .xml file below this directory holds a domain or a disk"
        } else {
            "no file of this pattern holds a domain or a disk"
        };
        all.push(complain(
            &search.path,
            what.to_owned(),
            Some("name a file to have it read whatever it is called and whatever .gitignore says"),
        ));
    }
    all
}
