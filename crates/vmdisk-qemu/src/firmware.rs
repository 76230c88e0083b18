//! Firmware on flash: `-drive if=pflash`, or `-machine pflash0=` with its nodes.

use std::collections::BTreeSet;

use vmdisk_model::Format;

use crate::index::Index;
use crate::members::View;

/// The firmware of a guest, on flash devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashFirmware {
    /// The code; also the variables if it has no flash for them.
    pub code: Flash,
    /// The variables.
    pub variables: Option<Flash>,
}

/// A file that the guest sees as flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Its absolute path.
    pub path: String,
    /// Its format: raw or qcow2.
    pub format: Format,
    /// True if the guest cannot write it.
    pub is_read_only: bool,
}

/// The firmware of a command line, and the numbers of the options that say it.
#[derive(Debug, Default)]
pub(crate) struct FoundFirmware {
    pub(crate) firmware: Option<FlashFirmware>,
    pub(crate) options: BTreeSet<usize>,
}

/// Finds the firmware. Flash in another form than an image in a file is not found.
pub(crate) fn find(index: &Index<'_>) -> FoundFirmware {
    found(index).unwrap_or_default()
}

fn found(index: &Index<'_>) -> Option<FoundFirmware> {
    let mut units: [Option<Flash>; 2] = [None, None];
    let mut options = BTreeSet::new();
    let mut next = 0;
    for (option, drive) in index.of_name("drive") {
        if drive.value("if") != Some("pflash") {
            continue;
        }
        let unit = match drive.value("unit").or(drive.value("index")) {
            Some(unit) => unit.parse().ok()?,
            None => next,
        };
        let flash = Flash {
            path: absolute(drive.value("file")?)?,
            format: format(drive.value("format")?)?,
            is_read_only: is_on(drive.value("readonly").or(drive.value("read-only"))),
        };
        put(&mut units, unit, flash)?;
        options.insert(option);
        next = unit + 1;
    }
    for (option, machine) in index.machines() {
        for (unit, key) in ["pflash0", "pflash1"].into_iter().enumerate() {
            if let Some(name) = machine.value(key) {
                let flash = of_node(index, name, &mut options)?;
                put(&mut units, unit, flash)?;
                options.insert(option);
            }
        }
    }
    let [code, variables] = units;
    let firmware = FlashFirmware {
        code: code?,
        variables,
    };
    Some(FoundFirmware {
        firmware: Some(firmware),
        options,
    })
}

fn put(units: &mut [Option<Flash>; 2], unit: usize, flash: Flash) -> Option<()> {
    let slot = units.get_mut(unit)?;
    slot.replace(flash).is_none().then_some(())
}

/// The file below a node: a format node on a protocol node, or a protocol node alone.
fn of_node(index: &Index<'_>, name: &str, options: &mut BTreeSet<usize>) -> Option<Flash> {
    let top = index.node(name)?;
    let top_view = &top.view;
    let driver = value(top_view, "driver")?;
    options.insert(top.option);
    let is_read_only = is_on(value(top_view, "read-only"));
    if driver == "file" {
        return Some(Flash {
            path: absolute(value(top_view, "filename")?)?,
            format: Format::Raw,
            is_read_only,
        });
    }
    let (below, option) = match value(top_view, "file") {
        Some(name) => {
            let node = index.node(name)?;
            (node.view.clone(), Some(node.option))
        }
        None => (top_view.inside("file"), None),
    };
    (value(&below, "driver")? == "file").then_some(())?;
    options.extend(option);
    Some(Flash {
        path: absolute(value(&below, "filename")?)?,
        format: format(driver)?,
        is_read_only: is_read_only || is_on(value(&below, "read-only")),
    })
}

fn value<'a>(view: &View<'a>, key: &str) -> Option<&'a str> {
    view.get(key).map(|property| property.value.as_str())
}

fn absolute(path: &str) -> Option<String> {
    path.starts_with('/').then(|| path.to_owned())
}

fn format(word: &str) -> Option<Format> {
    let format = Format::from_word(word)?;
    matches!(format, Format::Raw | Format::Qcow2).then_some(format)
}

fn is_on(word: Option<&str>) -> bool {
    matches!(word, Some("on" | "true" | "yes"))
}
