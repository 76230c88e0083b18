//! Changes that a running guest gets at once.

use vmdisk_fields::shell_word;
use vmdisk_model::{Change, Disk, Domain, FieldPath, LimitField, TargetBus};

use super::change::{ChangeKind, DownTime, LiveChange, PlannedChange};

/// A change of the definition of a guest that runs, with the command that it needs no start for, or what waits for the start.
pub(super) fn live(change: PlannedChange, guest: &Domain) -> PlannedChange {
    let name = guest.name.as_deref().unwrap_or_default();
    let (live, waiting) = match change.kind {
        ChangeKind::Options => limits(&change, name),
        ChangeKind::Add => (attachment(&change, name), None),
        ChangeKind::Remove => (
            None,
            Some(format!(
                "the guest has it until it is shut off; when nothing in the guest uses it, `virsh detach-disk --live -- {} {}` \
             takes it away at once",
                shell_word(name),
                change.disk
            )),
        ),
        _ => (None, None),
    };
    PlannedChange {
        down_time: match (&live, &waiting) {
            (Some(_), None) => DownTime::None,
            _ => change.down_time,
        },
        afterwards: waiting.or(change.afterwards),
        live,
        ..change
    }
}

/// The limits of a disk, and what only the next start brings.
fn limits(change: &PlannedChange, name: &str) -> (Option<LiveChange>, Option<String>) {
    let option = |change: &Change| match (change.at(), change) {
        (FieldPath::Iotune(_, field), Change::Set { value, .. }) => {
            Some([format!("--{}", key_of(field)), value.to_string()])
        }
        (FieldPath::Iotune(_, field), _) => Some([format!("--{}", key_of(field)), "0".to_owned()]),
        _ => None,
    };
    let options: Vec<String> = change
        .definition
        .changes
        .iter()
        .filter_map(option)
        .flatten()
        .collect();
    let rest = change.differences.iter().map(|it| it.own_key());
    let rest: Vec<&str> = rest.filter(|key| !key.starts_with("iotune")).collect();
    let waiting = format!(
        "after its next start, the guest has the new {}",
        rest.join(", ")
    );
    let argv = ["virsh", "blkdeviotune", "--live"]
        .map(str::to_owned)
        .into_iter();
    let disk = ["--", name, &change.disk].map(str::to_owned);
    let live = LiveChange {
        argv: argv.chain(options.iter().cloned()).chain(disk).collect(),
        input: None,
        copy: None,
    };
    (
        (!options.is_empty()).then_some(live),
        (!rest.is_empty()).then_some(waiting),
    )
}

/// The attachment of a new disk as it is defined, for buses that devices are plugged into. A new controller or iothread comes
/// with the next start.
fn attachment(change: &PlannedChange, name: &str) -> Option<LiveChange> {
    let definition = &change.definition;
    let is_pluggable = |disk: &Disk| {
        let bus = disk.frontend.effective_bus();
        matches!(bus, TargetBus::Virtio | TargetBus::Scsi | TargetBus::Usb)
    };
    let is_alone = definition.controllers.is_empty() && definition.changes.is_empty();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let disk = format!("/domain/devices/disk[target/@dev='{}']", change.disk);
    let dump = [
        "virsh",
        "dumpxml",
        "--inactive",
        "--security-info",
        "--xpath",
        &disk,
        "--",
        name,
    ];
    let live = LiveChange {
        argv: words(&["virsh", "attach-device", "--live", "--", name, "/dev/stdin"]),
        input: Some(words(&dump)),
        copy: None,
    };
    (is_alone && definition.disks.iter().all(is_pluggable)).then_some(live)
}

/// The name of a limit in a spec, and the option of `virsh blkdeviotune`.
pub(super) fn key_of(field: LimitField) -> String {
    vmdisk_fields::limit(field).map_or_else(String::new, |row| row.libvirt.replace('_', "-"))
}
