//! Specs: a guest as somebody would ask for it.

use vmdisk::model::Domain;
use vmdisk::plan::{NotCarried, PlanError, Spec, plan};
use vmdisk::{Document, Facts, Target, breadcrumb, is_command_line};

use super::dropped::{Dropped, Places};
use crate::args::{ConvertArgs, ConvertForm, GenerateForm};

use crate::generate::attach;
use crate::generate::spec::planned;
use crate::generate::write::{self, Written};
use crate::input::inputs::Input;
use crate::render::message::Message;
use crate::stop::Stop;

/// The text of a spec: neither XML nor a command line.
pub(super) fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    // A truncated spec is reported as a spec.
    let has_disks = text.contains("disks:") || text.contains("\"disks\"");
    // Words of a spec, such as `kvm`, are words of command lines too.
    let is_spec = begins_with_a_key(begins) || !is_command_line(text);
    (has_disks && !begins.starts_with('<') && is_spec).then_some(text)
}

/// True if the first line that says something is a key of a spec.
fn begins_with_a_key(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    let keys = ["version:", "guest:", "disks:"];
    first.is_some_and(|line| keys.iter().any(|key| line.starts_with(key)))
}

/// A guest in the requested form, with a choice for every option that its spec leaves open.
pub(super) fn written_from(
    args: &ConvertArgs,
    input: &Input,
    text: &str,
    target: &Target,
) -> Result<Written, Stop> {
    let (spec, plan) = planned(input.path(), text, target)?;
    let form = match args.to {
        ConvertForm::LibvirtXml => Some(GenerateForm::LibvirtXml),
        ConvertForm::DiskXml => Some(GenerateForm::DiskXml),
        ConvertForm::Qemu => Some(GenerateForm::Qemu),
        ConvertForm::Qmp => Some(GenerateForm::Qmp),
        ConvertForm::Spec => None,
    };
    let guest = match form {
        Some(form) => write::guest(
            &plan,
            &Facts::default(),
            target.clone(),
            form,
            args.qemu_format,
        )?,
        None => None,
    };
    let mut written = guest.unwrap_or_else(|| Written {
        text: spec.to_yaml(),
        warnings: Vec::new(),
    });
    if form == Some(GenerateForm::DiskXml) {
        let needed = attach::warnings(&plan.domain, |_| true)?;
        written.warnings.extend(needed);
    }
    if form.is_some() && !plan.steps.is_empty() {
        written.warnings.push(
            Message::warning("some of the storage must be created first")
                .help("vmdisk generate --to script writes the steps".to_owned()),
        );
    }
    Ok(written)
}

/// The spec that asks for the disks of a guest; or, if it would lack one, why.
pub(crate) fn written(
    domain: &Domain,
    document: &Document,
    input: &Input,
    target: &Target,
) -> Result<Written, Stop> {
    let (spec, not_carried) = Spec::of_domain(domain);
    let places = Places::new(document, input);
    let message = |one: &NotCarried| {
        let NotCarried {
            at,
            what,
            changes_guest,
        } = one;
        Dropped {
            owner: breadcrumb(domain, *at),
            is_of_disk: at.disk().is_some(),
            what,
            changes_guest: *changes_guest,
            help: None,
            place: places.of_field(*at),
        }
        .message()
    };
    let changes_guest = |one: &&NotCarried| one.changes_guest;
    let refused: Vec<Message> = not_carried
        .iter()
        .filter(changes_guest)
        .map(message)
        .collect();
    if !refused.is_empty() {
        return Err(Stop(refused));
    }
    // A spec that cannot be planned is of no use.
    if let Err(faults) = plan(&spec, &Facts::default(), target) {
        let faults = faults.iter().map(|PlanError { at, message, help }| {
            Message::error(format!("a spec cannot express this: {at}: {message}"))
                .help(help.clone())
        });
        return Err(Stop(faults.collect()));
    }
    Ok(Written {
        text: spec.to_yaml(),
        warnings: not_carried.iter().map(message).collect(),
    })
}
