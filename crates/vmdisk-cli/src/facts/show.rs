//! `vmdisk facts show`.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use vmdisk::facts::cgroup::IoMax;
use vmdisk::facts::host::{Kvm, KvmObstacle};
use vmdisk::facts::path::BackingFact;
use vmdisk::facts::{BlockDevice, Fact, FileKind, ImageHeader};
use vmdisk::model::Bytes;
use vmdisk::{Facts, HostIndex};
use vmdisk_source::table::labelled;

use crate::args::ShowArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::facts_file::read_facts;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;

/// Shows a facts file.
pub(super) fn run(args: &ShowArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let facts = read_facts(&args.file, io, colors)?;
    let text = for_people(&facts, io.stdout_width)
        .map_err(|error| Stop::file("show", &args.file, error))?;
    deliver(io, None, &text)?;
    Ok(Exit::Clean)
}

/// The facts as text that can be written to a terminal.
pub(super) fn for_people(facts: &Facts, width: Option<usize>) -> Result<String, String> {
    let harmless = sanitize::strings(facts).map_err(|error| error.to_string())?;
    let facts = Facts::from_json(&harmless).map_err(|error| error.to_string())?;
    Ok(text(&facts.facts, width))
}

/// A fact in a word or two: `-` for what is known not to be, and the reason for what is not known.
fn shown<T: ToString>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Known(value) => value.to_string(),
        Fact::Absent => "-".to_owned(),
        Fact::Unknown(unknown) => format!("unknown ({})", unknown.reason()),
        Fact::NotCollected => "not collected".to_owned(),
    }
}

/// Whether KVM can be used, as far as that is known.
fn kvm(kvm: &Kvm) -> String {
    let obstacle = match &kvm.obstacle {
        Fact::Known(KvmObstacle::ProcessorOrFirmware) => {
            "the processor shows no virtualisation, or the firmware has it off"
        }
        Fact::Known(KvmObstacle::Module) => "no module of KVM is loaded",
        Fact::Known(KvmObstacle::Node) => "KVM is there without its device node, as in a container",
        Fact::Known(KvmObstacle::Permission) => "/dev/kvm may not be opened",
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => "",
    };
    let state = match (&kvm.dev_kvm, &kvm.proven) {
        (Fact::Known(true), Fact::Known(true)) => "seen to run a guest".to_owned(),
        (Fact::Known(true), Fact::Known(false)) => "present, boots nothing".to_owned(),
        (Fact::Known(true), Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) => {
            "present, not tried (`vmdisk facts --group kvm` tries it)".to_owned()
        }
        (Fact::Known(false), _) => "not there".to_owned(),
        (other @ (Fact::Absent | Fact::Unknown(_) | Fact::NotCollected), _) => shown(other),
    };
    let trial = kvm.trial.value().map(String::as_str).unwrap_or_default();
    let why = [obstacle, trial].into_iter().filter(|why| !why.is_empty());
    let why: Vec<&str> = why.collect();
    if why.is_empty() {
        state
    } else {
        format!("{state}: {}", why.join("; "))
    }
}

/// The limits of a control group for a device.
fn limited(limits: &IoMax) -> String {
    let IoMax {
        dev,
        read_bytes,
        write_bytes,
        read_requests,
        write_requests,
    } = limits;
    let bytes = |what: &str, fact: &Fact<u64>| {
        fact.value()
            .map(|&number| format!("{what} {} in a second", Bytes(number)))
    };
    let count = |what: &str, fact: &Fact<u64>| {
        fact.value()
            .map(|number| format!("{number} {what} in a second"))
    };
    let all: Vec<String> = [
        bytes("reads", read_bytes),
        bytes("writes", write_bytes),
        count("reads", read_requests),
        count("writes", write_requests),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}: {}", shown(dev), all.join(", "))
}

/// The rows of the overview, each a name and a value.
struct Rows {
    text: String,
    width: Option<usize>,
}

impl Rows {
    fn row(&mut self, name: &str, value: impl Display) {
        let name = format!("{name:<14} ");
        labelled(&mut self.text, &name, &value.to_string(), self.width);
    }
}

fn text(facts: &Facts, width: Option<usize>) -> String {
    let index = HostIndex::new(facts);
    let mut rows = Rows {
        text: String::new(),
        width,
    };
    add_host(&mut rows, facts);
    add_limits(&mut rows, facts);
    for mount in &facts.mounts {
        let shown = match (&mount.fstype, &mount.source) {
            (one, Fact::NotCollected) | (Fact::NotCollected, one) => shown(one),
            (fstype, source) => format!("{} of {}", shown(fstype), shown(source)),
        };
        rows.row("mount", format!("{}: {shown}", mount.point));
    }
    add_paths(&mut rows, facts, &index);
    add_devices(&mut rows, facts, &index);
    add_measured(&mut rows, facts);
    for error in &facts.errors {
        let text = format!("{}: {} {}", error.what, error.reason, error.detail);
        rows.row("not done", text);
    }
    rows.text
}

fn add_host(rows: &mut Rows, facts: &Facts) {
    rows.row("host", shown(&facts.host.id));
    rows.row("collected", shown(&facts.collected_at));
    let vendor = facts.kernel.vendor.value();
    let vendor = vendor.map_or_else(String::new, |vendor| format!(" ({vendor})"));
    rows.row(
        "kernel",
        format!("{}{vendor}", shown(&facts.kernel.version)),
    );
    match &facts.qemu {
        Fact::Known(all) => {
            let mut by_version: Vec<(String, Vec<String>)> = Vec::new();
            for qemu in all {
                let (version, path) = (shown(&qemu.version), shown(&qemu.path));
                match by_version.iter_mut().find(|(known, _)| *known == version) {
                    Some((_, paths)) => paths.push(path),
                    None => by_version.push((version, vec![path])),
                }
            }
            for (version, paths) in by_version {
                let further = match paths.len() - 1 {
                    0 => String::new(),
                    further => format!(" and {further} more"),
                };
                rows.row("qemu", format!("{version} ({}{further})", paths[0]));
            }
        }
        none @ (Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) => {
            rows.row("qemu", shown(&none.as_ref().map(|_| "")));
        }
    }
    let libvirt = facts.libvirt.as_ref();
    rows.row(
        "libvirt",
        shown(&libvirt.and_then(|libvirt| libvirt.version.clone())),
    );
    rows.row("kvm", kvm(&facts.kvm));
}

fn add_limits(rows: &mut Rows, facts: &Facts) {
    rows.row(
        "io_uring",
        match facts.limits.io_uring_disabled {
            Fact::Known(0) | Fact::Absent => "not restricted".to_owned(),
            Fact::Known(1) => "one group only".to_owned(),
            Fact::Known(_) => "off".to_owned(),
            ref other @ (Fact::Unknown(_) | Fact::NotCollected) => shown(other),
        },
    );
    if let Fact::Known(libvirt) = &facts.libvirt
        && let Fact::Known(user) = &libvirt.qemu_user
    {
        rows.row("QEMU runs as", shown(&user.name));
    }
    let groups = [
        ("limits here", &facts.cgroups.own),
        ("guests' limits", &facts.cgroups.machine),
    ];
    for (name, group) in groups {
        if let Fact::Known(limits) = group.as_ref().and_then(|group| group.io_max.as_ref()) {
            for limits in limits {
                rows.row(name, limited(limits));
            }
        }
    }
}

fn add_paths(rows: &mut Rows, facts: &Facts, index: &HostIndex<'_>) {
    let paths = facts
        .dirs
        .iter()
        .map(|directory| ("directory", &directory.path, None))
        .chain(
            facts
                .files
                .iter()
                .map(|file| ("file", &file.path, Some(file))),
        );
    for (what, path, file) in paths {
        if file.is_some_and(|file| file.is_missing()) {
            rows.row(what, format!("{path}: missing"));
            continue;
        }
        let image = file.and_then(|file| file.image.value());
        let image = image.map_or_else(String::new, |image| format!("{}, ", header(image)));
        let is_socket = file.is_some_and(|file| file.kind.is(&FileKind::Socket));
        let direct = if is_socket {
            "socket".to_owned()
        } else {
            let direct = index.direct_io(path);
            format!(
                "O_DIRECT: {}",
                shown(&direct.as_ref().map(|direct| &direct.because))
            )
        };
        rows.row(what, format!("{path}: {image}{direct}"));
    }
    if facts.files.iter().any(|file| file.image.value().is_some()) {
        let rest =
            "`qemu-img info IMAGE` and `qemu-img check IMAGE` show what the header holds besides";
        rows.row("images", rest.to_owned());
    }
}

/// The header of an image, as far as it says anything unusual.
fn header(image: &ImageHeader) -> String {
    let numbers = [
        ("version", image.version.as_ref().map(u32::to_string)),
        (
            "size",
            image
                .virtual_size
                .as_ref()
                .map(|size| Bytes(*size).to_string()),
        ),
        (
            "clusters",
            image.cluster.as_ref().map(|size| Bytes(*size).to_string()),
        ),
        ("snapshots", image.snapshots.as_ref().map(u32::to_string)),
        ("encryption", image.encryption.as_ref().map(String::clone)),
        ("data in", image.data_file.as_ref().map(String::clone)),
    ];
    let flags = [
        ("subclusters", &image.ext_l2),
        ("lazy reference counts", &image.lazy),
        ("not closed properly", &image.dirty),
        ("corrupt", &image.corrupt),
    ];
    let mut words = vec![shown(&image.format)];
    if let Fact::Known(backing) = &image.backing {
        let BackingFact { path, format } = backing;
        words[0] += &format!(" on {path} ({})", shown(format));
    }
    let numbers = numbers.into_iter();
    words.extend(numbers.filter_map(|(what, fact)| Some(format!("{what} {}", fact.value()?))));
    let set = flags.into_iter().filter(|(_, fact)| fact.is(&true));
    words.extend(set.map(|(what, _)| what.to_owned()));
    words.join(", ")
}

/// Each device with those directly below it, which have rows of their own.
fn add_devices(rows: &mut Rows, facts: &Facts, index: &HostIndex<'_>) {
    for device in &facts.blockdevs {
        let below = index.below(device);
        let on = if below.is_empty() {
            String::new()
        } else {
            format!(" on {}", names(below))
        };
        let size = shown(&device.size.as_ref().map(|size| Bytes(*size)));
        rows.row(
            "device",
            format!("{}: {}, {size}{on}", name(device), device.kind),
        );
    }
    if let Some(cycle) = cycle(facts, index) {
        rows.row("contradiction", format!("below itself: {}", names(cycle)));
    }
}

fn add_measured(rows: &mut Rows, facts: &Facts) {
    for measured in &facts.measured {
        let figures = measured.figures.iter().map(ToString::to_string);
        let effects = measured.effects.iter();
        let effects = effects.map(|it| format!("the change of {} is {it}", it.rule));
        let all: Vec<String> = figures.chain(effects).collect();
        let (path, on) = (shown(&measured.path), measured.conditions());
        rows.row("measured", format!("{path}: {}, on {on}", all.join("; ")));
    }
}

fn name(device: &BlockDevice) -> String {
    let path = device.paths.first().cloned();
    path.unwrap_or_else(|| shown(&device.dev))
}

fn names(devices: Vec<&BlockDevice>) -> String {
    let names: Vec<String> = devices.into_iter().map(name).collect();
    names.join(", ")
}

/// Devices each of which is directly below the one before, and the first below the last; `None` without such devices.
fn cycle<'a>(facts: &'a Facts, index: &HostIndex<'a>) -> Option<Vec<&'a BlockDevice>> {
    let mut done = HashSet::new();
    for top in &facts.blockdevs {
        // The way down to a device, each step with the devices that are still to be visited below it.
        let mut way = Vec::new();
        let mut steps = HashMap::new();
        let mut next = Some(top);
        loop {
            match next.take() {
                Some(device) if done.contains(device.id.as_str()) => {}
                Some(device) => {
                    if let Some(first) = steps.insert(device.id.as_str(), way.len()) {
                        let cycle = way.into_iter().skip(first);
                        return Some(cycle.map(|(device, _)| device).collect());
                    }
                    way.push((device, index.below(device)));
                }
                None => {}
            }
            let Some((device, below)) = way.last_mut() else {
                break;
            };
            next = below.pop();
            if next.is_none() {
                steps.remove(device.id.as_str());
                done.insert(device.id.as_str());
                way.pop();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts with devices, each on the devices with these numbers.
    fn devices(below: &[&[usize]]) -> Facts {
        let device = |(nth, below): (usize, &&[usize])| {
            let slaves: Vec<String> = below.iter().map(|nth| format!("b{nth}")).collect();
            let (id, path) = (format!("b{nth}"), format!("/dev/dm-{nth}"));
            serde_json::json!({"id": id, "paths": [path], "kind": "linear", "slaves": slaves})
        };
        let devices: Vec<_> = below.iter().enumerate().map(device).collect();
        let schema = "https://github.com/vmdisk/vmdisk/facts/1";
        let facts =
            serde_json::json!({"schema": schema, "schema_version": "1.0", "blockdevs": devices});
        Facts::from_json(&facts.to_string()).unwrap().facts
    }

    #[test]
    fn only_devices_that_are_below_themselves_are_a_cycle() {
        let found = |below: &[&[usize]]| {
            let facts = devices(below);
            cycle(&facts, &HostIndex::new(&facts)).map(names)
        };
        assert_eq!(found(&[]), None);
        assert_eq!(
            found(&[&[1, 2], &[3], &[3], &[]]),
            None,
            "two ways to one device"
        );
        assert_eq!(found(&[&[0]]).unwrap(), "/dev/dm-0");
        let ring = found(&[&[1], &[2, 4], &[3], &[1], &[]]).unwrap();
        assert_eq!(ring, "/dev/dm-1, /dev/dm-2, /dev/dm-3");
    }

    #[test]
    fn a_device_has_the_devices_directly_below_it() {
        let shown = text(&devices(&[&[1], &[2], &[]]), None);
        assert!(
            shown.ends_with(
                "device         /dev/dm-0: linear, not collected on /dev/dm-1\n\
                 device         /dev/dm-1: linear, not collected on /dev/dm-2\n\
                 device         /dev/dm-2: linear, not collected\n"
            ),
            "{shown}"
        );
        let ring = text(&devices(&[&[1], &[0]]), None);
        assert!(
            ring.ends_with("contradiction  below itself: /dev/dm-0, /dev/dm-1\n"),
            "{ring}"
        );
    }
}
