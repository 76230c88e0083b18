//! From a command line to a [`Document`].

use vmdisk_source::Span;

use crate::device::buses::is_port_or_bridge;
use crate::document::{Document, OtherOption};
use crate::failure::ReadFailure;
use crate::index::Index;
use crate::lower::Lowered;
use crate::parse::{Parsed, READCONFIG};
use crate::refused::find_refused;
use crate::syntax::form::Form;
use crate::syntax::option::WrittenOption;

/// Options that speak of disks, or of the machine as far as disks depend on it.
const OURS: &[&str] = &[
    "",
    "M",
    "accel",
    "blockdev",
    "cdrom",
    "cpu",
    "device",
    "drive",
    "enable-kvm",
    "fda",
    "fdb",
    "hda",
    "hdb",
    "hdc",
    "hdd",
    "m",
    "machine",
    "name",
    "nodefaults",
    "sd",
    "smp",
    "snapshot",
    "uuid",
];

/// Reads a command line of QEMU, in whatever a person or a program has put it: a file of arguments, a
/// shell script, libvirt's log, `/proc/PID/cmdline`, a systemd unit, lines of options alone.
///
/// Reading does not stop at the first mistake: wrong values, unknown properties and missing nodes are
/// [`problems`](Document::problems), with their places. What is not about disks is
/// [listed](Document::others), and what is about disks and not in the model is [kept](Document::kept).
///
/// ```
/// let text = r#"qemu-system-x86_64 -machine q35 \
///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,aio=nativ \
///   -device virtio-blk-pci,drive=f0,id=vda"#;
/// let document = vmdisk_qemu::read(text)?;
/// let disk = &document.domain.disks[0];
/// assert_eq!(disk.name(), "vda");
/// assert_eq!(disk.backend.image().and_then(|image| image.host_path()), Some("/srv/a.img"));
/// let problem = &document.problems[0];
/// assert_eq!(problem.span.slice(text), Some("nativ"));
/// assert_eq!(problem.help.as_deref(), Some("did you mean `native`?"));
/// # Ok::<(), vmdisk_qemu::ReadFailure>(())
/// ```
///
/// # Errors
/// If there is no command line of QEMU in the text, or more than one.
pub fn read(text: &str) -> Result<Document, ReadFailure> {
    read_with(text, text.len(), &[])
}

/// Reads a command line together with the files that it names with `-readconfig`: `text` is both, the command line
/// in its first `command_line` bytes, and `files` says where each of the files stands, in the order in which they are
/// named. Places count from the beginning of `text`.
///
/// ```
/// use vmdisk_source::Span;
/// let line = "qemu-system-x86_64 -readconfig a.cfg\n";
/// let file = "[drive \"d\"]\n  if = \"virtio\"\n  format = \"raw\"\n  file = \"/srv/a.img\"\n";
/// let text = format!("{line}{file}");
/// let document = vmdisk_qemu::read_with(&text, line.len(), &[Span::new(line.len(), text.len())])?;
/// assert_eq!(document.domain.disks[0].backend.image().and_then(|image| image.host_path()), Some("/srv/a.img"));
/// assert_eq!(vmdisk_qemu::read(line)?.config_files, ["a.cfg"]);
/// # Ok::<(), vmdisk_qemu::ReadFailure>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_with(text: &str, command_line: usize, files: &[Span]) -> Result<Document, ReadFailure> {
    let parsed = Parsed::new(text, command_line, files)?;
    let index = Index::new(parsed.options());
    let lowered = Lowered::new(&parsed, &index);
    let refused = find_refused(&index, &lowered);
    let others = others(parsed.form(), &index, &lowered);
    let (domain, noted) = lowered.finish();
    let mut problems = noted.problems;
    problems.extend(refused);
    problems.sort_by_key(|problem| problem.span);
    let missing = parsed.missing_files().iter();
    Ok(Document {
        form: parsed.form(),
        domain,
        source_map: noted.map,
        problems,
        kept: noted.kept,
        others,
        config_files: missing.filter_map(|(_, name)| name.clone()).collect(),
        slots: noted.slots,
    })
}

/// The options that are not about disks.
fn others(form: Form, index: &Index<'_>, lowered: &Lowered<'_>) -> Vec<OtherOption> {
    let others = index.options().iter().enumerate();
    others
        .filter(|(nth, option)| !is_ours(*nth, option, lowered))
        .map(|(_, option)| OtherOption {
            name: match form {
                Form::ConfigFile => format!("[{}]", option.name),
                Form::MonitorScript => option.name.clone(),
                Form::ZeroBytes | Form::Json | Form::Lines | Form::Unit | Form::Shell => {
                    format!("-{}", option.name)
                }
            },
            span: option.span,
        })
        .collect()
}

fn is_ours(nth: usize, option: &WrittenOption, lowered: &Lowered<'_>) -> bool {
    let value = |key: &str| option.properties.as_ref()?.value(key);
    match option.name.as_str() {
        // Ports and bridges are made anew where an address speaks of them.
        "device" | "blockdev" | "drive"
            if value("driver").is_some_and(|driver| {
                is_port_or_bridge(driver) || matches!(driver, "usb-bot" | "usb-uas")
            }) =>
        {
            true
        }
        // These name many things; only those that a disk uses are ours.
        "device" | "blockdev" | "drive" | "chardev" | "global" => lowered.owner(nth).is_some(),
        "object" => {
            lowered.is_read_object(nth)
                || value("qom-type").is_some_and(|kind| {
                    matches!(kind, "iothread" | "main-loop" | "throttle-group")
                        || kind.starts_with("memory-backend-")
                })
        }
        // Told by what is in the file, or kept.
        READCONFIG => true,
        name => OURS.contains(&name),
    }
}
