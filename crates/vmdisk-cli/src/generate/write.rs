//! From a planned guest to the requested text.

use vmdisk::model::{
    Architecture, BackendSource, Board, CacheMode, CacheSwitches, Disk, Domain, Firmware, Image,
    NetworkProtocol, Protocol, SecretReference, Switch,
};
use vmdisk::plan::{Plan, shell_word};
use vmdisk::write::{self, CommandLine, QemuOptions, WriteProblem, WriteProblems};
use vmdisk::{Facts, Target};

use crate::args::{GenerateForm, QemuFormat};
use crate::render::message::Message;
use crate::sanitize;
use crate::stop::Stop;

/// A text, and its notes.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) warnings: Vec<Message>,
}

/// The guest, or its disks, in the requested form; a script is not a form of the guest.
pub(crate) fn guest(
    plan: &Plan,
    facts: &Facts,
    target: Target,
    form: GenerateForm,
    qemu: QemuFormat,
) -> Result<Option<Written>, Stop> {
    let domain = &plan.domain;
    if form == GenerateForm::LibvirtXml
        && let Board::Isa | Board::Microvm = domain.board()
    {
        let message = "libvirt adds PCI devices to every guest, and this machine has no PCI bus";
        return Err(Stop::new(message).help("use another `machine`, or `--to qemu`"));
    }
    let xml = |text: String| {
        let mut warnings = nfs_without_identity(domain);
        warnings.extend(flushes_lost(domain));
        Some(Written { text, warnings })
    };
    let options = |target| QemuOptions { target };
    Ok(match form {
        GenerateForm::LibvirtXml => xml(write::planned_xml(plan).map_err(unwritable)?),
        GenerateForm::DiskXml => xml(write::disks_xml(domain).map_err(unwritable)?),
        GenerateForm::Qmp | GenerateForm::BlockdevJson => {
            Some(command_line(domain, &options(target), form, qemu, &[])?)
        }
        GenerateForm::Qemu => {
            let (mut domain, mut further) = write::planned_for_qemu(plan).map_err(refused)?;
            let uefi = uefi(&domain, facts);
            let made = uefi.and_then(|(files, made)| {
                further.extend(files);
                domain.firmware = None;
                made
            });
            let mut written = command_line(&domain, &options(target), form, qemu, &further)?;
            written.warnings.extend(made);
            Some(written)
        }
        GenerateForm::Script | GenerateForm::Steps | GenerateForm::VirtInstall => None,
    })
}

/// QEMU reads a secret from a file; libvirt has one for a UUID, but finds a usage only in its own list.
pub(super) fn refuse_secrets_of_libvirt(domain: &Domain) -> Result<(), Stop> {
    let disks = domain.disks.iter();
    let messages: Vec<Message> = disks
        .flat_map(|disk| {
            let images = disk.backend.image().into_iter().flat_map(Image::chain);
            images.flat_map(Image::secrets).filter_map(|(_, secret)| {
                let SecretReference::Usage(usage) = &secret.reference else {
                    return None;
                };
                let disk = sanitize::line(disk.name());
                let usage = sanitize::line(usage);
                let message =
                    format!("disk {disk}: QEMU cannot read the secret with the usage `{usage}`");
                Some(
                    Message::error(message).help(
                        "identify the secret by `uuid`: QEMU reads its value from libvirt's file \
                     `/etc/libvirt/secrets/UUID.base64`"
                            .to_owned(),
                    ),
                )
            })
        })
        .collect();
    match messages.is_empty() {
        true => Ok(()),
        false => Err(Stop(messages)),
    }
}

/// The value of `-drive` for a file of UEFI; `unit` may have further keys.
pub(crate) fn flash(unit: &str, format: &str, path: &str) -> String {
    let path = path.replace(',', ",,");
    format!("if=pflash,unit={unit},format={format},file={path}")
}

/// The options with the files of UEFI, as the facts name them, and how the file of the guest's variables is made.
fn uefi(domain: &Domain, facts: &Facts) -> Option<(Vec<String>, Option<Message>)> {
    let arch = domain.architecture.unwrap_or(Architecture::X86_64);
    let machine = domain
        .machine
        .as_ref()
        .filter(|_| domain.firmware == Some(Firmware::Efi))?;
    let uefi = facts.uefi_of(arch.qemu_name(), &machine.0)?;
    let format = uefi.format.value()?;
    let drive = |unit: &str, path: &str| ["-drive".to_owned(), flash(unit, format, path)];
    let mut options = drive("0,readonly=on", uefi.code.value()?).to_vec();
    if uefi.has_feature("requires-smm") {
        // Only its code in system management mode writes variables, as with libvirt.
        options
            .extend(["-global", "driver=cfi.pflash01,property=secure,value=on"].map(str::to_owned));
    }
    let made = uefi.variables.value().map(|template| {
        let files = domain.disks.iter().filter_map(|disk| disk.backend.image());
        let mut files = files.filter_map(|image| match &image.protocol {
            Protocol::File { path, .. } => path.rsplit_once('/'),
            _ => None,
        });
        let (folder, _) = files.next().unwrap_or(("/var/lib/libvirt/qemu/nvram", ""));
        let name = domain.name.as_deref().unwrap_or("guest").replace('/', "_");
        let path = format!("{folder}/{name}_VARS.fd");
        options.extend(drive("1", &path));
        let copy = format!(
            "cp --no-clobber -- {} {}",
            shell_word(template),
            shell_word(&path)
        );
        let signed = match uefi.has_feature("enrolled-keys") {
            true => "; this UEFI starts only signed systems",
            false => "",
        };
        let message = format!("UEFI keeps the variables of the guest in a file of its own{signed}");
        Message::warning(message).help(format!(
            "make it before the first start: `{}`",
            sanitize::line(&copy)
        ))
    });
    Some((options, made))
}

/// libvirt starts such a disk, but its schema refuses it, which `virsh edit` and `virsh define --validate` apply.
fn nfs_without_identity(domain: &Domain) -> Vec<Message> {
    let is_nfs = |disk: &&Disk| match disk.backend.image().map(|image| &image.protocol) {
        Some(Protocol::Network(source)) => {
            source.protocol == NetworkProtocol::Nfs
                && (source.user.is_none() || source.group.is_none())
        }
        _ => false,
    };
    let disks = domain.disks.iter().filter(is_nfs);
    let message = |disk: &Disk| {
        Message::warning(format!(
            "disk {}: libvirt's schema requires the user and group of an nfs disk: `virsh edit` and `virsh define \
             --validate` refuse it without them",
            sanitize::line(disk.name())
        )).help("add identity.user=+UID,identity.group=+GID, the owner of the file".to_owned())
    };
    disks.map(message).collect()
}

/// libvirt has no word for `config-wce=off`, without which the guest never flushes a disk that a daemon serves.
fn flushes_lost(domain: &Domain) -> impl Iterator<Item = Message> + '_ {
    let disks = domain.disks.iter().filter(|disk| {
        let has_write_cache = disk.backend.effective_cache().switches().write_cache;
        is_flushed_by_the_guest(disk) && disk.is_writable() && has_write_cache
    });
    disks.map(|disk| {
        let is_served = matches!(
            &disk.backend.source,
            BackendSource::VhostUser(socket) if socket.served.is_some()
        );
        let (result, as_written) = match is_served {
            true => (
                "the guest never flushes the disk",
                ", as `--to script` writes it",
            ),
            false => (
                "the guest never flushes the disk if qemu-storage-daemon serves it",
                "",
            ),
        };
        Message::warning(format!(
                "disk {}: libvirt cannot set `config-wce=off`, and without it {result}",
                sanitize::line(disk.name())
            )).help(format!(
                "start the daemon with `writethrough=on` on its export{as_written}; see `vmdisk explain \
                 vhost-user-flushes-lost`"
            ))
    })
}

/// True for a disk that a daemon serves and whose device shows its write cache to the guest.
fn is_flushed_by_the_guest(disk: &Disk) -> bool {
    match &disk.backend.source {
        BackendSource::VhostUser(socket) => socket.config_wce == Some(Switch::Off),
        BackendSource::Image(_) | BackendSource::Empty => false,
    }
}

/// The command line of a guest, followed by `further` words, or an equivalent, or the nodes of its disks.
pub(crate) fn command_line(
    domain: &Domain,
    options: &QemuOptions,
    form: GenerateForm,
    qemu: QemuFormat,
    further: &[String],
) -> Result<Written, Stop> {
    let written = |text: String, left_out: &[WriteProblem]| Written {
        text,
        warnings: left_out.iter().map(|one| problem(one, false)).collect(),
    };
    if form == GenerateForm::Qmp {
        let script = write::qemu_monitor_script(domain, options).map_err(refused)?;
        return Ok(written(script.to_lines(), &script.left_out));
    }
    let mut line = write::qemu_command_line(domain, options).map_err(refused)?;
    line.further = further.to_vec();
    let objects = match form {
        GenerateForm::BlockdevJson => objects_beside(&line),
        GenerateForm::Qemu
        | GenerateForm::Qmp
        | GenerateForm::LibvirtXml
        | GenerateForm::DiskXml
        | GenerateForm::Script
        | GenerateForm::Steps
        | GenerateForm::VirtInstall => Vec::new(),
    };
    let text = match (form, qemu) {
        (GenerateForm::BlockdevJson, _) => format!("{}\n", line.to_blockdev_json()),
        (_, QemuFormat::Lines) => line.to_shell(),
        (_, QemuFormat::Json) => format!("{}\n", line.to_json_argv()),
        (_, QemuFormat::Args) if !line.daemons.is_empty() => {
            return Err(Stop::new(
                "a storage daemon needs its own command line, and this form can express only one",
            )
            .help("use --qemu-format lines or json, which can express both"));
        }
        (_, QemuFormat::Args) => lines_of(&line.argv())?,
    };
    let mut written = written(text, &line.left_out);
    written.warnings.extend(objects);
    Ok(written)
}

/// The objects that nodes of `-blockdev` name and that are options of their own.
fn objects_beside(line: &CommandLine) -> Vec<Message> {
    let nodes = line.to_blockdev_json().to_string();
    let argv = line.argv();
    let objects = argv.windows(2).filter(|words| words[0] == "-object");
    objects
        .filter_map(|words| {
            let id = object_id(&words[1])?;
            nodes.contains(&format!("\"{id}\"")).then_some(())?;
            let message =
                format!("the nodes refer to the object {id}, which this form does not create");
            Some(Message::warning(message).help(format!("create it first: -object {}", words[1])))
        })
        .collect()
}

/// The id of an object, written as JSON or as keys with values.
fn object_id(value: &str) -> Option<String> {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(object) => object.get("id")?.as_str().map(str::to_owned),
        Err(_) => {
            let mut options = value.split(',');
            options.find_map(|option| option.strip_prefix("id=").map(str::to_owned))
        }
    }
}

/// The script that makes the storage of a plan, or its steps.
pub(crate) fn creation(plan: &Plan, target: &Target, form: GenerateForm) -> Result<String, Stop> {
    if form == GenerateForm::Steps {
        return Ok(crate::apply::json::steps(plan));
    }
    let daemons = daemons_as_comments(&plan.domain, target.clone())?;
    Ok(vmdisk::plan::script(plan) + &daemons)
}

/// The daemons that serve disks of a guest, for people who read a script that does not start them.
fn daemons_as_comments(domain: &Domain, target: Target) -> Result<String, Stop> {
    let is_served = |disk: &Disk| match &disk.backend.source {
        BackendSource::VhostUser(socket) => socket.served.is_some(),
        BackendSource::Image(_) | BackendSource::Empty => false,
    };
    if !domain.disks.iter().any(is_served) {
        return Ok(String::new());
    }
    let options = QemuOptions { target };
    let domain = with_flushes_by_daemons(domain);
    let line = write::qemu_command_line(&domain, &options).map_err(refused)?;
    let mut text = String::new();
    for daemon in &line.daemons {
        let disk = domain.disks.get(daemon.disk);
        let name = disk.map_or("a disk", Disk::name);
        text.push_str(&format!(
            "\n# What serves {} must run before the guest, and this script does not start it:\n",
            sanitize::line(name)
        ));
        if disk.is_some_and(is_flushed_by_the_guest) {
            text.push_str(
                "# (It flushes after each write, because libvirt cannot set `config-wce=off`. `--to qemu` writes a\n\
                 # faster one for a guest without libvirt.)\n",
            );
        }
        // Each line is a comment, whatever is in it.
        for line in daemon.to_shell().lines() {
            text.push_str(&format!("#   {line}\n"));
        }
    }
    Ok(text)
}

/// A guest whose served disks are flushed by their daemons: it may run under libvirt, where the guest does not flush them.
fn with_flushes_by_daemons(domain: &Domain) -> Domain {
    let mut domain = domain.clone();
    let disks = domain.disks.iter_mut();
    for disk in disks.filter(|disk| is_flushed_by_the_guest(disk)) {
        let mode = disk.backend.effective_cache();
        let flushing = CacheMode::from_switches(CacheSwitches {
            write_cache: false,
            ..mode.switches()
        });
        disk.backend.cache = flushing.or(Some(mode));
    }
    domain
}

/// What keeps a guest from being written.
pub(super) fn refused(problems: WriteProblems) -> Stop {
    Stop(problems.0.iter().map(|one| problem(one, true)).collect())
}

/// One argument to a line, which an argument with a line end in it would break.
fn lines_of(argv: &[String]) -> Result<String, Stop> {
    if argv.iter().any(|word| word.contains('\n')) {
        return Err(
            Stop::new("an argument holds a line end and cannot be written on one line")
                .help("use --qemu-format json or lines, which can express it"),
        );
    }
    Ok(argv.iter().map(|word| format!("{word}\n")).collect())
}

pub(crate) fn unwritable(error: write::Unwritable) -> Stop {
    Stop::new(error.to_string())
}

fn problem(problem: &WriteProblem, is_error: bool) -> Message {
    let WriteProblem {
        at: _,
        disk,
        message,
        help,
    } = problem;
    let title = match disk {
        Some(disk) => format!("disk {disk}: {message}"),
        None => message.clone(),
    };
    Message {
        help: help.clone(),
        ..if is_error {
            Message::error(title)
        } else {
            Message::warning(title)
        }
    }
}
