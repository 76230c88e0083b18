//! From a command line to a [`Document`].

use std::collections::HashSet;

use vmdisk_model::{DomainField, FieldPath, Scope};
use vmdisk_source::{ProblemKind, Span};

use crate::config_file;
use crate::device::read::{disk_driver, node_of};
use crate::document::{Document, OtherOption};
use crate::failure::ReadFailure;
use crate::limits::OptionList;
use crate::monitor;
use crate::reader::Reader;
use crate::syntax::form::{Form, words};
use crate::syntax::option::{Fault, WrittenOption, options};

/// The option that names a file with further options.
const READCONFIG: &str = "readconfig";

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
    let main = text.get(..command_line).unwrap_or(text);
    let words = words(main)?;
    let (options, mut faults) = match words.form {
        Form::ConfigFile => config_file::read::options(text, Span::new(0, main.len()))?,
        Form::MonitorScript => monitor::read::options(main)?,
        Form::ZeroBytes | Form::Json | Form::Lines | Form::Unit | Form::Shell => {
            options(&words.arguments, main)?
        }
    };
    let named = with_files(text, options, files, &mut faults)?;
    let Named {
        options,
        missing: config_files,
    } = named;
    let mut daemons: Vec<Vec<WrittenOption>> = Vec::new();
    for arguments in &words.daemons {
        daemons.push(crate::syntax::option::options(arguments, text)?.0);
    }
    let mut reader = Reader::new(&options);
    let everything = Span::new(0, main.trim_end().len());
    let top = FieldPath::Domain(DomainField::Domain);
    for fault in faults {
        reader
            .problem(ProblemKind::InvalidValue, top, fault.span, fault.message)
            .help = Some(fault.help);
    }
    reader.read_names();
    reader.read_machine(&words);
    reader.read_iothreads();
    reader.read_memory_backing();
    reader.read_controllers();
    reader.read_disks();
    reader.read_daemons(&daemons);
    reader.read_floppy_boot_order();
    reader.read_throttle_limits();
    reader.keep_the_rest();
    reader.find_refused();
    let named = options.iter().filter(|option| option.name == READCONFIG);
    for option in named.skip(files.len()) {
        // The file may hold disks, and is not at hand.
        reader.keep(
            FieldPath::Domain(DomainField::Devices),
            READCONFIG,
            option.span,
        );
    }
    let place = vmdisk_source::Place {
        span: options.first().map_or(everything, |first| first.span),
        whole: everything,
        attributes_end: None,
    };
    reader.map.record(top, place);
    if reader.domain.scope == Scope::WholeGuest {
        reader
            .map
            .record(FieldPath::Domain(DomainField::Devices), place);
    }
    let others = others(words.form, &options, &reader);
    reader.problems.sort_by_key(|problem| problem.span);
    reader.slots.fill(&options);
    Ok(Document {
        form: words.form,
        domain: reader.domain,
        source_map: reader.map,
        problems: reader.problems,
        kept: reader.kept,
        others,
        config_files,
        slots: reader.slots,
    })
}

/// Options with those of the files that they name.
struct Named {
    options: Vec<WrittenOption>,
    /// Names of files that are not at hand.
    missing: Vec<String>,
}

/// Puts the options of each file behind the one that names it.
fn with_files(
    text: &str,
    options: Vec<WrittenOption>,
    files: &[Span],
    faults: &mut Vec<Fault>,
) -> Result<Named, ReadFailure> {
    let mut all = OptionList::default();
    let mut missing = Vec::new();
    let mut files = files.iter();
    for option in options {
        let name = (option.name == READCONFIG)
            .then(|| option.text.clone())
            .flatten();
        all.push(option)?;
        let Some(name) = name else { continue };
        match files.next() {
            Some(file) => {
                let (more, wrong) = config_file::read::options(text, *file)?;
                for option in more {
                    all.push(option)?;
                }
                faults.extend(wrong);
            }
            None => missing.push(name),
        }
    }
    Ok(Named {
        options: all.into_options(),
        missing,
    })
}

fn others(form: Form, options: &[WrittenOption], reader: &Reader<'_>) -> Vec<OtherOption> {
    options
        .iter()
        .enumerate()
        .filter(|(nth, option)| {
            let is_ours = match option.name.as_str() {
                // These name many things; only those that a disk uses are ours.
                "device" | "blockdev" | "drive" => {
                    reader.owners.contains_key(nth) || is_port(option)
                }
                "object" if reader.read_objects.contains(nth) => true,
                "object" => option.properties.as_ref().is_some_and(|properties| {
                    properties.peek("qom-type").is_some_and(|kind| {
                        let kind = kind.value.as_str();
                        kind == "iothread"
                            || kind == "main-loop"
                            || kind == "throttle-group"
                            || kind.starts_with("memory-backend-")
                    })
                }),
                "chardev" | "global" => reader.owners.contains_key(nth),
                // Told by what is in the file, or kept.
                READCONFIG => true,
                name => OURS.contains(&name),
            };
            !is_ours
        })
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

/// True for ports and bridges, which are made anew where an address speaks of them.
fn is_port(option: &WrittenOption) -> bool {
    let driver = option
        .properties
        .as_ref()
        .and_then(|properties| properties.peek("driver"));
    driver.is_some_and(|driver| {
        matches!(
            driver.value.as_str(),
            "pcie-root-port" | "pcie-pci-bridge" | "pci-bridge" | "ioh3420" | "usb-bot" | "usb-uas"
        )
    })
}

impl<'a> Reader<'a> {
    /// Notes everything that is spoken of by name.
    pub(crate) fn read_names(&mut self) {
        for (option, node) in self.of_name("blockdev") {
            if let Some(name) = node.peek("node-name") {
                self.nodes
                    .entry(name.value.as_str())
                    .or_insert_with(|| node_of(option, node));
            }
        }
        for (option, drive) in self.of_name("drive") {
            if let Some(id) = drive.peek("id") {
                self.drives.entry(id.value.as_str()).or_insert(option);
            }
        }
        for (option, chardev) in self.of_name("chardev") {
            if let Some(id) = chardev.peek("id") {
                self.chardevs.entry(id.value.as_str()).or_insert(option);
            }
        }
        for (option, object) in self.of_name("object") {
            if let Some(id) = object.peek("id") {
                self.objects.entry(id.value.as_str()).or_insert(option);
            }
        }
    }

    /// Reads the disks, in the order of the options that make them.
    fn read_disks(&mut self) {
        let options: &'a [WrittenOption] = self.options;
        let used: HashSet<&str> = self
            .of_name("device")
            .into_iter()
            .filter_map(|(_, device)| Some(device.peek("drive")?.value.as_str()))
            .collect();
        for (number, option) in options.iter().enumerate() {
            match (option.name.as_str(), &option.properties) {
                ("device", Some(properties)) => {
                    let driver = properties
                        .peek("driver")
                        .map(|driver| driver.value.as_str());
                    let disk = driver.and_then(disk_driver);
                    // An NVMe controller without a drive is one of namespaces.
                    let is_disk = |disk: &crate::device::read::DiskDriver| {
                        !disk.is_whole_nvme || properties.peek("drive").is_some()
                    };
                    if let Some(disk) = disk.filter(is_disk) {
                        self.read_disk_device(number, properties, disk);
                    }
                }
                ("drive", Some(properties)) => {
                    let id = properties.peek("id").map(|id| id.value.as_str());
                    if !id.is_some_and(|id| used.contains(id)) {
                        self.read_automatic_drive(number, properties);
                    }
                }
                ("" | "hda" | "hdb" | "hdc" | "hdd" | "cdrom" | "fda" | "fdb" | "sd", Some(_)) => {
                    self.read_short_drive(number);
                }
                _ => {}
            }
        }
    }
}
