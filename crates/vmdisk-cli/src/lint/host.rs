//! `vmdisk lint --live` and `--facts FILE` where there is no guest: the host itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmdisk::advise::{CheckedPlace, HostCheck, check_host};
use vmdisk::report::DocumentReport;
use vmdisk::{Document, Host, LintOptions, LintReport, Target};

use crate::args::LintArgs;
use crate::input::inputs::{Input, Inputs, Origin, Search};
use crate::input::read::{self, Content};
use crate::lint::mode::Mode;
use crate::render::message::Message;
use crate::render::summary::count;
use crate::report::input::{CheckedHost, InputReport};

/// The name of the input, as those of guests that are not files.
const NAME: &str = "<host>";

/// The host as an input, if the run has facts of it, names no input and finds none.
pub(super) fn instead_of(args: &LintArgs, mode: Mode, inputs: &Inputs) -> Option<Inputs> {
    let has_facts = args.host.live || !args.host.facts.is_empty();
    let checks = mode == Mode::Report && !args.show_files && args.try_qemu.is_none();
    let is_complete = |search: &Search| search.trouble.is_empty() && search.excluded.is_none();
    // The run says why it cannot check such a file.
    let is_foreign = |input: &Input| {
        let bytes = read::input(input);
        bytes.is_ok_and(|bytes| read::what_is(&input.file, &bytes) == Content::Foreign)
    };
    let finds_none =
        || inputs.searches.iter().all(is_complete) && inputs.files.iter().all(is_foreign);
    let is_host = args.names_nothing && has_facts && checks && finds_none();
    is_host.then(|| Inputs {
        files: vec![Input::new(NAME.into(), Origin::Host)],
        searches: Vec::new(),
    })
}

/// The reports about the host: of what its places share, then of each place.
pub(super) fn reports(options: &LintOptions) -> Vec<InputReport> {
    if options.host.is_none() {
        let message = Message::error("a check of the host itself needs the facts of one host");
        let help = "name one facts file with --facts, or the files of guests".to_owned();
        return vec![InputReport::failed(Path::new(NAME), message.help(help))];
    }
    let check = check_host(options);
    let left_out = check.excluded.iter();
    let left_out = left_out.map(|it| format!("{}: {}", it.place, it.why));
    let left_out: Vec<String> = left_out.collect();
    if check.places.is_empty() {
        let message = Message::error("the facts show no place where this host keeps disks");
        let help =
            "run `vmdisk facts DIRECTORY` on the host, with the directory of its images".to_owned();
        let message = message.notes(left_out).help(help);
        return vec![InputReport::failed(Path::new(NAME), message)];
    }
    let whole = CheckedHost {
        what: checked(&check, options),
        left_out,
    };
    let mut shared = LintReport::default();
    shared.diagnostics = check.shared;
    let mut reports = vec![InputReport {
        host: Some(whole),
        ..report(NAME.into(), check.places[0].document.clone(), shared)
    }];
    reports.extend(check.places.into_iter().map(|it| {
        let CheckedPlace {
            place,
            document,
            report: found,
            ..
        } = it;
        report(format!("<host {place}>").into(), document, found)
    }));
    reports
}

/// A report without a text: the document is generated, and no user has it.
fn report(name: PathBuf, document: Document, found: LintReport) -> InputReport {
    let mut report = DocumentReport::new(document, found);
    (report.domain, report.disks) = (None, 0);
    (report.text, report.lines) = Default::default();
    InputReport::new(&name, Ok(report))
}

/// What was checked: `2 directories, 1 thin pool, QEMU 10.0.13, Linux 6.12.117`.
fn checked(check: &HostCheck, options: &LintOptions) -> String {
    let nouns: BTreeSet<&str> = check.places.iter().map(|it| it.noun).collect();
    let number = |noun: &str| check.places.iter().filter(|it| it.noun == noun).count();
    let places = nouns.iter().map(|noun| {
        let many = match noun.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{noun}s"),
        };
        count(number(noun), noun, &many)
    });
    let Target {
        qemu,
        libvirt,
        kernel,
        ..
    } = &options.target;
    let has_no_qemu = |host: &Host| host.facts().qemu.value().is_some_and(Vec::is_empty);
    let programs = [("QEMU", qemu), ("libvirt", libvirt), ("Linux", kernel)];
    let programs = programs.map(|(name, version)| match version {
        Some(version) => format!("{name} {version}"),
        None if name == "QEMU" && options.host.as_ref().is_some_and(has_no_qemu) => {
            "no QEMU".to_owned()
        }
        None => format!("{name} of an unknown version"),
    });
    places.chain(programs).collect::<Vec<_>>().join(", ")
}
