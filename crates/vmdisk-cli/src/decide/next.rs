//! The commands that make what was decided.

use std::ffi::OsString;
use std::path::Path;

use vmdisk::model::Scope;
use vmdisk::plan::{Spec, plan, shell_word};
use vmdisk::{Decisions, Document, Facts, Source, Target};

use crate::args::DecideArgs;
use crate::next::again;

fn changes(document: &Document, decisions: &Decisions) -> bool {
    document.own_text() != decisions.document.own_text()
}

/// The file that was read; `None` for standard input.
fn file(args: &DecideArgs) -> Option<&Path> {
    args.file.as_deref().filter(|it| *it != "-")
}

/// The command that changes the file.
pub(super) fn in_the_file(
    args: &DecideArgs,
    document: &Document,
    decisions: &Decisions,
    arguments: &[OsString],
) -> Option<String> {
    // `git apply` takes no path out of its folder.
    file(args).filter(|it| it.is_relative() && !it.starts_with(".."))?;
    if !changes(document, decisions) {
        return None;
    }
    let diff = again(
        arguments,
        &["--output", "-o", "--format"],
        &["--format", "diff"],
    )?;
    Some(format!("\nnext:\n  {diff} | git apply\n"))
}

/// The commands that change a guest of libvirt, if a spec can have all of it.
pub(super) fn of_libvirt(
    args: &DecideArgs,
    document: &Document,
    decisions: &Decisions,
    arguments: &[OsString],
) -> Option<String> {
    let domain = decisions.document.domain();
    let name = domain.name.as_deref().filter(|it| !it.contains('/'))?;
    // libvirt makes up a UUID for each guest.
    let is_of_libvirt = matches!(document.source, Source::LibvirtXml(_)) && domain.uuid.is_some();
    if !is_of_libvirt || domain.scope != Scope::WholeGuest || !changes(document, decisions) {
        return None;
    }
    let (spec, not_carried) = Spec::of_domain(domain);
    let is_carried = !not_carried.iter().any(|it| it.changes_guest);
    let is_planned = || plan(&spec, &Facts::default(), &Target::default()).is_ok();
    if !is_carried || !is_planned() {
        return None;
    }
    let spec = format!("{name}.yaml");
    let more = ["--format", "spec", "--output", &spec];
    let decide = again(arguments, &["--output", "-o", "--format"], &more)?;
    let read = match file(args) {
        Some(_) => String::new(),
        None => format!("virsh dumpxml --inactive {} | ", shell_word(name)),
    };
    let spec = shell_word(&spec);
    Some(format!(
        "\nfor the guest {name} of libvirt:\n  {read}{decide}\n  vmdisk apply {spec} --define --change options\n"
    ))
}
