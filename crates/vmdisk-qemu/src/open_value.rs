//! Values that a shell or systemd fills in later, so that a conversion can report them.

use std::collections::BTreeMap;

use vmdisk_model::{DomainField, FieldPath};

use crate::document::UnmodeledProperty;
use crate::members::Accepted;
use crate::parse::Parsed;
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::{Properties, Property};
use crate::syntax::start::CommandLineForm;

/// The values of disks, controllers and the machine that the model does not have, because a shell or systemd fills them in.
pub(crate) fn open_values(
    parsed: &Parsed,
    accepted: &Accepted,
    owners: &BTreeMap<usize, FieldPath>,
) -> Vec<UnmodeledProperty> {
    // No shell reads these.
    let is_literal = matches!(
        parsed.form(),
        CommandLineForm::ZeroBytes
            | CommandLineForm::Json
            | CommandLineForm::ConfigFile
            | CommandLineForm::MonitorScript
    );
    let options = parsed.options().iter().enumerate();
    let options = options.filter(|_| !is_literal);
    let values = options.flat_map(|(nth, option)| {
        let is_of_machine = OF_MACHINE.contains(&option.name.as_str());
        let machine = FieldPath::Domain(DomainField::Domain);
        let owner = owners.get(&nth).copied();
        let at = owner.or_else(|| is_of_machine.then_some(machine));
        let read = option.properties.iter().flat_map(Properties::iter);
        // The others are unmodeled whatever their values are.
        let open = read.filter(|it| accepted.has(it) && it.is_open());
        open.filter(|it| !is_reference(option, it))
            .filter_map(move |property| {
                Some(UnmodeledProperty {
                    at: at?,
                    key: property.key.clone(),
                    span: property.span,
                    is_tuning: !is_decisive(option, property),
                    is_open: true,
                })
            })
    });
    values.collect()
}

/// Options of the machine with parts that the model has.
const OF_MACHINE: [&str; 7] = ["M", "accel", "m", "machine", "name", "smp", "uuid"];

/// True for the name of a node or device: the same name on both sides joins them, whatever it will be.
fn is_reference(option: &WrittenOption, property: &Property) -> bool {
    let last = property.key.rsplit('.').next().unwrap_or_default();
    match option.name.as_str() {
        "blockdev" => matches!(last, "file" | "backing" | "node-name"),
        _ => matches!(last, "drive" | "id" | "node-name"),
    }
}

/// True if the guest has other disks, other data or another machine with another value.
fn is_decisive(option: &WrittenOption, property: &Property) -> bool {
    let last = property.key.rsplit('.').next().unwrap_or_default();
    match option.name.as_str() {
        "M" | "machine" => property.key == "type",
        "m" => property.key == "size",
        "accel" | "name" | "smp" | "uuid" => false,
        "device" => property.key == "driver",
        name => {
            let of_image = [
                "driver",
                "filename",
                "format",
                "path",
                "read-only",
                "readonly",
            ];
            let of_drive = ["bus", "if", "index", "media", "snapshot", "unit"];
            of_image.contains(&last)
                || property.key.starts_with("cache")
                || property.key.starts_with("file")
                || name == "drive" && of_drive.contains(&last)
        }
    }
}
